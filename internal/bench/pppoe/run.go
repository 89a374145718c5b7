package pppoe

import (
	"context"

	"weir/internal/bench/forward"
	"weir/internal/bench/report"
)

// Run measures what a session costs a frame.
func Run(ctx context.Context, o Options) (*report.Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	f, err := forward.Run(ctx, o.forward())
	if f == nil {
		return nil, err
	}
	return document(f), err
}
