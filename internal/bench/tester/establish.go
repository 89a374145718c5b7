package tester

import (
	"context"
	"errors"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/traffic"
)

// openRate, in frames per second, is one that every path keeps up with; where
// not, openPasses are made.
const (
	openRate   = 200_000
	openPasses = 10
)

// Open opens all connections of the case, in both directions, and compares each
// frame with what has to arrive: addresses, ports and checksums as translated.
// It sends again what was lost.
func (t *Tester) Open(ctx context.Context) error {
	_, err := t.open(ctx, traffic.Opening{Passes: openPasses, All: true}, openRate, unwatched)
	return err
}

// OpenMost is [Tester.Open] for a path that may not hold all connections: it sends
// again what was lost for as long as that brings more of them through, at a rate
// as for [Tester.Establish], and gives the number of those that work.
func (t *Tester) OpenMost(ctx context.Context, rate float64) (n int, err error) {
	return t.open(ctx, traffic.Opening{Passes: openPasses, Least: 1}, rate, t.watch)
}

func (t *Tester) open(ctx context.Context, how traffic.Opening, rate float64, watch func(func() error) error) (n int, err error) {
	t.fresh = uint32(t.setup.Case.Flows)
	how.Send = func(s traffic.Frame) error { return t.sendEach(s, rate, watch) }
	return t.setup.Open(ctx, how)
}

// Established is what became of connections that were opened at a rate.
type Established struct {
	Valid   int // connections of which every frame arrived as it has to, both ways
	Foreign float64
}

// Establish opens all connections of the case once, each step of their beginning
// at a rate (frames per second, 1,000 at least; 0: as fast as they go), and
// counts those that are valid: their frames arrived, in both directions,
// translated as they should be, data included. A connection that was lost is not
// tried again. A frame that is wrong is an error.
func (t *Tester) Establish(ctx context.Context, rate float64) (e Established, err error) {
	cores := t.bed.Cores[:2]
	before, err := cpu.Read(cores)
	if err != nil {
		return e, err
	}
	begin := time.Now()
	if e.Valid, err = t.open(ctx, traffic.Opening{Passes: 1}, rate, t.watch); err != nil {
		return e, err
	}
	took := time.Since(begin).Seconds()
	after, err := cpu.Read(cores)
	e.Foreign = (after.Foreign - before.Foreign) / (took * float64(len(cores)))
	return e, err
}

// sendEach sends one frame of each connection at a rate.
func (t *Tester) sendEach(s traffic.Frame, rate float64, watch func(func() error) error) (err error) {
	flows := uint32(t.setup.Case.Flows)
	g, err := traffic.NewPacedGenerator(t.setup, s, t.setup.AllFlows(), t.bed.Cores[0], uint64(flows), traffic.PaceFor(rate, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	g.First = t.first
	return watch(func() error {
		_, err := t.send(g, flows)
		return err
	})
}

// TearDown ends all TCP connections of the case by a reset of their clients at a
// rate, and gives the number of resets that came through.
func (t *Tester) TearDown(ctx context.Context, rate float64) (n int, err error) {
	if !t.setup.Case.TCP() {
		return 0, errors.New("tear connections down: only those of TCP end")
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	sink, err := traffic.NewCountSink(t.setup, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	if err := t.sendEach(t.setup.Reset(), rate, t.watch); err != nil {
		return 0, err
	}
	sink.Settle()
	frames, _, _ := sink.Read()
	return int(frames), nil
}

// Flood sends frames of connections that nobody knows and nobody answers, TCP's
// first, at a rate, and does not look what becomes of them: the far end's host
// drops them as it drops what is not for it.
func (t *Tester) Flood(ctx context.Context, rate float64, frames uint32) error {
	l := Load{Rate: rate, Frames: frames, New: true}
	if err := errors.Join(ctx.Err(), t.check(l)); err != nil {
		return err
	}
	g, err := t.generatorFor(l)
	if err != nil {
		return err
	}
	return errors.Join(g.Run(frames), g.Close())
}
