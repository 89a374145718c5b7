package daemon

import (
	"context"
	"errors"
	"os"
	"time"

	"weir/internal/fw/control"
	"weir/internal/host/service"
)

// Status identifies the daemon that answers. It waits for no lock: the process that asks
// may hold what a task waits for.
func (c *controller) Status() control.Status {
	s := control.Status{PID: os.Getpid(), Version: c.box.cfg.Version, Started: c.started}
	if loaded := c.box.loaded.Load(); loaded != nil {
		s.Loaded = *loaded
	}
	return s
}

// Load puts a ruleset in force. After an error the old one stays. While another process
// replaces the dataplane, Load waits without holding a lock: that process may be taking
// over, and asks this daemon to leave.
func (c *controller) Load(ctx context.Context, r control.LoadRequest) (*control.LoadResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.living, func() { cancel(control.ErrEnding) })()
	source := Source{Name: r.File, Path: r.Path, Text: r.Text, Beside: r.Beside, load: newLoad(), hosts: lookups(r.NoDNS)}
	defer c.box.frugal.begin(source.bytes())()
	m, err := c.box.machine()
	if err != nil {
		return nil, err
	}
	source.lookUp(ctx, m) // before anything waits for the load
	var done *control.LoadResult
	err = untilFree(ctx, busyPatience, func() (err error) {
		done, err = c.box.load(source, r.Confirm)
		return err
	})
	return done, err
}

func (b *box) load(source Source, confirm time.Duration) (*control.LoadResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, err := b.machine()
	if err != nil {
		return nil, err
	}
	source.keepAnchors(&b.source)
	source.dropGivenAnchors(m)
	if err := b.loadUntil(source, m, confirm); err != nil {
		return nil, source.withAnchors(err)
	}
	b.retrying = false
	b.cfg.Log.Info("loaded", "file", source.Name, "rules", len(b.rules.texts))
	done := &control.LoadResult{Rules: len(b.rules.texts), Warnings: b.rules.warned()}
	if b.waiting != nil {
		b.cfg.Log.Warn("will roll back unless confirmed", "within", confirm, "before", b.waiting.before.Path)
		done.Before = b.waiting.before.Path
	}
	return done, nil
}

// End ends the daemon and changes nothing else.
func (c *controller) End(why string) { c.leave(errors.New(why)) }

// notify tells the service manager, if there is one.
func (b *box) notify(state string) {
	if err := service.Notify(state); err != nil {
		b.cfg.Log.Warn("tell the service manager", "state", state, "error", err)
	}
}
