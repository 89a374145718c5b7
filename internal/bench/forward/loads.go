package forward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
)

// LoadOptions choose the path and the frames of [Loads].
type LoadOptions struct {
	Hook     string // weir's hook: xdp or tcx
	Entry    string // one of [paths.EntryNames]; "": the first
	LineRate uint64 // what queues give the line, in bits per second; 0: more than is sent
	Frame    int
	Flows    int
	Cores    int
	Back     bool // frames come from the internet
	Seconds  time.Duration
}

// Load is what became of frames that were offered at a rate.
type Load struct {
	Offered   float64 // frames per second that were wanted
	Sent      float64 // that the generators sent: fewer if the cores were full
	Forwarded float64
	Busy      float64 // share of the cores' time that went neither into waiting for the next frame nor to others
	Disturbed float64 // share of the cores' time that others took
}

// Loads starts a path and offers it rates in frames per second, one after the other. Each
// core generates its part, forwards it and counts what arrives. So no frames wait for a
// core: if it is full, fewer are sent.
func Loads(ctx context.Context, b *testbed.Testbed, name string, rates []float64, o LoadOptions) (all []Load, err error) {
	p, err := paths.New(name, paths.WeirOptions{Hook: o.Hook, LineRate: o.LineRate})
	if err != nil {
		return nil, err
	}
	f, err := p.Entry(o.Entry)
	if err != nil {
		return nil, err
	}
	w := &traffic.Setup{Testbed: b, Effect: p.Effect, Case: traffic.Case{Frame: o.Frame, Flows: o.Flows, Family: 4, Protocol: traffic.UDP,
		Cores: o.Cores, Direction: traffic.Both, Sink: traffic.Far}}
	stop, err := f.Start(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	base, err := w.MakeResults()
	if err != nil {
		return nil, err
	}
	defer base.Close()
	r := &run{setup: w, cores: b.Cores[:o.Cores]}
	send := func(s traffic.Frame) error { return r.sendOnce(s, w.AllFlows()) }
	if _, err := w.Open(ctx, traffic.Opening{Passes: passes, All: true, Send: send}); err != nil {
		return nil, err
	}
	sink, err := traffic.NewCountSink(w, o.Back)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	for _, rate := range rates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, err := r.load(sink, rate, o)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// load offers one rate.
func (r *run) load(sink *traffic.CountSink, rate float64, o LoadOptions) (l Load, err error) {
	each := rate / float64(len(r.cores))
	pace := traffic.PaceHolding(each)
	var gs []*traffic.Generator
	defer func() { traffic.CloseAll(gs) }()
	frames := make([]uint32, len(r.cores))
	for i, part := range r.setup.SteadyFlows(len(r.cores)) {
		g, err := traffic.NewPacedGenerator(r.setup, r.setup.Steady(o.Back), part, r.cores[i], 0, pace)
		if err != nil {
			return l, err
		}
		gs = append(gs, g)
		frames[i] = uint32(each * o.Seconds.Seconds())
	}
	sink.Reset()
	before, err := cpu.Read(r.cores)
	if err != nil {
		return l, err
	}
	begin := time.Now()
	if err := traffic.RunAll(gs, frames); err != nil {
		return l, err
	}
	took := time.Since(begin).Seconds()
	after, err := cpu.Read(r.cores)
	if err != nil {
		return l, err
	}
	sink.Settle()
	arrived, _, _ := sink.Read()
	l = Load{Offered: rate, Disturbed: max(0, after.Foreign-before.Foreign) / (took * float64(len(r.cores)))}
	sent := 0.0
	for i, g := range gs {
		p, err := g.Paced()
		if err != nil {
			return l, err
		}
		if p.LastNs <= p.FirstNs {
			return l, fmt.Errorf("the generator sent too few frames at %.0f per second", rate)
		}
		seconds := float64(p.LastNs-p.FirstNs) / 1e9
		l.Sent += float64(frames[i]) / seconds
		l.Busy += (1 - float64(p.WaitedNs)/float64(p.LastNs-p.FirstNs)) / float64(len(gs))
		sent += float64(frames[i])
	}
	l.Busy = max(0, l.Busy-l.Disturbed)
	l.Forwarded = l.Sent * float64(arrived) / sent
	return l, nil
}
