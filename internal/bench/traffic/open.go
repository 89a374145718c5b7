package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/units"
)

// Opening is how connections are opened. One frame of each connection is sent, then the
// next one. Each frame that arrives is compared with the expected one.
type Opening struct {
	Passes int               // how often lost frames are sent again, at most
	Least  int               // another pass follows only if one opens at least this many more
	All    bool              // it is an error if not all arrive
	Send   func(Frame) error // sends one frame of each connection
}

// Open opens the connections of the case. It returns how many work.
func (w *Setup) Open(ctx context.Context, how Opening) (n int, err error) {
	n = w.Case.Flows
	for i, s := range w.FirstFrames() {
		through, err := w.openStep(ctx, s, i+1, how)
		if err == nil && how.All && through < w.Case.Flows {
			err = fmt.Errorf("%w: after %d tries %s of %s flows came through", ErrWrongFrames, how.Passes,
				units.Thousands(through), units.Thousands(w.Case.Flows))
		}
		if err != nil {
			return 0, fmt.Errorf("frame %d of the connections' beginning: %w", i+1, err)
		}
		n = min(n, through)
	}
	return n, nil
}

// openStep returns the number of connections whose frame arrived.
func (w *Setup) openStep(ctx context.Context, s Frame, turn int, how Opening) (n int, err error) {
	sink, err := newCheckSink(w, s, turn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	for range how.Passes {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if err := how.Send(s); err != nil {
			return n, err
		}
		before := n
		if n, err = sink.settle(w.Case.Flows); err != nil || n == w.Case.Flows || n-before < how.Least {
			return n, err
		}
	}
	return n, nil
}

// settle waits until no more frames arrive from queues. It returns the number of flows
// seen.
func (k *checkSink) settle(all int) (n int, err error) {
	for range 20 {
		flows, err := k.verdict()
		if n = int(flows); err != nil || n == all {
			return n, err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return n, nil
}
