package forward

import (
	"context"
	"fmt"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/internal/units"
)

// countedWithin is how long queues may take until their counters have the last frames.
const countedWithin = 2 * time.Second

// counted checks that a path's queues counted the frames of a run and dropped none: a queue
// that sees no packets costs nothing.
func counted(ctx context.Context, w *traffic.Setup, p *paths.Path, sent uint64, within time.Duration) error {
	const least = 0.99
	for deadline := time.Now().Add(within); ; {
		c, err := p.Counts(ctx, w.Testbed)
		switch {
		case err != nil:
			return err
		case c.Drops > 0:
			return fmt.Errorf("the queues dropped %s packets: they should have room for all", units.Thousands(int(c.Drops)))
		case float64(c.Packets) >= least*float64(sent):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the queues counted %s of %s packets", units.Thousands(int(c.Packets)), units.Thousands(int(sent)))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
