package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// What pfctl does with set pfctl-may-open yes lasts until pfctl -e or the next load of a
// file. None of it is recorded for a start: that loads a file, and so filters again.

// Errors in pfctl's words.
var (
	errDisabled = errors.New("pf not enabled")
	errEnabled  = errors.New("pf already enabled")
)

// flushed is what pfctl -F has taken from a ruleset. It is taken from what the text means,
// so the text is still there for pfctl -e.
type flushed struct{ parts []string }

func (f *flushed) has(part control.Opening) bool { return slices.Contains(f.parts, string(part)) }

// with returns f with one more part.
func (f *flushed) with(part control.Opening) flushed {
	if f.has(part) {
		return *f
	}
	return flushed{append(slices.Clip(f.parts), string(part))}
}

// from takes it from a resolved ruleset. As in pf, translations that are part of filter
// rules go with these, and anchors keep their rules, which nothing evaluates then.
func (f *flushed) from(rules *resolve.Ruleset) {
	all := f.has(control.FlushAll)
	ethers, scrubs := slices.Clone(rules.Ethers()), slices.Clone(rules.Scrubs())
	if all || f.has(control.FlushEthernet) {
		ethers = nil
		rules.First = resolve.FirstRules(nil, scrubs, rules.Translations)
	}
	if all || f.has(control.FlushNAT) {
		rules.Translations = nil
		rules.First = resolve.FirstRules(ethers, scrubs, nil)
	}
	if all || f.has(control.FlushRules) {
		rules.Rules = nil
		rules.First = resolve.FirstRules(ethers, nil, rules.Translations)
	}
	if all {
		rules.Tables, rules.Options.Skip = nil, nil
	}
	if f.has(control.FlushOptions) {
		rules.Options.Reset()
	}
}

// Open does what pfctl -d, -e and -F ask for.
func (c *controller) Open(ctx context.Context, r *control.OpenRequest) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.living, func() { cancel(control.ErrEnding) })()
	return untilFree(ctx, busyPatience, func() error { return c.box.open(r) })
}

func (b *box) open(r *control.OpenRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, err := b.machine()
	if err != nil {
		return err
	}
	switch r.Do {
	case control.Enable:
		return b.enableAgain(m)
	case control.Disable:
		err = b.disable(m)
	case control.FlushRules, control.FlushNAT, control.FlushEthernet, control.FlushOptions, control.FlushAll:
		err = b.flush(r.Do, m)
	default:
		return fmt.Errorf("%q is nothing that pfctl does", r.Do)
	}
	if err == nil {
		b.cfg.Log.Warn("pfctl has opened the box, until weir pfctl -e or weir load", "did", r.Do)
	}
	return err
}

// flush takes a part of the rules out of force. A load that waits for its confirmation
// still waits.
func (b *box) flush(part control.Opening, m *machine) error {
	if !b.rules.options.PfctlMayOpen {
		return control.ErrMayNotOpen
	}
	next := b.source
	next.flushed = b.source.flushed.with(part)
	return b.replace(next, m)
}

// disable detaches all programs. What they know stays, and states go on when the programs
// are attached again. The guard goes first: it drops what no program has seen.
func (b *box) disable(m *machine) error {
	switch {
	case !b.disabled.IsZero():
		return errDisabled
	case !b.rules.options.PfctlMayOpen:
		return control.ErrMayNotOpen
	}
	if err := b.noteDisabled(time.Now()); err != nil { // first: who reads it may be told too early, but never too late
		return err
	}
	err := b.found.localnetOff(m.names(), nil) // first: nothing would drop what comes from outside for it
	if err == nil {
		err = lowerGuard()
	}
	if err == nil {
		err = b.detachAll()
	}
	if err != nil {
		return errors.Join(err, b.enable(m))
	}
	b.updateLater(b.updateInterfaces(m))
	return nil
}

// detachAll detaches from every interface.
func (b *box) detachAll() error {
	for index := range b.hooks {
		if err := b.dp.Detach(index); err != nil {
			return fmt.Errorf("detach from %s: %w", b.nameOf(index), err)
		}
		delete(b.hooks, index)
	}
	return nil
}

func (b *box) nameOf(index int) string {
	if at := slices.IndexFunc(b.links, func(l netif.Link) bool { return l.Index == index }); at >= 0 {
		return b.links[at].Name
	}
	return fmt.Sprintf("interface %d", index)
}

// enable attaches the programs again, if pf is disabled. Like a start, it raises the guard
// first. From then on there is no way back: the follower tries again what fails.
func (b *box) enable(m *machine) error {
	if b.disabled.IsZero() {
		return nil
	}
	if err := widenGuard(b.rules.options.MarkMask); err != nil && !errors.Is(err, errNoNft) {
		return fmt.Errorf("raise the guard: %w", err)
	}
	b.disabled = time.Time{}
	err := b.attachNew(m)
	b.dp.BumpRoutes()
	b.updateLater(errors.Join(err, b.updateInterfaces(m), b.noteDisabled(time.Time{})))
	return nil
}

// enableAgain brings back what pfctl -d and -F have taken.
func (b *box) enableAgain(m *machine) error {
	if b.disabled.IsZero() && len(b.source.flushed.parts) == 0 {
		return errEnabled
	}
	if len(b.source.flushed.parts) > 0 {
		whole := b.source
		whole.flushed = flushed{}
		if err := b.replace(whole, m); err != nil {
			return err
		}
	}
	if err := b.enable(m); err != nil {
		return err
	}
	b.cfg.Log.Info("pf enabled", "file", b.source.Path, "rules", len(b.rules.texts))
	return nil
}

// putInForce replaces the rules by those of another load, and enables pf.
func (b *box) putInForce(source Source, m *machine) error {
	if err := b.replace(source, m); err != nil {
		return err
	}
	if err := b.enable(m); err != nil {
		return fmt.Errorf("the rules are loaded, but pf is still disabled: %w", err)
	}
	return nil
}

// noteDisabled records since when pf is disabled, for readers of the run folder. Nothing
// else that is loaded changes.
func (b *box) noteDisabled(since time.Time) error {
	now := *b.loaded.Load()
	now.Disabled = since
	if err := rundir.WriteJSON(b.cfg.Folder.Loaded(), now); err != nil {
		return fmt.Errorf("record whether pf is enabled: %w", err)
	}
	b.loaded.Store(&now)
	b.disabled = since
	return nil
}
