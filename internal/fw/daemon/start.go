package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/gateway"
	"weir/internal/fw/htb"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/internal/host/xfrm"
)

// Run implements `weir run`. It returns when ctx ends or another daemon takes over, and
// leaves the dataplane forwarding. If it returns an error before the daemon was ready,
// the box is unchanged.
func Run(ctx context.Context, cfg *Config) error {
	dir, err := dataplane.Folder("")
	if err != nil {
		return err
	}
	b := &box{cfg: cfg, dir: dir, hooks: make(map[int]hooked), waits: make(chan struct{}, 1), changed: make(chan struct{}, 1), again: make(chan struct{}, 1)}
	removeLeftovers(cfg)
	b.gateways = gateway.NewWatcher(b.recordedDown())
	b.readFormer()
	defer b.gateways.Close()
	// No event is lost from here on. If something changes while the start reads the
	// machine, the first task reads it again.
	watcher, err := netif.Watch()
	if err != nil {
		return err
	}
	defer watcher.Close()
	b.routeMTUs.watch = watcher.WatchRouteMTUs
	b.policies = newPolicies(cfg)
	heard, err := xfrm.Watch()
	if err != nil && !errors.Is(err, xfrm.ErrNone) {
		cfg.Log.Warn("IPsec policies are only looked at every some seconds", "error", err)
	}
	if heard != nil {
		defer heard.Close()
	}
	b.logPPPoE(b.lines.find(b.pppoeFolder())) // the box must be filtered all the same
	defer b.lines.close()                     //nolint:errcheck // its programs go on
	lock, err := b.startAsking(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer b.close()
	b.logRollback(cfg.Folder.RemoveRollback()) // what this start put in force needs no confirmation
	return b.serve(ctx, watcher, heard)
}

// startFile starts with the rule file. Under --or-block a file that does not load is no
// error: the rules in force stay, or everything is blocked if there are none. retrier
// tries the file again, because at boot its interfaces and addresses may not exist yet.
func (b *box) startFile(ctx context.Context) (lock *os.File, err error) {
	before, err := b.sourceToRollBackTo()
	if err != nil {
		return nil, err
	}
	b.rollingBack, b.substitute = before != nil, false
	if b.rollingBack {
		lock, err = b.startRollback(ctx, *before)
		if errors.Is(err, errConfirmed) {
			return b.startFile(ctx)
		}
		return lock, err
	}
	wanted, err := b.readSource()
	if err == nil {
		b.logStarting()
		err = b.readBeside(ctx, &wanted)
	}
	if err == nil {
		lock, err = b.start(ctx, wanted)
	}
	if err != nil && b.leaveOutAnchors(&wanted) {
		lock, err = b.start(ctx, wanted)
	}
	if err == nil || !b.cfg.OrBlock || ctx.Err() != nil || errors.Is(err, errWouldLose) {
		return lock, err
	}
	b.cfg.Log.Error("the rules do not load; starting without them", "file", b.cfg.File, "error", err)
	b.retrying = true
	other := b.withoutFile()
	lock, err = b.start(ctx, other)
	if err != nil && !other.Builtin && ctx.Err() == nil && !errors.Is(err, errWouldLose) {
		return b.startBlocked(ctx, other, err)
	}
	return lock, err
}

// readBeside gives the file of a start what belongs to it: the anchors that were loaded at
// run time, and the hosts that it and they name.
func (b *box) readBeside(ctx context.Context, source *Source) error {
	b.recallAnchors(source)
	if err := b.findHosts(ctx, source); err != nil {
		return err
	}
	before, err := b.sourceInForce()
	if len(source.Anchors) == 0 || err != nil || source.sameFile(&before) {
		return nil
	}
	m, err := b.machine()
	if err != nil {
		return err
	}
	source.dropGivenAnchors(m)
	return nil
}

// findHosts finds the hosts of the file that a start loads. Under --or-block only hosts
// that are known already count: weir must not wait for the DNS while nothing is filtered.
func (b *box) findHosts(ctx context.Context, source *Source) error {
	if b.cfg.OrBlock {
		b.rememberHosts(source)
		return nil
	}
	m, err := b.machine()
	if err != nil {
		return err
	}
	source.lookUp(ctx, m)
	return nil
}

// rememberHosts gives a source the known hosts of the rules in force.
func (b *box) rememberHosts(source *Source) {
	if before, err := b.sourceInForce(); err == nil && source.hosts != nil {
		source.hosts.Remember(before.hosts.Known())
	}
}

// startRollback starts with the rules from before a load that was not confirmed.
func (b *box) startRollback(ctx context.Context, before Source) (*os.File, error) {
	b.substitute = !before.Builtin
	b.logStarting()
	lock, err := b.start(ctx, before)
	if errors.Is(err, errConfirmed) {
		return nil, err
	}
	if err != nil && b.cfg.OrBlock && !before.Builtin && ctx.Err() == nil && !errors.Is(err, errWouldLose) {
		lock, err = b.startBlocked(ctx, before, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; weir confirm keeps the rules that were loaded last", err)
	}
	b.source.tables = nil // they are in force
	return lock, nil
}

// startBlocked starts with everything blocked because the earlier rules do not load
// again.
func (b *box) startBlocked(ctx context.Context, before Source, why error) (*os.File, error) {
	b.cfg.Log.Error("the earlier rules no longer load", "file", before.Path, "error", why)
	return b.start(ctx, builtin(b.cfg.Management))
}

func (b *box) logStarting() {
	b.cfg.Log.Info("starting; the kernel takes a second or more to check the programs")
}

// start climbs the ladder. If it returns an error, every rung is undone.
func (b *box) start(ctx context.Context, source Source) (lock *os.File, err error) {
	m, err := b.machine()
	if err != nil {
		return nil, err
	}
	// Held from here on unless a daemon lives. Without the lock two starts could
	// interfere, and a start in another namespace could take the folder for
	// abandoned.
	if lock, err = takeFolder(ctx, b.cfg); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && lock != nil {
			err = errors.Join(err, removeAbandoned(b.cfg.Folder, b.dir))
			lock.Close()
			lock = nil
		}
	}()
	if err := b.refuseForeign(m); err != nil {
		return lock, err
	}
	var dp *dataplane.Dataplane
	var rules *compiled
	err = untilFree(ctx, busyPatience, func() (err error) {
		dp, rules, err = b.build(source, m)
		return err
	})
	if err != nil {
		return lock, err
	}
	if err := b.checkLoss(dp); err != nil {
		return lock, errors.Join(err, dp.Close())
	}
	if lock == nil {
		if lock, err = takeOver(ctx, b.cfg, "weir run (process %d) takes over; packets go on by the rules in force"); err != nil {
			dp.Close() //nolint:errcheck // it was never live
			return nil, err
		}
		b.cfg.Log.Info("took over from another daemon")
		err := b.checkRollback()
		if err == nil {
			err = b.keepLaterTables(source, dp, rules)
		}
		if err != nil {
			dp.Close() //nolint:errcheck // it was never live
			return lock, err
		}
	}
	var undo ladder
	if err := b.climb(ctx, &undo, dp, source, rules, m); err != nil {
		return lock, errors.Join(err, b.undo(undo))
	}
	return lock, nil
}

// undo undoes the rungs that were climbed. If nothing was loaded before, the box is then
// as it was found, and the record of that is removed.
func (b *box) undo(done ladder) error {
	b.pulse.follow(nil)
	b.policies.leave(b.dp)
	b.dp, b.rules, b.hooks = nil, nil, make(map[int]hooked)
	if err := done.down(); err != nil {
		return err
	}
	if b.first {
		return b.found.restored()
	}
	return nil
}

// climb changes the box, one rung after the other. If a dataplane runs already, only new
// interfaces are described before the commit: the old programs read the same tables.
func (b *box) climb(ctx context.Context, undo *ladder, dp *dataplane.Dataplane, source Source, rules *compiled, m *machine) error {
	closing := sync.OnceValue(dp.Close)
	undo.add(closing)
	before, err := b.readBefore(m)
	if err != nil {
		return err
	}
	b.noteForeignDrops()
	b.noteMarkRules(rules.options.MarkMask)
	if err := b.guard(undo, rules.options.MarkMask); err != nil {
		return err
	}
	if b.first {
		undo.add(func() error { return b.found.restoreFeatures(m.names()) })
		undo.add(func() error { return dataplane.Remove(b.dir) })
		undo.add(closing) // it holds the folder that is removed
	}
	b.choose(m)
	b.dp, b.source, b.rules, b.host = dp, source, rules, m.host
	if err := b.setInterfaces(m, before); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.importSockets(m); err != nil {
		return err
	}
	if b.first {
		undo.add(func() error { return b.found.divertOff(noDivert) })
	}
	if err := b.divertOn(rules); err != nil {
		return err
	}
	report, err := b.commit(dp, source, rules, m)
	if err != nil {
		return fmt.Errorf("attach the dataplane: %w", err)
	}
	b.pulse.follow(dp)
	b.noteStates(report)
	b.divertOff()
	if err := b.forward(undo, m); err != nil {
		return err
	}
	b.noteLoaded(b.first)
	if err := b.pruneTables(); err != nil {
		b.cfg.Log.Warn("records of old tables stay", "error", err)
	}
	return nil
}

// forward lets the interfaces forward once the programs are in force. If another daemon
// has left for this one, there is no way back: the follower tries again what fails.
func (b *box) forward(undo *ladder, m *machine) error {
	if err := narrowGuard(b.rules.options.MarkMask); err != nil {
		b.cfg.Log.Warn("the guard accepts bits of the mark that are no longer weir's", "error", err)
	}
	if b.first {
		undo.add(htb.RemoveAll)
		undo.add(func() error { return b.found.restoreForwarding(b.readNames) })
	}
	err := b.found.forwardOn(m.hooked(b.hooks), m.links)
	if err == nil || !b.first {
		err = errors.Join(err, b.updateInterfaces(m))
	}
	if b.first {
		return err
	}
	b.updateLater(err)
	return nil
}

// readNames returns the names of the interfaces that exist now.
func (b *box) readNames() (map[int]string, error) {
	m, err := b.machine()
	if err != nil {
		return nil, err
	}
	return m.names(), nil
}

// readBefore reads what an earlier daemon left: the record of the settings it found, and
// the indexes of the interfaces that its dataplane is attached to.
func (b *box) readBefore(m *machine) (before map[int]bool, err error) {
	b.first = false
	if b.found, err = readFound(b.cfg.Folder.Found()); err != nil {
		return nil, err
	}
	if err := b.found.forget(m.names()); err != nil {
		return nil, err
	}
	view, err := dataplane.Open(b.dir)
	switch {
	case errors.Is(err, dataplane.ErrNotLoaded):
		b.first = true
		return nil, nil
	case err == nil:
		view.Close() //nolint:errcheck // it was only to see whether it is there
	case !errors.Is(err, dataplane.ErrLayout): // another version's, which is replaced all the same
		return nil, fmt.Errorf("look at the running dataplane: %w", err)
	}
	var recorded []rundir.Interface
	if err := rundir.ReadJSON(b.cfg.Folder.Interfaces(), &recorded); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	before = make(map[int]bool)
	for _, n := range recorded {
		before[n.Index] = n.Hook != string(NoHook)
	}
	return before, nil
}

// guard raises the guard. Without nftables there is none. The programs at TCX egress drop
// the same packets on their interfaces.
func (b *box) guard(undo *ladder, mask uint32) error {
	before, stood, err := installedGuard()
	if err == nil && !stood {
		if err := b.found.guard(); err != nil {
			return err
		}
	}
	if err == nil {
		err = widenGuard(mask)
	}
	if errors.Is(err, errNoNft) {
		b.cfg.Log.Warn("no guard in nftables: only the programs at TCX egress drop forwarded packets that bypass weir", "reason", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("raise the guard: %w", err)
	}
	switch {
	case b.first && b.found.Guard:
		undo.add(lowerGuard)
	case stood && !slices.Contains(before, mask):
		undo.add(func() error { return raiseGuard(before) })
	}
	return nil
}

func (b *box) noteStates(r dataplane.Report) {
	if r.Unfinished != nil {
		b.cfg.Log.Error("the new rules are in force, but something of the old ones is left; the next load or start removes it", "error", r.Unfinished)
	}
	if r.Unreadable != nil {
		b.cfg.Log.Warn("cannot read the states of the other version: all connections start anew", "reason", r.Unreadable)
	}
	if r.RestUnreadable != nil {
		b.cfg.Log.Warn("connections are lost that an interrupted start or load had not copied yet: their states cannot be read", "reason", r.RestUnreadable)
	}
	switch {
	case r.Copied == 0 && r.Lost == 0:
	case r.Converted:
		b.cfg.Log.Info("converted the states of the other version", "kept", r.Copied, "lost", r.Lost)
	default:
		b.cfg.Log.Info("copied the states into new tables", "copied", r.Copied, "lost", r.Lost)
	}
}

// ladder holds one undo function for each rung climbed.
type ladder []func() error

func (l *ladder) add(undo func() error) { *l = append(*l, undo) }

// down undoes everything, the last rung first, and joins the errors.
func (l *ladder) down() error {
	var errs []error
	for _, undo := range slices.Backward(*l) {
		if err := undo(); err != nil {
			errs = append(errs, fmt.Errorf("undo: %w", err))
		}
	}
	return errors.Join(errs...)
}
