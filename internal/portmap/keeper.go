package portmap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"weir/internal/portmap/mapping"
)

// A keeper owns the mappings: it alone changes them, has their rules loaded and records
// them. What is in its table is in force.
type keeper struct {
	*Server
	clock func() int64                        // seconds since boot
	taken func(mapping.Protocol, uint16) bool // the box uses the port itself
	jobs  chan job
	table atomic.Pointer[mapping.Table]
	since atomic.Int64 // second since boot at which the mappings began
	moved chan struct{}

	redirects []mapping.Redirect // of the rules in force, when a host last asked

	has    int  // rules that the anchor had after the last load
	absent bool // no rule evaluates the anchor; it has been said
}

type job struct {
	do   func(*mapping.Table) error
	done chan error
}

// errNotLoaded means that the daemon does not take the rules.
var errNotLoaded = errors.New("the rules cannot be loaded")

// Change changes the mappings and loads their rules. After an error nothing has changed.
func (k *keeper) Change(ctx context.Context, do func(*mapping.Table) error) error {
	j := job{do, make(chan error, 1)}
	select {
	case k.jobs <- j:
		return <-j.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Clock returns the second since boot, and those since the mappings began.
func (k *keeper) Clock() (now int64, epoch uint32) {
	now = k.clock()
	return now, uint32(now - k.since.Load())
}

// start restores what was in force, and checks that a rule evaluates the anchor.
func (k *keeper) start(ctx context.Context, s *state) error {
	t := &mapping.Table{Limits: k.Limits, Allowed: k.Permissions.Allow, Own: k.own}
	k.since.Store(s.Since)
	k.readRedirects()
	for _, m := range t.Restore(s.Mappings) {
		k.Log.Warn("a mapping is no longer allowed", "mapping", text(&m))
	}
	t.Expire(k.clock())
	rules := t.Rules(&k.Interfaces)
	if rules == "" {
		rules = checkRule
	}
	if err := k.Rules.Load(ctx, k.Anchor, rules); err != nil {
		return err
	}
	has, called, err := k.Rules.Loaded(ctx, k.Anchor)
	if err == nil && !called {
		err = fmt.Errorf("no rule evaluates the anchor %s: add to the rules: anchor %q", k.Anchor, k.Anchor)
	}
	if err == nil {
		k.has = has
		err = k.record(t)
	}
	if err != nil || rules == checkRule {
		k.has = 0
		return errors.Join(err, k.Rules.Flush(ctx, k.Anchor, false))
	}
	return nil
}

// run serves until ctx ends.
func (k *keeper) run(ctx context.Context) error {
	look := time.NewTicker(lookPause)
	defer look.Stop()
	pause := time.Duration(0)
	for {
		expiry := time.NewTimer(max(k.untilEnd(), pause))
		select {
		case <-ctx.Done():
			expiry.Stop()
			return nil
		case j := <-k.jobs:
			began := time.Now()
			pause = k.batch(k.all(j))
			rest(ctx, time.Since(began))
		case <-k.moved:
			k.restart()
		case <-expiry.C:
			pause = k.batch(nil)
		case <-look.C:
			k.look(ctx)
		}
		expiry.Stop()
	}
}

// mostRest bounds how long a request may have to wait for others.
const mostRest = time.Second

// rest waits as long as the last batch took, twice: a host that asks without end keeps the
// daemon busy for a third of the time at most. Requests that come meanwhile share a load.
func rest(ctx context.Context, took time.Duration) {
	if took < time.Millisecond { // nothing was loaded
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(min(2*took, mostRest)):
	}
}

// untilEnd returns how long the next lease lasts.
func (k *keeper) untilEnd() time.Duration {
	end := k.table.Load().NextEnd()
	if end == 0 {
		return time.Hour
	}
	return time.Duration(max(end-k.clock(), 0)) * time.Second
}

// all collects the jobs that wait, so that one load serves them.
func (k *keeper) all(first job) []job {
	jobs := []job{first}
	for {
		select {
		case j := <-k.jobs:
			jobs = append(jobs, j)
		default:
			return jobs
		}
	}
}

// batch does jobs and expires leases, with at most one load. It returns how long to wait
// before leases are expired again. A load that has begun is finished, also while the server
// ends: what hosts are told must be what is in force.
func (k *keeper) batch(jobs []job) (pause time.Duration) {
	before := k.table.Load()
	next := before.Clone()
	for _, m := range next.Expire(k.clock()) {
		k.Log.Info("a mapping has expired", "mapping", text(&m))
	}
	if len(jobs) > 0 {
		k.readRedirects()
	}
	results := make([]error, len(jobs))
	for i, j := range jobs {
		results[i] = j.do(next)
	}
	err := k.load(before.Rules(&k.Interfaces), next.Rules(&k.Interfaces))
	if err != nil {
		k.Log.Error("load the rules", "anchor", k.Anchor, "error", err)
		pause = retryPause
	} else {
		k.tell(before, next)
		if err := k.record(next); err != nil {
			k.Log.Error("record the mappings", "error", err)
		}
	}
	for i, j := range jobs {
		if err != nil {
			results[i] = errors.Join(results[i], errNotLoaded)
		}
		j.done <- results[i]
	}
	return pause
}

// own reports whether a port is not to be given away: the box uses it, or rules of its own send it
// on.
func (k *keeper) own(p mapping.Protocol, port uint16) bool {
	return slices.ContainsFunc(k.redirects, func(r mapping.Redirect) bool { return r.Has(p, port) }) || k.taken(p, port)
}

// connection looks for a connection of a host. All states are read for it, so only the keeper asks,
// which rests afterwards.
func (k *keeper) connection(p mapping.Protocol, host, peer netip.AddrPort) (seen netip.AddrPort, left uint32, ok bool) {
	seen, lives, ok, err := k.Rules.Connection(p, host, peer)
	if err != nil {
		k.Log.Debug("look for a connection", "error", err)
	}
	return seen, uint32(lives.Seconds()), ok && err == nil
}

// readRedirects reads which ports the rules in force send on.
func (k *keeper) readRedirects() {
	all, err := k.Rules.Redirects(k.Anchor, k.WAN)
	if err != nil {
		k.Log.Debug("read which ports the rules send on", "error", err)
		return
	}
	k.redirects = all
}

// load has rules loaded if they are others than before.
func (k *keeper) load(before, next string) error {
	if before == next {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadPatience)
	defer cancel()
	return k.put(ctx, next)
}

func (k *keeper) put(ctx context.Context, rules string) error {
	if rules == "" {
		k.has = unknown
		err := k.Rules.Flush(ctx, k.Anchor, false)
		if err == nil {
			k.has = 0
		}
		return err
	}
	k.has = unknown
	if err := k.Rules.Load(ctx, k.Anchor, rules); err != nil {
		return err
	}
	if has, _, err := k.Rules.Loaded(ctx, k.Anchor); err == nil {
		k.has = has
	}
	return nil
}

// unknown is how many rules the anchor has after a load whose end nobody has seen. The next
// look loads again.
const unknown = -1

// tell logs what has been opened and closed.
func (k *keeper) tell(before, next *mapping.Table) {
	old, now := texts(before), texts(next)
	for _, one := range now {
		if !slices.Contains(old, one) {
			k.Log.Info("open", "mapping", one)
		}
	}
	for _, one := range old {
		if !slices.Contains(now, one) {
			k.Log.Info("closed", "mapping", one)
		}
	}
}

func texts(t *mapping.Table) (all []string) {
	for _, m := range t.All() {
		all = append(all, text(&m))
	}
	return all
}

func text(m *mapping.Mapping) string {
	return fmt.Sprintf("%s %d to %s", m.Protocol, m.External, m.Internal)
}

// record writes the state file and publishes a table.
func (k *keeper) record(t *mapping.Table) error {
	k.table.Store(t)
	return (&state{Since: k.since.Load(), Mappings: t.All()}).write(k.State)
}

// restart begins a new epoch: hosts learn from it that their mappings have another external
// address (RFC 6887, 8.5).
func (k *keeper) restart() {
	k.since.Store(k.clock())
	if err := k.record(k.table.Load()); err != nil {
		k.Log.Error("record the mappings", "error", err)
	}
}

// look brings the rules back if somebody has flushed the anchor, or has loaded others.
func (k *keeper) look(ctx context.Context) {
	has, called, err := k.Rules.Loaded(ctx, k.Anchor)
	if err != nil {
		k.Log.Debug("look at the anchor", "error", err)
		return
	}
	if has != k.has {
		k.Log.Warn("the anchor has other rules: loading those of the mappings again", "anchor", k.Anchor, "rules", has, "want", k.has)
		if err := k.put(ctx, k.table.Load().Rules(&k.Interfaces)); err != nil {
			k.Log.Error("load the rules", "anchor", k.Anchor, "error", err)
		}
		return
	}
	if absent := has > 0 && !called; absent != k.absent {
		k.absent = absent
		if absent {
			k.Log.Error("no rule evaluates the anchor any more: mappings have no effect", "anchor", k.Anchor)
		}
	}
}
