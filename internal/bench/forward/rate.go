package forward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/lab"
)

// RateOptions choose how one rate is measured.
type RateOptions struct {
	Hook    string // weir's hook: xdp or tcx
	Entry   string // one of [paths.EntryNames]; "": the first
	Flows   int
	Seconds time.Duration // steady traffic
	// Prepare is called in the firewall's namespace once the path is in place.
	Prepare func() error
}

// rateRetries is how many disturbed runs are repeated for one rate.
const rateRetries = 3

// Rate runs a path once, as weir bench forward does, with frames of 64 bytes on one core.
// It returns the packets forwarded per second, and the share of its time in which the
// core was idle or worked for others.
func Rate(ctx context.Context, b *testbed.Testbed, name string, o RateOptions) (perSecond, disturbed float64, err error) {
	p, err := paths.New(name, paths.WeirOptions{Hook: o.Hook})
	if err != nil {
		return 0, 0, err
	}
	f, err := p.Entry(o.Entry)
	if err != nil {
		return 0, 0, err
	}
	w := &traffic.Setup{Testbed: b, Effect: p.Effect, Case: traffic.Case{Frame: traffic.LeastFrame, Flows: o.Flows, Family: 4, Protocol: traffic.UDP, Cores: 1, Direction: traffic.OneWay, Sink: traffic.Far}}
	stop, err := f.Start(ctx, w)
	if err != nil {
		return 0, 0, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	if o.Prepare != nil {
		if err := b.Lab.Do(lab.FW, o.Prepare); err != nil {
			return 0, 0, err
		}
	}
	retries := rateRetries
	r := &run{setup: w, cores: b.Cores[:1], others: b.Cores[1:], seconds: o.Seconds.Seconds(), retries: &retries, least: firstFrames}
	found, err := r.measure(ctx)
	return found.mpps * 1e6, found.disturbed, err
}
