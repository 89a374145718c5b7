package tester

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bench/cpu"
	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/host/cpulist"
	"weir/internal/lab"
	"weir/internal/missing"
)

// Options choose the path and its frames.
type Options struct {
	Hook  string       // weir's hook: xdp or tcx
	Entry string       // one of [paths.EntryNames]; "": the first
	Case  traffic.Case // one core, direction and sink are always those of a Tester
	// Watch is called with each run of the generator for [Tester.Send],
	// [Tester.Establish] and [Tester.TearDown]. It may be nil.
	Watch func(run func() error) error
	// First gives generator and firewall priority over all programs; see
	// [lab.GoFirst].
	First bool
}

// Tester sends frames over a path that is in place. A generator sends from the first
// usable core, and the firewall receives on the second. The generator does not wait for
// the firewall: frames that it cannot take are lost, as on a wire.
type Tester struct {
	testbed *testbed.Testbed
	setup   *traffic.Setup
	undo    paths.UndoList
	watch   func(run func() error) error
	first   bool
	fresh   uint32 // first flow that was not used yet
}

// Start builds a path. On a machine with one core, the error is a missing capability.
func Start(ctx context.Context, b *testbed.Testbed, path string, o Options) (*Tester, error) {
	if len(b.Cores) < 2 {
		return nil, missing.Errorf("a sender that does not wait for the firewall needs a second core")
	}
	p, err := paths.New(path, paths.WeirOptions{Hook: o.Hook})
	if err != nil {
		return nil, err
	}
	f, err := p.Entry(o.Entry)
	if err != nil {
		return nil, err
	}
	o.Case.Cores, o.Case.Direction, o.Case.Sink = 1, traffic.OneWay, traffic.Far
	t := &Tester{testbed: b, setup: &traffic.Setup{Testbed: b, Case: o.Case, Effect: p.Effect}, watch: o.Watch, first: o.First}
	if t.watch == nil {
		t.watch = unwatched
	}
	stop, err := f.Start(ctx, t.setup)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	t.undo.Add(stop)
	if err := t.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), t.Stop())
	}
	return t, nil
}

func unwatched(run func() error) error { return run() }

// prepare assigns the firewall its core and makes the table of answers.
func (t *Tester) prepare() error {
	if !t.setup.ToDoor {
		for _, door := range []testbed.Place{testbed.NearDoor, testbed.FarDoor} {
			if err := t.setup.Testbed.Lab.OwnCore(door.Host, door.Device, t.testbed.Cores[1], t.first); err != nil {
				return err
			}
			t.undo.Add(func() error { return t.setup.Testbed.Lab.SharedCore(door.Host, door.Device) })
		}
	}
	base, err := t.setup.MakeResults()
	if err != nil {
		return err
	}
	t.undo.Add(base.Close)
	return nil
}

// Stop takes the path down.
func (t *Tester) Stop() error { return t.undo.Run() }

// Load is the load that a Tester offers.
type Load struct {
	Rate   float64 // frames per second, at least 1,000; 0: as fast as possible
	Frames uint32
	// Hold keeps the rate on average: late bursts are made up for at up to four times
	// the rate. It excludes stamps.
	Hold bool
	// Stamps makes frames carry the time, which [Outcome.Latency] needs. The frames
	// have to have [StampedSize].
	Stamps bool
	// IllegalEvery makes one of that many frames come from a network that no rule
	// passes. 0 means none. It needs stamps, which mark these frames.
	IllegalEvery uint32
	// New makes every frame open a new connection, instead of rotating over the open
	// ones.
	New bool
}

// Outcome is the result of a [Load].
type Outcome struct {
	Sent    uint64 // legal frames
	Arrived uint64
	Illegal uint64          // frames that broke the rules and still arrived
	Offered float64         // frames per second as sent, all of them
	Late    float64         // share of bursts that were more than 20 µs late
	Busy    float64         // with a rate: share of time in which the generator did not wait for the next burst
	Latency traffic.Latency // with stamps
	// Foreign is the share of time that other programs, or the machine's host, took
	// from the cores of generator and firewall.
	Foreign float64
}

// Loss returns the share of legal frames that did not arrive (0 to 1).
func (o *Outcome) Loss() float64 {
	if o.Sent == 0 || o.Arrived >= o.Sent {
		return 0
	}
	return float64(o.Sent-o.Arrived) / float64(o.Sent)
}

// Send offers a load and waits until all frames have arrived or are lost.
func (t *Tester) Send(ctx context.Context, l Load) (o Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return o, err
	}
	if err := t.check(l); err != nil {
		return o, err
	}
	sink, err := t.sinkFor(l)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	g, err := t.generatorFor(l)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if o, err = t.offer(g, l); err != nil {
		return o, err
	}
	sink.Settle()
	o.Arrived, o.Illegal, o.Latency = sink.Read()
	return o, nil
}

func (t *Tester) check(l Load) error {
	switch {
	case l.Rate != 0 && l.Rate < traffic.LeastRate:
		return fmt.Errorf("a rate of %v frames per second: want %d at least", l.Rate, traffic.LeastRate)
	case l.Stamps && t.setup.Case.Frame < traffic.StampedSize(0, t.setup.Case):
		return fmt.Errorf("frames of %d bytes have no room for a time stamp: want %d", t.setup.Case.Frame, traffic.StampedSize(0, t.setup.Case))
	case l.IllegalEvery > 0 && !l.Stamps:
		return errors.New("illegal frames are told from others by their stamps only")
	case l.Hold && (l.Rate == 0 || l.Stamps):
		return errors.New("a rate is held where there is one, and without stamps")
	case l.New && uint64(t.fresh)+uint64(l.Frames) > traffic.FlowMask:
		return fmt.Errorf("%d new connections: only %d are left", l.Frames, traffic.FlowMask-t.fresh)
	}
	return nil
}

func (l *Load) pace() traffic.Pacing {
	if l.Hold {
		return traffic.PaceHolding(l.Rate)
	}
	return traffic.PaceFor(l.Rate, l.Stamps)
}

func (t *Tester) generatorFor(l Load) (*traffic.Generator, error) {
	flows := t.setup.SteadyFlows(1)[0]
	s := t.setup.Steady(false)
	limit := uint64(0)
	if l.New {
		flows, s, limit = traffic.FreshFlows(t.fresh, l.Frames), t.setup.FirstFrames()[0], uint64(l.Frames)
		t.fresh += l.Frames
	}
	pace := l.pace()
	pace.IllegalEvery = l.IllegalEvery
	g, err := traffic.NewPacedGenerator(t.setup, s, flows, t.testbed.Cores[0], limit, pace)
	if err == nil {
		g.First = t.first
	}
	return g, err
}

// offer runs the generator and returns how it kept its pace.
func (t *Tester) offer(g *traffic.Generator, l Load) (o Outcome, err error) {
	cores := t.testbed.Cores[:2]
	before, err := cpu.Read(cores)
	if err != nil {
		return o, err
	}
	begin := time.Now()
	var kept float64
	err = t.watch(func() (err error) {
		kept, err = t.send(g, l.Frames)
		return err
	})
	if err != nil {
		return o, err
	}
	took := time.Since(begin).Seconds()
	after, err := cpu.Read(cores)
	if err != nil {
		return o, err
	}
	o.Sent = uint64(l.Frames)
	if l.IllegalEvery > 0 {
		o.Sent -= uint64(l.Frames / l.IllegalEvery)
	}
	o.Foreign = max(0, after.Foreign-before.Foreign-kept) / (took * float64(len(cores)))
	if l.Rate == 0 {
		return o, nil
	}
	p, err := g.Paced()
	if err != nil {
		return o, err
	}
	burst := l.pace().Burst
	if p.LastNs > p.FirstNs && l.Frames > burst {
		o.Offered = float64(l.Frames-burst) / (float64(p.LastNs-p.FirstNs) / 1e9)
		o.Busy = 1 - float64(p.WaitedNs)/float64(p.LastNs-p.FirstNs)
	}
	o.Late = float64(p.Late) * float64(burst) / float64(l.Frames)
	return o, nil
}

// send runs the generator. If the tester has priority, it keeps the firewall's core busy
// meanwhile, and returns for how many seconds.
func (t *Tester) send(g *traffic.Generator, frames uint32) (kept float64, err error) {
	if !t.first {
		return 0, g.Run(frames)
	}
	release := keepCore(t.testbed.Cores[1])
	err = g.Run(frames)
	return release(), err
}

// keepCore uses up the idle time of a core until release, which returns that time in
// seconds. Otherwise a receiver that slept for a moment may find a program in the kernel
// that cannot be interrupted for milliseconds.
func keepCore(core int) (release func() float64) {
	var over atomic.Bool
	spent := make(chan float64)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		if cpulist.Bind(0, core) == nil {
			lab.GoFirst(0, lab.First)
			for !over.Load() {
			}
		}
		var time unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &time)
		spent <- float64(time.Nano()) / 1e9
	}()
	return func() float64 {
		over.Store(true)
		return <-spent
	}
}

// arrivals is a sink of a Tester.
type arrivals interface {
	Settle()
	Read() (frames, illegal uint64, l traffic.Latency)
	Close() error
}

func (t *Tester) sinkFor(l Load) (arrivals, error) {
	if l.Stamps {
		return traffic.NewStampSink(t.setup)
	}
	return traffic.NewCountSink(t.setup, false)
}
