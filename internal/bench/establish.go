package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// flagRST ends a connection.
const flagRST = 0x04

// openRate, in frames per second, is one that every path keeps up with; where
// not, openPasses are made.
const (
	openRate   = 200_000
	openPasses = 10
)

// Open opens all connections of the case, in both directions, and compares each
// frame with what has to arrive: addresses, ports and checksums as translated.
// It sends again what was lost.
func (r *Route) Open(ctx context.Context) error {
	r.fresh = uint32(r.way.c.Flows)
	for i, s := range r.way.opening() {
		n, err := r.openStep(ctx, s, i+1, sending{openRate, 0, unwatched})
		if err == nil && n < r.way.c.Flows {
			err = fmt.Errorf("%w: after %d tries %d of %d flows came through", errWrongFrames, openPasses, n, r.way.c.Flows)
		}
		if err != nil {
			return fmt.Errorf("frame %d of the connections' beginning: %w", i+1, err)
		}
	}
	return nil
}

// OpenMost is [Route.Open] for a path that may not hold all connections: it sends
// again what was lost for as long as that brings more of them through, at a rate
// as for [Route.Establish], and gives the number of those that work.
func (r *Route) OpenMost(ctx context.Context, rate float64) (n int, err error) {
	r.fresh = uint32(r.way.c.Flows)
	n = r.way.c.Flows
	for i, s := range r.way.opening() {
		through, err := r.openStep(ctx, s, i+1, sending{rate, 1, r.watch})
		if err != nil {
			return 0, fmt.Errorf("frame %d of the connections' beginning: %w", i+1, err)
		}
		n = min(n, through)
	}
	return n, nil
}

// sending is how a frame of each connection is sent, again and again until all
// came through.
type sending struct {
	rate  float64 // frames per second
	least int     // so many more have to come through by a pass for another to follow
	watch func(run func() error) error
}

// openStep gives the number of connections of which a frame came through.
func (r *Route) openStep(ctx context.Context, s step, turn int, how sending) (n int, err error) {
	sink, err := newCheckSink(r.way, s, turn, r.run.answers)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.close()) }()
	for range openPasses {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if err := r.sendEach(s, how.rate, how.watch); err != nil {
			return n, err
		}
		flows, err := r.run.settle(sink)
		if err != nil {
			return n, err
		}
		before := n
		if n = int(flows); n == r.way.c.Flows || n-before < how.least {
			return n, nil
		}
	}
	return n, nil
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
func (r *Route) Establish(ctx context.Context, rate float64) (e Established, err error) {
	r.fresh = uint32(r.way.c.Flows)
	cores := r.stage.setting.cores[:2]
	before, err := readCores(cores)
	if err != nil {
		return e, err
	}
	begin := time.Now()
	e.Valid = r.way.c.Flows
	for i, s := range r.way.opening() {
		n, err := r.establishStep(ctx, s, i+1, rate)
		if err != nil {
			return e, fmt.Errorf("frame %d of the connections' beginning: %w", i+1, err)
		}
		e.Valid = min(e.Valid, n)
	}
	took := time.Since(begin).Seconds()
	after, err := readCores(cores)
	e.Foreign = (after.foreign - before.foreign) / (took * float64(len(cores)))
	return e, err
}

func (r *Route) establishStep(ctx context.Context, s step, turn int, rate float64) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	sink, err := newCheckSink(r.way, s, turn, r.run.answers)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.close()) }()
	if err := r.sendEach(s, rate, r.watch); err != nil {
		return 0, err
	}
	flows, err := r.run.settle(sink)
	return int(flows), err
}

// sendEach sends one frame of each connection at a rate.
func (r *Route) sendEach(s step, rate float64, watch func(func() error) error) (err error) {
	flows := uint32(r.way.c.Flows)
	g, err := newPacedGenerator(r.way, s, flowRange{0, flows, 1}, r.run.cores[0], uint64(flows), r.run.answers, paceFor(rate, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	g.first = r.first
	return watch(func() error {
		_, err := r.send(g, flows)
		return err
	})
}

// TearDown ends all TCP connections of the case by a reset of their clients at a
// rate, and gives the number of resets that came through.
func (r *Route) TearDown(ctx context.Context, rate float64) (n int, err error) {
	if !r.way.c.tcp() {
		return 0, errors.New("tear connections down: only those of TCP end")
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	sink, err := newCountSink(r.way, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.close()) }()
	short := trueSize(minimum, r.way.c.ipv6(), true) - fcsLen
	data := short - (&frameSpec{ipv6: r.way.c.ipv6(), tcp: &segment{}}).headerLen() // that the client sent
	reset := &segment{flags: flagRST | flagACK, sequence: nearSequence + 1 + uint32(data), ack: farSequence + 1}
	if err := r.sendEach(step{false, reset, short}, rate, r.watch); err != nil {
		return 0, err
	}
	sink.settle()
	frames, _, _ := sink.read()
	return int(frames), nil
}

// Flood sends frames of connections that nobody knows and nobody answers, TCP's
// first, at a rate, and does not look what becomes of them: the far end's host
// drops them as it drops what is not for it.
func (r *Route) Flood(ctx context.Context, rate float64, frames uint32) error {
	l := Load{Rate: rate, Frames: frames, New: true}
	if err := errors.Join(ctx.Err(), r.check(l)); err != nil {
		return err
	}
	g, err := r.generatorFor(l)
	if err != nil {
		return err
	}
	return errors.Join(g.run(frames), g.close())
}
