package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
)

// waiting is a load that its user has not confirmed yet.
type waiting struct {
	until  time.Time
	before Source // the rules to go back to
	failed string // why the last rollback failed
}

// loadUntil puts a source in force that must be confirmed within span; 0 means that it
// needs no confirmation. It replaces a load that still waits: a rollback goes back to the
// rules that were confirmed last. The caller holds b.mu.
func (b *box) loadUntil(source Source, m *machine, span time.Duration) error {
	earlier := b.waiting
	if span == 0 {
		if err := b.putInForce(source, m); err != nil {
			return err
		}
		if err := b.stopWaiting(); err != nil {
			return fmt.Errorf("the rules are in force, but a start may roll back to the rules before an earlier load: %w", err)
		}
		return nil
	}
	next := &waiting{until: time.Now().Add(span), before: b.source}
	// Recorded before the load: if the daemon dies during it, the next one finds
	// this.
	if earlier != nil {
		next.before = earlier.before
	} else if err := b.recordTablesBefore(&next.before); err != nil {
		return err
	}
	if err := b.recordWaiting(next, source.Path); err != nil {
		return err
	}
	b.unconfirmed = true
	if err := b.putInForce(source, m); err != nil {
		b.unconfirmed = earlier != nil
		b.logRollback(b.recordWaiting(earlier, b.source.Path))
		return err
	}
	next.until = time.Now().Add(span)
	b.waiting = next
	signal(b.waits)
	if err := b.recordWaiting(next, source.Path); err != nil {
		b.cfg.Log.Warn("the record says that the load waits less long than it does", "error", err)
	}
	return nil
}

// recordWaiting records that the load of a file waits. nil records that none does.
func (b *box) recordWaiting(w *waiting, file string) error {
	if w == nil {
		return b.cfg.Folder.RemoveRollback()
	}
	s := &w.before
	return rundir.WriteJSON(b.cfg.Folder.Rollback(), rundir.Rollback{
		Until: w.until, File: file, Failed: w.failed,
		Before: rundir.Source{
			Name: s.Name, Path: s.Path, Text: s.Text, Beside: s.Beside, Builtin: s.Builtin, Hosts: s.hosts.Known(),
			Load: s.load,
		},
	})
}

// recordTablesBefore records what the tables of the rules in force hold, for the source to
// go back to.
func (b *box) recordTablesBefore(before *Source) error {
	before.tables = make(map[string]*rundir.Table)
	for name, entries := range b.rules.program.ChangedTables() {
		before.tables[name] = b.tableOf(b.rules, name, entries)
	}
	return b.cfg.Folder.WriteRollbackTables(before.tables)
}

// stopWaiting ends the wait and keeps the rules in force. If the record stays, the load
// still waits, because a start would roll it back.
func (b *box) stopWaiting() error {
	if err := b.cfg.Folder.RemoveRollback(); err != nil {
		return err
	}
	b.endWaiting()
	return nil
}

// endWaiting ends the wait for the load in force.
func (b *box) endWaiting() {
	b.waiting = nil
	b.unconfirmed = false
	signal(b.waits)
	if err := b.pruneStore(); err != nil {
		b.cfg.Log.Error("store tables", "error", err)
	}
}

// stopAfterRollback ends the wait when the rules before are in force. A record that stays
// leads to the same rules.
func (b *box) stopAfterRollback() {
	b.endWaiting()
	b.logRollback(b.cfg.Folder.RemoveRollback())
}

// sourceToRollBackTo returns what to load if the last daemon died while a load waited:
// nobody can have confirmed it. It returns nil if none waited.
func (b *box) sourceToRollBackTo() (*Source, error) {
	r, err := b.cfg.Folder.ReadRollback()
	if r == nil || err != nil {
		return nil, err
	}
	s := &r.Before
	b.cfg.Log.Warn("a load was not confirmed: restoring the rules before it", "loaded", r.File, "before", s.Path)
	if s.Builtin {
		own := builtin(b.cfg.Management)
		return &own, nil
	}
	before := restored(s)
	before.tables, err = b.cfg.Folder.ReadRollbackTables(func(path string, damage error) error {
		b.cfg.Log.Warn("what a table held before the load cannot be read", "record", path, "error", damage)
		return nil
	})
	return before, err
}

// errConfirmed ends a start that was to roll back a load.
var errConfirmed = errors.New("the load was confirmed meanwhile")

// checkRollback fails if the load that this start rolls back was confirmed while the start
// was building. The old daemon has already reported the confirmation.
func (b *box) checkRollback() error {
	if !b.rollingBack {
		return nil
	}
	r, err := b.cfg.Folder.ReadRollback()
	if r == nil && err == nil {
		return errConfirmed
	}
	return err
}

// Confirm confirms the waiting load.
func (c *controller) Confirm() (*control.ConfirmResult, error) {
	b := c.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		return nil, control.ErrNothingWaits
	}
	if err := b.stopWaiting(); err != nil {
		return nil, err
	}
	b.cfg.Log.Info("confirmed", "file", b.source.Path)
	return &control.ConfirmResult{File: b.source.Path}, nil
}

// roller rolls back loads that are not confirmed in time.
type roller struct {
	readiness
	box *box
}

func (*roller) String() string { return "rollback" }

func (r *roller) Run(ctx context.Context) error {
	r.set()
	for {
		var due <-chan time.Time
		if pause, ok := r.box.waitingFor(); ok {
			due = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.box.waits:
		case <-due:
			if err := r.box.rollBack(); err != nil {
				r.box.cfg.Log.Error("roll back", "error", err)
				if !sleep(ctx, retryPause) {
					return nil
				}
			}
		}
	}
}

func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// waitingFor returns how long a load still waits. ok is false if none does.
func (b *box) waitingFor() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		return 0, false
	}
	return time.Until(b.waiting.until), true
}

// rollBack restores the confirmed rules if the waiting load's time is up.
func (b *box) rollBack() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil || time.Until(b.waiting.until) > 0 {
		return nil
	}
	loaded := b.source.Path
	err := b.restoreBefore()
	if err != nil {
		b.waiting.failed = err.Error()
		return errors.Join(err, b.recordWaiting(b.waiting, loaded))
	}
	b.cfg.Log.Warn("not confirmed in time: rolled back", "loaded", loaded, "before", b.source.Path)
	b.stopAfterRollback()
	return nil
}

// rollBackAtEnd rolls back a waiting load when the daemon ends, because no daemon would
// do it afterwards.
func (b *box) rollBackAtEnd() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		return nil
	}
	loaded := b.source.Path
	if err := b.restoreBefore(); err != nil {
		return fmt.Errorf("roll back a load that was not confirmed: %w", err)
	}
	b.cfg.Log.Warn("the daemon ends and the load is not confirmed: rolled back", "loaded", loaded, "before", b.source.Path)
	b.stopAfterRollback()
	return nil
}

// restoreBefore restores the rules from before the waiting load.
func (b *box) restoreBefore() error {
	m, err := b.machine()
	if err != nil {
		return err
	}
	if err := b.putInForce(b.waiting.before, m); err != nil {
		return fmt.Errorf("to %s: %w", b.waiting.before.Path, err)
	}
	b.source.tables = nil // they are in force
	return nil
}

// logRollback logs that the record of a waiting load is wrong. The caller reports a more
// important error, or none.
func (b *box) logRollback(err error) {
	if err != nil {
		b.cfg.Log.Error("the next start may roll back needlessly", "error", err)
	}
}
