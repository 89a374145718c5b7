package remote

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/probe"
	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// findings are the results of all runs of a case, in order.
type findings struct {
	Case
	control bool // the first case, repeated as if it were another (A/A)
	results []*result
}

// measured is a whole benchmark.
type measured struct {
	options *Options
	server  netip.AddrPort
	welcome *Welcome // nil for a stock iperf3
	own     Host
	machine hostinfo.Machine
	started time.Time
	idle    stats.Sample   // all round-trip times without load, in milliseconds
	before  []stats.Sample // the same before each run
	lost    int            // idle probes without an echo
	entries []*findings    // all cases, the first of them twice
	without string         // why this machine is not sampled for weir
	sampler *sample.Sampler
	tool    *iperf.Tool
	local   bool   // the other side is this machine, or in a lab on it
	noProbe string // why there are no round-trip times
}

// Client measures with a server and makes the report. The target has to be local, or the
// user has to own it. With an error it also returns the report so far, or nil if nothing
// was measured.
func Client(ctx context.Context, o Options) (*report.Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	addr, local, err := target(ctx, o.Host, o.Owned)
	if err != nil {
		return nil, err
	}
	m := &measured{options: &o, local: local, server: netip.AddrPortFrom(addr, o.Port), started: time.Now().UTC().Truncate(time.Second)}
	if m.own, m.machine, err = thisHost(); err != nil {
		return nil, err
	}
	for i, c := range o.Cases() {
		m.entries = append(m.entries, &findings{Case: c})
		if i == 0 {
			m.entries = append(m.entries, &findings{Case: c, control: true})
		}
	}
	if m.sampler, err = sample.Open(o.Router); err != nil {
		return nil, err
	}
	m.without = m.sampler.Without
	err = errors.Join(m.measure(ctx), m.sampler.Close())
	m.entries = slices.DeleteFunc(m.entries, func(f *findings) bool { return len(f.results) == 0 })
	if len(m.entries) == 0 {
		return nil, err
	}
	return m.document(), err
}

// result is the result of one run.
type result struct {
	granted  Run
	cut      []string
	up       *direction // nil: not in this direction
	down     *direction
	rtts     stats.Sample // milliseconds, during the run
	lost     int          // lost probes
	overflow uint64       // datagrams dropped at a full socket at either end
	own      []sample.Point
	theirs   []sample.Point
	process  float64  // core seconds of the client's iperf3
	remote   float64  // core seconds of the server's iperf3
	full     []string // ends whose core was full, by iperf3's report
}

// measure measures each entry once in each round, in random order, with a weir bench
// server or a stock iperf3.
func (m *measured) measure(ctx context.Context) (err error) {
	if m.tool, err = iperf.Find(ctx); err != nil {
		return err
	}
	var c *client
	if !m.options.IPerf3 {
		if c, err = connect(ctx, m.server, m.options.Key, m.options.Program); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.calls.Close()) }()
		m.welcome = &c.welcome
		if most, whole := c.welcome.Limits.Session, m.options.Estimate(); whole > most {
			return fmt.Errorf("this takes about %s, and the server allows one client %s: measure less, or start it with --max-session %s",
				whole.Round(time.Second), most, (whole * 5 / 4).Round(time.Minute))
		}
	}
	bar := progress.New(m.options.Progress, m.options.Runs*len(m.entries), m.options.Estimate())
	defer bar.End()
	for _, e := range stats.Interleave(m.options.Runs, m.entries) {
		bar.Step("%s", e.Case)
		if err := m.rest(ctx); err != nil {
			return fmt.Errorf("%s: %w", e.Case, err)
		}
		m.begin()
		r, err := m.run(ctx, c, m.request(e))
		if err != nil {
			return fmt.Errorf("%s: %w", e.Case, err)
		}
		e.results = append(e.results, r)
		bar.Done(1)
	}
	return nil
}

// run does one run. A nil client means that the other side is a stock iperf3.
func (m *measured) run(ctx context.Context, c *client, asked Run) (*result, error) {
	r := &result{granted: asked}
	traffic := func(ctx context.Context, port uint16) error {
		return m.beside(ctx, r, func(ctx context.Context) error { return r.traffic(ctx, m.tool, m.server.Addr().String(), port) })
	}
	if c == nil {
		return r, traffic(ctx, m.server.Port())
	}
	return r, c.run(ctx, &asked, r, traffic)
}

// beside measures the effect of the traffic on round-trip times and on this machine.
func (m *measured) beside(ctx context.Context, r *result, traffic func(context.Context) error) error {
	before, err := overflowed()
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var tasks sync.WaitGroup
	var sampling, probing error
	tasks.Go(func() {
		sampling = m.sampler.Watch(watching, func(p sample.Point) { r.own = append(r.own, p) })
	})
	if m.noProbe == "" {
		tasks.Go(func() { r.rtts, r.lost, probing = m.probe(ctx, r.granted.time()) })
	}
	err = traffic(ctx)
	stop()
	tasks.Wait()
	after, counting := overflowed()
	r.overflow += after - min(before, after)
	if err != nil {
		return err
	}
	return errors.Join(sampling, probing, counting)
}

// rest measures round-trip times without load, and lets queues empty. If no echo arrives
// before the first run, it sends no more.
func (m *measured) rest(ctx context.Context) error {
	if m.noProbe != "" {
		return sleep(ctx, idleSpan)
	}
	rtts, lost, err := m.probe(ctx, idleSpan)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(m.before) == 0 && (err != nil || len(rtts) == 0) {
		m.noProbe = "the server's machine answers no ICMP echo"
		if err != nil {
			m.noProbe = err.Error()
		}
		return nil
	}
	if m.lost += lost; len(rtts) > 0 {
		m.idle = append(m.idle, rtts...)
		m.before = append(m.before, rtts)
	}
	return err
}

// Times of probes: rare enough not to be a load, frequent enough for a 99th percentile in
// a run of three seconds. An echo counts its requests in 16 bits.
const (
	probeEvery = 5 * time.Millisecond
	mostProbes = 60_000
)

// probe measures round trips by ICMP echo for the given time, in milliseconds.
func (m *measured) probe(ctx context.Context, span time.Duration) (rtts stats.Sample, lost int, err error) {
	every := max(probeEvery, span/mostProbes)
	e := &probe.Echo{From: probe.Here, To: m.server.Addr(), Interval: every, Count: int(span / every), Until: time.Now().Add(span)}
	d, err := e.Run(ctx)
	if errors.Is(err, probe.ErrNoReply) {
		err = nil
	}
	if err != nil {
		return nil, 0, err
	}
	return d.Millis, d.Lost, nil
}

// begin calls Loaded when the first run begins.
func (m *measured) begin() {
	if loaded := m.options.Loaded; loaded != nil {
		m.options.Loaded = nil
		loaded(omitted, m.options.count())
	}
}

// of returns one figure of one direction for all runs.
func (f *findings) of(up bool, figure func(*direction) float64) (s stats.Sample) {
	for _, r := range f.results {
		if d := r.way(up); d != nil {
			s = append(s, figure(d))
		}
	}
	return s
}

// quantiles returns one quantile of the round-trip times of each run.
func (f *findings) quantiles(q float64) stats.Sample {
	var s stats.Sample
	for _, r := range f.results {
		if len(r.rtts) > 0 {
			s = append(s, r.rtts.Quantile(q))
		}
	}
	return s
}

func (r *result) way(up bool) *direction {
	if up {
		return r.up
	}
	return r.down
}

// directions returns those that were measured.
func (r *result) directions() []*direction {
	return slices.DeleteFunc([]*direction{r.up, r.down}, func(d *direction) bool { return d == nil })
}
