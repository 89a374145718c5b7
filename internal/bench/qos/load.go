package qos

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/bench/cpu"
	"weir/internal/bench/iperf"
	"weir/internal/bench/probe"
	"weir/internal/bench/testbed"
	"weir/internal/host/proc"
)

const (
	// beforeData is more than the beginning of iperf3 takes, and what follows its end.
	beforeData = 20 * time.Second
	// payload is TCP's part of a line that carries full frames.
	payload = 1448.0 / 1538

	pingInterval = 5 * time.Millisecond
	pingMost     = 1 << 16
	idlePings    = 200

	sparseInterval = 10 * time.Millisecond
	sparseLength   = 1184 // 1,250 bytes of the line, so that the stream has 1 Mbit/s
	sparsePort     = firstPort + 41
	floodPort      = firstPort + 40
	floodSlot      = 40

	callInterval = 20 * time.Millisecond
	callLength   = 172 // 20 ms of G.711 with its RTP header (RFC 3551)
	callPort     = 5390
	rpmPort      = 5443
)

// load puts the load of a scene on the path and measures.
func (b *bench) load(ctx context.Context, t *task) (o *outcome, err error) {
	s := t.scene
	o = &outcome{scene: s}
	if s.rpm {
		return o, b.respond(ctx, s, o)
	}
	if s.probes {
		if o.idle, err = b.echo(s, idlePings, time.Time{}).Run(ctx); err != nil {
			return nil, err
		}
	}
	most := s.length + s.omit + beforeData
	up, err := newCounter(b.bed, testbed.FarEnd, false, most)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, up.close()) }()
	down, err := newCounter(b.bed, testbed.NearEnd, true, most)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, down.close()) }()
	if err := o.during(func() error { return b.carry(ctx, t, o) }); err != nil {
		return nil, err
	}
	o.up, o.down = up.read(), down.read()
	o.cut()
	return o, nil
}

// cut leaves what arrived while the load lasted.
func (o *outcome) cut() {
	s := o.scene
	var ahead, back []int
	for i, f := range s.flows {
		if f.down {
			back = append(back, i)
		} else {
			ahead = append(ahead, i)
		}
	}
	if len(s.floods) > 0 {
		ahead = append(ahead, floodSlot)
	}
	begin := o.up.begin(ahead)
	o.up.cut(begin+s.omit, s.length)
	if len(back) > 0 {
		begin = o.down.begin(back)
	}
	o.down.cut(begin+s.omit, s.length)
}

// during notes what the cores did while f ran.
func (o *outcome) during(f func() error) error {
	before, err := proc.Cores("/proc")
	if err != nil {
		return err
	}
	interrupts, err := cpu.InterruptTime()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := proc.Cores("/proc")
	if err != nil {
		return err
	}
	o.busy = map[int]float64{}
	for core, now := range after {
		d := now.Minus(before[core])
		if total := float64(d.Total()); total > 0 {
			o.busy[core] = 1 - float64(d.Idle+d.IOWait)/total
			o.spent += float64(d.Total()-d.Idle-d.IOWait) / proc.TicksPerSecond
		}
	}
	ended, err := cpu.InterruptTime()
	o.interrupts = ended - interrupts
	return err
}

// carry runs the load: connections and floods, and beside them streams and probes.
func (b *bench) carry(ctx context.Context, t *task, o *outcome) error {
	s := t.scene
	if len(s.flows) == 0 {
		return b.beside(ctx, t, o, time.Now())
	}
	var beside errgroup.Group
	results, err := b.tool.Run(ctx, b.loads(t, func() {
		begun := time.Now()
		beside.Go(func() error { return b.beside(ctx, t, o, begun) })
	})...)
	o.results = results
	return errors.Join(err, beside.Wait())
}

// loads returns the connections for iperf3.
func (b *bench) loads(t *task, begun func()) (all []iperf.Load) {
	s := t.scene
	for _, f := range s.flows {
		rate := f.pace
		if t.path == PathNone {
			rate = s.rate * payload / float64(s.sameWay(f.down))
		}
		all = append(all, iperf.Load{Pair: b.net.pair(loader, f.rtt), Streams: 1, Time: s.length, Omit: s.omit, Reverse: f.down,
			Congestion: f.congestion, Rate: rate})
	}
	all[0].Begun = begun
	return all
}

// sameWay returns how many connections send in a direction.
func (s *scene) sameWay(down bool) (n int) {
	for _, f := range s.flows {
		if f.down == down {
			n++
		}
	}
	return n
}

// beside runs floods, the sparse stream and probes from when the load began until it ends.
func (b *bench) beside(ctx context.Context, t *task, o *outcome, begun time.Time) error {
	s := t.scene
	var all errgroup.Group
	until := begun.Add(s.length + s.omit)
	for _, f := range s.floods {
		// Its sockets take a moment, so that it would end early.
		all.Go(func() error { return b.net.flood(ctx, f, until.Add(time.Second)) })
	}
	if s.sparse {
		all.Go(func() (err error) {
			stream := probe.OneWay{From: b.net.near(), To: b.net.far(), Source: secondary, Target: netip.AddrPortFrom(b.net.server(-1), sparsePort),
				Interval: sparseInterval, Count: int(s.length / sparseInterval), Length: sparseLength, Until: until}
			o.sparse, err = stream.Run(ctx)
			return err
		})
	}
	if s.probes {
		// The first connections need a moment until the line is full.
		pause := settled + s.omit
		time.Sleep(pause)
		count := min(int((s.length-settled)/pingInterval), pingMost)
		all.Go(func() (err error) {
			o.loaded, err = b.echo(s, count, until).Run(ctx)
			return err
		})
		all.Go(func() (err error) {
			call := probe.OneWay{From: b.net.near(), To: b.net.far(), Source: prober, Target: netip.AddrPortFrom(b.net.server(-1), callPort),
				Interval: callInterval, Count: int((s.length - settled) / callInterval), Length: callLength, Until: until}
			o.oneWay, err = call.Run(ctx)
			return err
		})
	}
	return all.Wait()
}

// echo returns pings from the prober. They do not go through the delay line.
func (b *bench) echo(_ *scene, count int, until time.Time) *probe.Echo {
	return &probe.Echo{From: b.net.near(), Source: prober, To: b.net.server(-1), Interval: pingInterval, Count: count, Until: until}
}

// respond measures round-trips per minute, first of downloads and then of uploads. The load
// is that of the test itself.
func (b *bench) respond(ctx context.Context, s *scene, o *outcome) error {
	for i, up := range []bool{false, true} {
		r := probe.Responsiveness{Client: b.net.near(), Server: b.net.far(), Source: loader,
			Address: netip.AddrPortFrom(b.net.server(s.rtt), uint16(rpmPort+i)), Up: up, Interval: s.length / 20, Most: s.length}
		found, err := r.Run(ctx)
		if errors.Is(err, probe.ErrUnanswered) {
			continue // 0 round-trips
		}
		if err != nil {
			return err
		}
		o.rpm[i] = found.Value
	}
	return nil
}
