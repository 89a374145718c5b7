package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/lab"
)

// RateOptions say how one rate is measured.
type RateOptions struct {
	Hook    string // of weir: xdp or tcx
	Entry   string // one of [Stage.Entries]; "": the first
	Flows   int
	Seconds time.Duration // of steady traffic
	// Prepare is called in the firewall's namespace when the path is in place.
	Prepare func() error
}

// rateRetries is how many disturbed runs are repeated for one rate.
const rateRetries = 3

// Rate runs a path once, as weir bench forward does, for frames of 64 bytes on one
// core: how many packets it forwards in a second. The share of its time that the core
// was idle or worked for others comes with it.
func (t *Stage) Rate(ctx context.Context, name string, o RateOptions) (perSecond, disturbed float64, err error) {
	p, err := newPath(name, o.Hook)
	if err != nil {
		return 0, 0, err
	}
	i := slices.IndexFunc(p.flavours, func(f flavour) bool { return f.name == o.Entry || o.Entry == "" })
	if i < 0 {
		return 0, 0, fmt.Errorf("path %s has no entry %q", name, o.Entry)
	}
	s := t.setting
	w := &way{net: s.net, path: p, c: Case{Frame: minimum, Flows: o.Flows, Family: 4, Protocol: UDP, Cores: 1, Direction: OneWay, Sink: Far}}
	stop, err := p.flavours[i].start(ctx, s, w)
	if err != nil {
		return 0, 0, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	if o.Prepare != nil {
		if err := t.Lab().Do(lab.FW, o.Prepare); err != nil {
			return 0, 0, err
		}
	}
	retries := rateRetries
	r := &run{way: w, cores: s.cores[:1], others: s.cores[1:], seconds: o.Seconds.Seconds(), retries: &retries}
	found, err := r.measure(ctx)
	return found.mpps * 1e6, found.disturbed, err
}
