package daemon

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/ruleset"
)

// overloadPause is how often the daemon looks whether packets have found a source with too
// many connections. It reads one number. overloadRetry is how long it waits after a
// failure. The dataplane keeps the source out meanwhile.
const (
	overloadPause = 50 * time.Millisecond
	overloadRetry = time.Second
)

// overloader puts sources with too many connections into the tables that their rules name
// with overload.
type overloader struct {
	readiness
	box *box

	of     *dataplane.Dataplane // what was last looked at; nil: nothing yet
	seen   uint32               // its number then
	notYet time.Time
}

func (*overloader) String() string { return "overload tables" }

func (o *overloader) Run(ctx context.Context) error {
	o.set()
	return every(ctx, overloadPause, o.look)
}

// look handles what is new. At the start this is all that came while no daemon lived.
func (o *overloader) look() {
	b := o.box
	if !b.mu.TryLock() { // during a load
		return
	}
	defer b.mu.Unlock()
	if b.dp == nil || time.Now().Before(o.notYet) {
		return
	}
	number := b.dp.Overloads()
	if o.of == b.dp && o.seen == number {
		return
	}
	began := time.Now()
	if err := b.overload(); err != nil {
		b.cfg.Log.Error("put a source into its overload table", "error", err)
		o.notYet = began.Add(overloadRetry)
		return
	}
	o.of, o.seen = b.dp, number
	// With a large table of sources this takes long: it gets a tenth of the time at most.
	o.notYet = time.Now().Add(9 * time.Since(began))
}

// overload puts the sources that are over into their tables, and ends the states that
// their rules flush. A source that cannot be put there stays over. Sources of limiters with few
// states leave their tables.
func (b *box) overload() (failed error) {
	byTable := make(map[string][]dataplane.Overload)
	for _, source := range b.dp.Overloaded() {
		byTable[source.Table] = append(byTable[source.Table], source)
	}
	for _, table := range slices.Sorted(maps.Keys(byTable)) {
		sources := byTable[table]
		var put []ruleset.TableEntry
		var remove []netip.Prefix
		for _, s := range sources {
			if prefix := netip.PrefixFrom(s.Addr, s.Bits); s.Out {
				remove = append(remove, prefix)
			} else {
				put = append(put, ruleset.TableEntry{Prefix: prefix})
			}
		}
		changed, err := b.changeTableLocked(table, put, remove)
		if err != nil {
			failed = err
			if changed == 0 {
				continue
			}
		}
		ended := b.dp.Settle(sources)
		b.cfg.Log.Info("sources with too many connections or states", "table", table, "added", len(put), "removed", len(remove), "first", sources[0].Addr, "states_ended", ended)
	}
	return failed
}
