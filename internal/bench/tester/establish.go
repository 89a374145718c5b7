package tester

import (
	"context"
	"errors"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/traffic"
)

// openRate is a rate in frames per second that every path keeps up with. If one does not,
// lost frames are sent again, up to openPasses times.
const (
	openRate   = 200_000
	openPasses = 10
)

// Open opens all connections of the case in both directions. It compares each frame with
// the expected one: addresses, ports and checksums as translated. It sends lost frames
// again.
func (t *Tester) Open(ctx context.Context) error {
	_, err := t.open(ctx, traffic.Opening{Passes: openPasses, All: true}, openRate, unwatched)
	return err
}

// OpenMost is [Tester.Open] for a path that may not hold all connections. It repeats lost
// frames as long as that opens more connections, at a rate as for [Tester.Establish]. It
// returns the number of working connections.
func (t *Tester) OpenMost(ctx context.Context, rate float64) (n int, err error) {
	return t.open(ctx, traffic.Opening{Passes: openPasses, Least: 1}, rate, t.watch)
}

func (t *Tester) open(ctx context.Context, how traffic.Opening, rate float64, watch func(func() error) error) (n int, err error) {
	t.fresh = uint32(t.setup.Case.Flows)
	how.Send = func(s traffic.Frame) error { return t.sendEach(s, rate, watch) }
	return t.setup.Open(ctx, how)
}

// Established is the result of opening connections at a rate.
type Established struct {
	Valid   int // connections whose frames all arrived as expected, both ways
	Foreign float64
}

// Establish opens all connections of the case once. Each step of the opening has a rate
// (frames per second, at least 1,000; 0: as fast as possible). It counts the valid
// connections: their frames arrived in both directions, correctly translated, data
// included. It does not repeat lost frames. A wrong frame is an error.
func (t *Tester) Establish(ctx context.Context, rate float64) (e Established, err error) {
	cores := t.testbed.Cores[:2]
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
	g, err := traffic.NewPacedGenerator(t.setup, s, t.setup.AllFlows(), t.testbed.Cores[0], uint64(flows), traffic.PaceFor(rate, false))
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

// TearDown ends all TCP connections of the case by resets from their clients at a rate.
// It returns the number of resets that arrived.
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

// Flood sends first frames of TCP connections that nobody knows or answers, at a rate. It
// does not check what happens to them: the far host drops them because they are not for
// it.
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
