package daemon

import (
	"errors"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
)

// SetQueueRate gives the queues of an interface and direction another rate.
func (c *controller) SetQueueRate(r *control.QueueRate) (*control.QueueRateSet, error) {
	b := c.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dp == nil || b.rules == nil {
		return nil, errors.New("no rules are in force yet")
	}
	by := dataplane.ByCommand
	if r.Autorate {
		by = dataplane.ByAutorate
	}
	if err := b.dp.SetQueueRate(r.Interface, r.In, r.Rate, by); err != nil {
		return nil, err
	}
	if err := b.holdAtRate(r.Interface, r.In); err != nil {
		return nil, err
	}
	set := &control.QueueRateSet{Rate: r.Rate}
	for i := range b.rules.program.Shapers {
		if s := &b.rules.program.Shapers[i]; s.Interface == r.Interface && s.In == r.In {
			set.OfRules = s.Classes[0].Max.Bytes
		}
	}
	if set.Rate == 0 {
		set.Rate = set.OfRules
	}
	if !r.Autorate {
		b.cfg.Log.Info("the rate of queues was set", "interface", r.Interface, "in", r.In, "rate", 8*set.Rate, "rules", 8*set.OfRules)
	}
	return set, nil
}
