package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/machine"
	"weir/internal/stats"
)

// entry is a case, or the first one again as if it were another (A/A).
type entry struct {
	Case
	control bool
}

// findings are what all runs of a case brought, in their order.
type findings struct {
	entry
	results []*result
}

// measured is a whole benchmark.
type measured struct {
	options *Options
	server  netip.AddrPort
	welcome *welcome // nil with iperf3
	own     Host
	machine machine.Machine
	started time.Time
	idle    stats.Sample   // all round-trip times without load, in milliseconds
	before  []stats.Sample // of each run, before it
	lost    int            // idle probes without an echo
	entries []*findings
	without string // why weir is not sampled here
	skipped []report.Skip
	local   bool   // the other side is this machine, or in a lab of it
	noProbe string // why there are no round-trip times
}

// Client measures with a server, and makes the report. The target has to be
// local, or the user has to own it. Beside an error the report has what was
// measured until then; nil: nothing was.
func Client(ctx context.Context, o Options) (*report.Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	addr, err := target(ctx, o.Host, o.Owned)
	if err != nil {
		return nil, err
	}
	m := &measured{options: &o, server: netip.AddrPortFrom(addr, o.Port), started: time.Now().UTC().Truncate(time.Second)}
	if m.local, err = isLocal(addr); err != nil {
		return nil, err
	}
	if m.own, err = thisHost(); err != nil {
		return nil, err
	}
	if m.machine, err = machine.Describe(); err != nil {
		return nil, err
	}
	if err := m.plan(); err != nil {
		return nil, err
	}
	sampler, err := sample.Open(o.Router)
	if err != nil {
		return nil, err
	}
	m.without = sampler.Without
	if o.IPerf3 {
		err = m.withIPerf3(ctx, sampler)
	} else {
		err = m.withServer(ctx, sampler)
	}
	err = errors.Join(err, sampler.Close())
	m.entries = slices.DeleteFunc(m.entries, func(f *findings) bool { return len(f.results) == 0 })
	if len(m.entries) == 0 {
		return nil, err
	}
	return m.document(), err
}

// plan makes the entries: all cases, the first of them twice.
func (m *measured) plan() error {
	for _, c := range m.options.Cases() {
		if m.options.IPerf3 && c.Direction == Both {
			m.skipped = append(m.skipped, report.Skip{What: c.String(), Reason: errBothWays.Error()})
			continue
		}
		m.entries = append(m.entries, &findings{entry: entry{c, false}})
		if len(m.entries) == 1 {
			m.entries = append(m.entries, &findings{entry: entry{c, true}})
		}
	}
	if len(m.entries) == 0 {
		return errBothWays
	}
	return nil
}

// withServer measures with a weir bench server.
func (m *measured) withServer(ctx context.Context, sampler *sample.Sampler) error {
	c, err := connect(ctx, m.server, m.options.Key, m.options.Program)
	if err != nil {
		return err
	}
	defer c.close()
	c.sampler = sampler
	m.welcome = c.welcome
	if c.unproven != nil {
		m.noProbe = c.unproven.Error()
	}
	if err := m.fits(c.welcome.Limits); err != nil {
		return err
	}
	return m.interleave(func(e *findings) error {
		if err := m.rest(ctx, c); err != nil {
			return err
		}
		m.begin()
		r, err := c.run(ctx, e.request(m.server.Addr(), m.options.Seconds))
		if err == nil {
			e.results = append(e.results, r)
		}
		return err
	})
}

// fits refuses a benchmark that the server would not let end.
func (m *measured) fits(l Limits) error {
	if whole := m.options.Estimate(); whole > l.Session {
		return fmt.Errorf("this takes about %s, and the server gives one client %s: measure less, or start it with --max-session %s",
			whole.Round(time.Second), l.Session, (whole * 5 / 4).Round(time.Minute))
	}
	return nil
}

// rest measures round-trip times without load, and lets queues run empty.
func (m *measured) rest(ctx context.Context, c *client) error {
	if c.probes == nil {
		return sleep(ctx, idleSpan)
	}
	idle, cancel := context.WithTimeout(ctx, idleSpan)
	defer cancel()
	rtts, lost, err := c.probes.measure(idle)
	if err != nil {
		return fmt.Errorf("measure round-trip times: %w", err)
	}
	m.lost += lost
	if len(rtts) > 0 {
		m.idle = append(m.idle, rtts...)
		m.before = append(m.before, rtts)
	}
	return ctx.Err()
}

// begin tells who wants to know of it that the first run begins.
func (m *measured) begin() {
	if loaded := m.options.Loaded; loaded != nil {
		m.options.Loaded = nil
		loaded(omitted, m.options.Seconds)
	}
}

// interleave measures each entry once in each round, in random order.
func (m *measured) interleave(measure func(*findings) error) error {
	o := m.options
	bar := progress.New(o.Progress, o.Runs*len(m.entries), o.Estimate())
	defer bar.End()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for _, e := range stats.Interleave(random, o.Runs, m.entries) {
		bar.Step("%s", e.Case)
		if err := measure(e); err != nil {
			return fmt.Errorf("%s: %w", e.Case, err)
		}
		bar.Done(1)
	}
	return nil
}

// rates are the rates of one direction in bit/s, of all runs.
func (f *findings) rates(up bool) stats.Sample {
	var s stats.Sample
	for _, r := range f.results {
		if d := r.way(up); d != nil {
			s = append(s, d.rate())
		}
	}
	return s
}

// of gathers one figure of one direction.
func (f *findings) of(up bool, figure func(*direction) float64) stats.Sample {
	var s stats.Sample
	for _, r := range f.results {
		if d := r.way(up); d != nil {
			s = append(s, figure(d))
		}
	}
	return s
}

// quantiles are one of the round-trip times of each run.
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
