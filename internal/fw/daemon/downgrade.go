package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
)

// downgradePause is how often the copies are updated while weir waits for the older
// version.
const downgradePause = 100 * time.Millisecond

// layoutOfPolicies is the first layout whose versions follow IPsec policies.
const layoutOfPolicies = 14

var errNothingToHand = errors.New("weir does not run here: there are no connections to hand over")

// A Downgrade holds the options of `weir downgrade`.
type Downgrade struct {
	Layout     uint32 // of the older version's tables; 0: the one before this version's
	LoseStates bool   // allow losing connections whose states do not fit
}

// Run implements `weir downgrade`. It keeps a copy of the states in an older layout until
// an older weir has taken over with it. If ctx ends first, nothing has changed.
func (g Downgrade) Run(ctx context.Context, cfg *Config) (err error) {
	dir, err := dataplane.Folder("")
	if err != nil {
		return err
	}
	if g.Layout == 0 {
		g.Layout = dataplane.Layouts()[0]
	}
	d, err := dataplane.BeginDowngrade(dir, g.Layout)
	if errors.Is(err, dataplane.ErrNotLoaded) {
		return errNothingToHand
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := g.agree(cfg, d); err != nil {
		return err
	}
	if err := d.Offer(); err != nil {
		return err
	}
	if err := g.warnOfPolicies(cfg); err != nil {
		return err
	}
	copied, lost := d.Count()
	cfg.Log.Info("start the older weir now, in another terminal; this command waits until it has taken over",
		"connections", copied, "lost", lost, "layout", g.Layout, "limit_states", d.Limit())
	return g.wait(ctx, cfg, d)
}

// warnOfPolicies says what becomes of packets that IPsec policies select.
func (g Downgrade) warnOfPolicies(cfg *Config) error {
	var followed rundir.Policies
	if err := rundir.ReadJSON(cfg.Folder.Policies(), &followed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if g.Layout < layoutOfPolicies && followed != (rundir.Policies{}) {
		cfg.Log.Warn("the older weir does not follow IPsec policies: what they encrypt or block, it forwards in clear", "policies", followed.Followed)
	}
	return nil
}

// agree asks the administrator before connections are lost.
func (g Downgrade) agree(cfg *Config, d *dataplane.Downgrade) error {
	if fields := d.LostFields(); len(fields) > 0 {
		cfg.Log.Info("the older weir does not know some fields of states; the connections go on without them", "fields", fields)
	}
	copied, lost := d.Count()
	if lost == 0 || g.LoseStates {
		return nil
	}
	what := fmt.Sprintf("%d of %d connections will be lost: the older version cannot hold their states", lost, lost+copied)
	if cfg.Ask != nil && cfg.Ask(what) {
		return nil
	}
	return fmt.Errorf("%s; %w", what, errWouldLose)
}

// wait keeps the copy current until the older weir has taken over.
func (g Downgrade) wait(ctx context.Context, cfg *Config, d *dataplane.Downgrade) error {
	for {
		taken, err := d.Takeover()
		if err != nil {
			return err
		}
		if taken != dataplane.TakenByNobody {
			return finish(cfg, d, taken)
		}
		if err := d.Follow(); err != nil {
			return errors.Join(err, d.Withdraw())
		}
		pause := downgradePause
		if d.IsBeingTaken() {
			pause = 0
		}
		select {
		case <-ctx.Done():
			if err := d.Withdraw(); err != nil {
				return err
			}
			return errors.New("interrupted before an older weir took over; this version stays")
		case <-time.After(pause):
		}
	}
}

func finish(cfg *Config, d *dataplane.Downgrade, taken dataplane.Takeover) error {
	if err := d.Finish(); err != nil {
		return err
	}
	if taken == dataplane.TakenAsCopy {
		cfg.Log.Warn("the older weir copied the states and did not use the offered tables, as it does if its rules have another limit of states: busy connections may break",
			"limit_states", d.Limit())
	}
	kept, lost := d.Count()
	cfg.Log.Info("the older weir has taken over", "kept", kept, "lost", lost)
	return nil
}
