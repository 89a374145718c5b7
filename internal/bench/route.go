package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/lab"
)

// RouteOptions say which path carries which frames.
type RouteOptions struct {
	Hook  string // of weir: xdp or tcx
	Entry string // one of [Stage.Entries]; "": the first
	Case  Case   // of one core, direction and sink: those of a route are given
	// Watch is called with each run of the generator for [Route.Send],
	// [Route.Establish] and [Route.TearDown]; nil: nobody looks.
	Watch func(run func() error) error
	// First has generator and firewall go before all programs; see [lab.GoFirst].
	First bool
}

// Route is a path in place with the frames that go by it. The firewall receives
// on a core of its own, the second of those that may be used, and a generator
// sends from the first, whether the firewall keeps up or not: frames that it
// cannot take are lost, as on a wire.
type Route struct {
	stage *Stage
	way   *way
	run   *run
	undo  undoList
	watch func(run func() error) error
	first bool
	fresh uint32 // the first flow that was not used yet
}

// Entries are the names of the ways in which frames can enter a path; which is
// faster depends on the frames.
func (t *Stage) Entries(path, hook string) ([]string, error) {
	p, err := newPath(path, hook)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range p.flavours {
		names = append(names, f.name)
	}
	return names, nil
}

// Cores are those that may be used, in the order of use.
func (t *Stage) Cores() []int { return slices.Clone(t.setting.cores) }

// StartRoute builds a path. The error is a missing capability on a machine with
// one core.
func (t *Stage) StartRoute(ctx context.Context, path string, o RouteOptions) (*Route, error) {
	if len(t.setting.cores) < 2 {
		return nil, &missingError{"a sender that does not wait for the firewall needs a second core"}
	}
	p, err := newPath(path, o.Hook)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.flavours, func(f flavour) bool { return f.name == o.Entry || o.Entry == "" })
	if i < 0 {
		return nil, fmt.Errorf("path %s has no entry %q", path, o.Entry)
	}
	o.Case.Cores, o.Case.Direction, o.Case.Sink = 1, OneWay, Far
	r := &Route{stage: t, way: &way{net: t.setting.net, c: o.Case, path: p}, watch: o.Watch, first: o.First}
	if r.watch == nil {
		r.watch = unwatched
	}
	r.run = &run{way: r.way, cores: t.setting.cores[:1], others: t.setting.cores[1:]}
	stop, err := p.flavours[i].start(ctx, t.setting, r.way)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	r.undo.add(stop)
	if err := r.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), r.Stop())
	}
	return r, nil
}

func unwatched(run func() error) error { return run() }

// prepare gives the firewall its core and makes the table of answers.
func (r *Route) prepare() error {
	if !r.way.path.toDoor {
		for _, door := range []place{nearDoor, farDoor} {
			if err := r.way.net.lab.OwnCore(door.host, door.device, r.stage.setting.cores[1], r.first); err != nil {
				return err
			}
			r.undo.add(func() error { return r.way.net.lab.SharedCore(door.host, door.device) })
		}
	}
	base, err := r.run.makeAnswers()
	if err != nil {
		return err
	}
	r.undo.add(base.Close)
	return nil
}

// Stop takes the path down.
func (r *Route) Stop() error { return r.undo.run() }

// Remembers reports whether the path keeps states of connections.
func (r *Route) Remembers() bool { return r.way.path.connects }

// Filters reports whether the path has rules, which some frames break.
func (r *Route) Filters() bool { return r.way.path.connects }

// Load is what a route is offered.
type Load struct {
	Rate   float64 // frames per second, 1,000 at least; 0: as fast as they go
	Frames uint32
	// Hold has the rate held on average: late bursts are made up for at up to twice
	// the rate. It goes without stamps.
	Hold bool
	// Stamps makes frames carry the time, which [Outcome.Latency] is made of.
	// They have to have [StampedSize].
	Stamps bool
	// IllegalEvery makes one of so many frames come from a network that no rule
	// lets pass; 0: none. It goes with stamps only, which tell them apart.
	IllegalEvery uint32
	// New makes every frame open a connection that was not known before, instead
	// of taking turns among those that are open.
	New bool
}

// Outcome is what became of a [Load].
type Outcome struct {
	Sent    uint64 // legal frames
	Arrived uint64
	Illegal uint64  // frames that broke the rules, and arrived
	Offered float64 // frames per second, all of them, as they were sent
	Late    float64 // the share of bursts that were more than 20 µs late
	Busy    float64 // the share of its time that the generator did not wait for a burst's, with a rate
	Latency Latency // with stamps
	// Foreign is the share of time that programs of others took from the cores
	// of generator and firewall, or the machine's host did.
	Foreign float64
}

// Loss is the share of legal frames that did not arrive (0 to 1).
func (o *Outcome) Loss() float64 {
	if o.Sent == 0 || o.Arrived >= o.Sent {
		return 0
	}
	return float64(o.Sent-o.Arrived) / float64(o.Sent)
}

// Send offers a load and waits until what was sent has arrived or is lost.
func (r *Route) Send(ctx context.Context, l Load) (o Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return o, err
	}
	if err := r.check(l); err != nil {
		return o, err
	}
	sink, err := r.sinkFor(l)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, sink.close()) }()
	g, err := r.generatorFor(l)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if o, err = r.offer(g, l); err != nil {
		return o, err
	}
	sink.settle()
	o.Arrived, o.Illegal, o.Latency = sink.read()
	return o, nil
}

func (r *Route) check(l Load) error {
	switch {
	case l.Rate != 0 && l.Rate < leastRate:
		return fmt.Errorf("a rate of %v frames per second: want %d at least", l.Rate, leastRate)
	case l.Stamps && r.way.c.Frame < StampedSize(0, r.way.c):
		return fmt.Errorf("frames of %d bytes have no room for a time stamp: want %d", r.way.c.Frame, StampedSize(0, r.way.c))
	case l.IllegalEvery > 0 && !l.Stamps:
		return errors.New("illegal frames are told from others by their stamps only")
	case l.Hold && (l.Rate == 0 || l.Stamps):
		return errors.New("a rate is held where there is one, and without stamps")
	case l.New && uint64(r.fresh)+uint64(l.Frames) > flowMask:
		return fmt.Errorf("%d new connections: only %d are left", l.Frames, flowMask-r.fresh)
	}
	return nil
}

func (l *Load) pace() pacing {
	if l.Hold {
		return paceHolding(l.Rate)
	}
	return paceFor(l.Rate, l.Stamps)
}

func (r *Route) generatorFor(l Load) (*generator, error) {
	flows := flowRange{0, uint32(r.way.c.Flows), stride(uint32(r.way.c.Flows))}
	s := step{false, r.way.data(false), r.way.length()}
	limit := uint64(0)
	if l.New {
		flows, s, limit = flowRange{r.fresh, l.Frames, 1}, r.way.opening()[0], uint64(l.Frames)
		r.fresh += l.Frames
	}
	pace := l.pace()
	pace.illegalEvery = l.IllegalEvery
	g, err := newPacedGenerator(r.way, s, flows, r.run.cores[0], limit, r.run.answers, pace)
	if err == nil {
		g.first = r.first
	}
	return g, err
}

// offer runs the generator and says how it kept its pace.
func (r *Route) offer(g *generator, l Load) (o Outcome, err error) {
	cores := r.stage.setting.cores[:2]
	before, err := readCores(cores)
	if err != nil {
		return o, err
	}
	begin := time.Now()
	var kept float64
	err = r.watch(func() (err error) {
		kept, err = r.send(g, l.Frames)
		return err
	})
	if err != nil {
		return o, err
	}
	took := time.Since(begin).Seconds()
	after, err := readCores(cores)
	if err != nil {
		return o, err
	}
	o.Sent = uint64(l.Frames)
	if l.IllegalEvery > 0 {
		o.Sent -= uint64(l.Frames / l.IllegalEvery)
	}
	o.Foreign = max(0, after.foreign-before.foreign-kept) / (took * float64(len(cores)))
	if l.Rate == 0 {
		return o, nil
	}
	p, err := g.paced()
	if err != nil {
		return o, err
	}
	burst := l.pace().burst
	if p.LastNs > p.FirstNs && l.Frames > burst {
		o.Offered = float64(l.Frames-burst) / (float64(p.LastNs-p.FirstNs) / 1e9)
		o.Busy = 1 - float64(p.WaitedNs)/float64(p.LastNs-p.FirstNs)
	}
	o.Late = float64(p.Late) * float64(burst) / float64(l.Frames)
	return o, nil
}

// send runs the generator. If the route goes first, the firewall's core is kept for it
// meanwhile, for the seconds that are returned.
func (r *Route) send(g *generator, frames uint32) (kept float64, err error) {
	if !r.first {
		return 0, g.run(frames)
	}
	release := keepCore(r.stage.setting.cores[1])
	err = g.run(frames)
	return release(), err
}

// keepCore spends what time a core has left, until release, which gives how many
// seconds that was. A receiver that sleeps for a moment else finds a program in the
// kernel, which may not be interrupted for milliseconds.
func keepCore(core int) (release func() float64) {
	var over atomic.Bool
	spent := make(chan float64)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		var set unix.CPUSet
		set.Set(core)
		if unix.SchedSetaffinity(0, &set) == nil {
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

// arrivals is a sink of a route.
type arrivals interface {
	settle()
	read() (frames, illegal uint64, l Latency)
	close() error
}

func (r *Route) sinkFor(l Load) (arrivals, error) {
	if l.Stamps {
		return newStampSink(r.way)
	}
	return newCountSink(r.way, false)
}

// settle waits until no more frames come.
func settle(count func() uint64) {
	const pause = 2 * time.Millisecond
	for last, tries := count(), 0; tries < 100; tries++ {
		time.Sleep(pause)
		now := count()
		if now == last {
			return
		}
		last = now
	}
}

func (k *countSink) settle() {
	settle(func() uint64 { n, _, _ := k.read(); return n })
}

func (k *countSink) read() (frames, illegal uint64, l Latency) {
	for _, w := range k.windows() {
		frames += w.frames
	}
	return frames, 0, l
}

// stampSink reads the stamps of frames at the end of the way.
type stampSink struct {
	objects *bpfload.Objects
	link    *bpfload.Link
	memory  *bpfload.Memory
	cores   []measureSeen
}

func newStampSink(w *way) (*stampSink, error) {
	object, err := loadMeasure()
	if err != nil {
		return nil, fmt.Errorf("read the measuring program: %w", err)
	}
	kind := &frameSpec{ipv6: w.c.ipv6(), tcp: w.data(false)}
	objects, err := bpfload.Load([]*bpfload.Spec{object}, bpfload.Options{
		Entries: map[string]uint32{"arrivals": possibleCores()},
		Values: map[string]any{"ethertype": kind.ethertype(), "protocol": kind.protocol(),
			"stamp_at": uint32(kind.headerLen())},
	})
	if err != nil {
		return nil, fmt.Errorf("load the measuring program: %w", err)
	}
	k := &stampSink{objects: objects}
	if k.memory, err = bpfload.MapMemory(objects.Maps["arrivals"]); err == nil {
		k.cores, err = bpfload.Values[measureSeen](k.memory)
	}
	if err == nil {
		k.link, err = w.net.attach(w.end(false), bpfload.XDP, objects.Programs["measure"])
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *stampSink) settle() {
	settle(func() uint64 { n, _, _ := k.read(); return n })
}

func (k *stampSink) read() (frames, illegal uint64, l Latency) {
	l, illegal = latencyOf(k.cores)
	return l.Frames, illegal, l
}

func (k *stampSink) close() error {
	var errs []error
	if k.link != nil {
		errs = append(errs, detach(k.link))
	}
	if k.memory != nil {
		errs = append(errs, k.memory.Close())
	}
	return errors.Join(append(errs, k.objects.Close())...)
}
