package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/killpoint"
)

// A Report says what a Commit did.
type Report struct {
	Generation uint32
	Copied     int   // states copied into new tables; 0 if the tables were kept
	Lost       int   // states that did not fit
	Converted  bool  // the copied states had another version's layout
	Unreadable error // why all existing states are lost; nil: they are not
	// RestUnreadable is why states are lost that an interrupted Commit had not copied yet.
	RestUnreadable error
	Gone           []string // names of interfaces that had disappeared
	// Unfinished is why something of the previous generation is left, or some of its
	// states were not copied. The next Build continues. nil: nothing is left.
	Unfinished error
}

// Commit makes the generation live on exactly these interfaces. It updates each existing
// link once, adds links for new interfaces and detaches the others. If it returns an
// error, everything is as before. If something fails once the generation is live, the
// report says so. An error about an interface is an *AttachError, and the
// caller may call Commit again without that interface. If nothing was loaded yet, call
// SetInterface and SetAddresses first.
func (d *Dataplane) Commit(attachments []Attachment) (Report, error) {
	if d.lock == nil {
		return Report{}, errors.New("commit: this generation has been committed")
	}
	t := transaction{d: d, dir: d.config.Dir}
	if err := d.place.Do(func() error { return t.run(attachments) }); err != nil {
		return Report{}, fmt.Errorf("commit: %w", err)
	}
	t.report.Unfinished = errors.Join(t.report.Unfinished, d.unlock())
	return t.report, nil
}

// A transaction is a Commit under way.
type transaction struct {
	d       *Dataplane
	dir     string
	found   map[linkKey]*pinnedLink
	changes []change
	wanted  map[linkKey]bool
	report  Report
}

func (t *transaction) run(attachments []Attachment) (err error) {
	if t.found, err = openLinks(t.dir); err != nil {
		return err
	}
	defer closeLinks(t.found)
	defer t.closeChanges()
	if err := t.d.needXDP(attachments...); err != nil {
		return err
	}
	if err := t.prepare(); err != nil {
		return errors.Join(err, t.forget())
	}
	giveAgain, err := t.d.takeBack()
	if err == nil {
		err = t.attach(attachments)
	}
	if err != nil {
		return errors.Join(err, t.undo(), giveAgain(), t.forget())
	}
	setTimeouts(t.d.tables.shared, &t.d.config.Options)
	setLimits(t.d.tables.shared, &t.d.config.Options)
	t.report.Unfinished = errors.Join(t.d.useNewRates(), t.d.useSpread(), closeMaps(t.d.outgoing))
	t.d.outgoing = nil
	t.report.Generation, t.report.Unreadable, t.report.RestUnreadable = t.d.ledger.Generation, t.d.lost, t.d.restLost
	t.report.Unfinished = errors.Join(t.report.Unfinished, t.finish())
	return nil
}

// prepare pins the new generation under its own name, and starts its clock and garbage
// collection. Its rule ids count as used from now on, because its packets may make states
// before a failure.
func (t *transaction) prepare() error {
	if err := t.reserveRules(); err != nil {
		return err
	}
	if err := t.pinGeneration(); err != nil {
		return err
	}
	if !t.d.kept {
		setTimeouts(t.d.tables.shared, &t.d.config.Options)
	}
	if err := t.d.startGC(); err != nil {
		return err
	}
	if err := t.d.keepPrefetchDevices(); err != nil {
		return err
	}
	if err := t.d.copyStates(); err != nil {
		return err
	}
	t.d.Heartbeat()
	return nil
}

func (t *transaction) reserveRules() error {
	l, err := readLedger(t.dir)
	if isMissing(err) || errors.Is(err, ErrLayout) {
		return nil
	}
	if err != nil {
		return err
	}
	l.NextRule = t.d.ledger.NextRule
	return writeLedger(t.dir, l)
}

func (t *transaction) pinGeneration() error {
	if err := removeAll(t.dir, nextGenerationDir, nextTablesDir); err != nil {
		return err
	}
	if !t.d.kept {
		if err := t.d.tables.pin(filepath.Join(t.dir, nextTablesDir)); err != nil {
			return err
		}
	}
	dir := filepath.Join(t.dir, nextGenerationDir)
	if err := killpoint.Mkdir(dir); err != nil {
		return fmt.Errorf("make a folder for pins: %w", err)
	}
	for name, m := range t.d.generationMaps() {
		if err := bpfload.PinMap(m, filepath.Join(dir, pinName(name))); err != nil {
			return err
		}
	}
	t.d.ledger.Loaded = time.Now().UnixNano()
	return pinLedger(dir, t.d.ledger)
}

// attach replaces the program of every existing link and makes the missing links.
func (t *transaction) attach(attachments []Attachment) error {
	t.wanted = make(map[linkKey]bool)
	for _, a := range attachments {
		err := t.attachOne(a)
		if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOLINK) {
			t.report.Gone = append(t.report.Gone, a.Name)
			continue
		}
		if err != nil {
			return &AttachError{Attachment: a, Err: err}
		}
	}
	return t.pinLinks()
}

func (t *transaction) attachOne(a Attachment) error {
	for _, key := range a.keys() {
		p := t.d.objects.Programs[t.d.program(key)]
		if found := t.found[key]; found != nil && !found.gone {
			if err := t.replace(found, key, p); err != nil {
				return err
			}
		} else if err := t.add(key, p); err != nil {
			return err
		}
		t.wanted[key] = true
	}
	return nil
}

func (t *transaction) replace(found *pinnedLink, key linkKey, p *bpfload.Program) error {
	old, err := found.link.Program()
	if err != nil {
		return err
	}
	if err := found.link.Replace(p); err != nil {
		old.Close()
		return err
	}
	t.changes = append(t.changes, change{key: key, link: found.link, old: old})
	return nil
}

func (t *transaction) add(key linkKey, p *bpfload.Program) error {
	link, err := bpfload.Attach(p, key.hook, key.ifindex)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, change{key: key, link: link})
	return nil
}

func (t *transaction) pinLinks() error {
	if err := killpoint.MkdirAll(filepath.Join(t.dir, linksDir)); err != nil {
		return fmt.Errorf("make a folder for links: %w", err)
	}
	for _, c := range t.changes {
		if c.old != nil {
			continue
		}
		path := c.key.path(t.dir)
		if t.found[c.key] != nil { // of a vanished interface with the same index
			if err := killpoint.Remove(path); err != nil {
				return fmt.Errorf("unpin a link: %w", err)
			}
		}
		if err := c.link.Pin(path); err != nil {
			return err
		}
	}
	return nil
}

// finish runs once the new generation is live. Nothing here is undone.
func (t *transaction) finish() error {
	err := promote(t.dir)
	if err == nil {
		err = t.removeLinks()
	}
	if err := errors.Join(err, t.settle()); err != nil {
		return err
	}
	if err := t.finishCopy(); err != nil {
		return err
	}
	if err := t.forgetOrigin(); err != nil {
		return err
	}
	if err := removeAll(t.dir, oldTablesDir, oldGenerationDir); err != nil {
		return err
	}
	return t.d.pruneTableCounters()
}

// removeLinks removes the links of interfaces that the generation does not have.
func (t *transaction) removeLinks() error {
	for key, l := range t.found {
		if !t.wanted[key] {
			if err := l.remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle ends the limiters that only rules before have, once no packet meets these.
func (t *transaction) settle() (err error) {
	l := t.d.live
	if l.limits.ending() {
		err = l.swap(l.set) // the same rules: the kernel waits for all programs that run
	}
	l.limits.settle()
	return errors.Join(err, l.finish())
}

// copyLast is copyStates for the last time. Tests make it fail.
var copyLast = (*Dataplane).copyStates

// finishCopy copies the last changes of the previous generation. The old tables stay
// pinned until then: if this is interrupted, the next start continues.
func (t *transaction) finishCopy() error {
	if len(t.d.copiers) == 0 {
		return nil
	}
	t.report.Converted = t.d.old != nil && t.d.old.other
	err := copyLast(t.d)
	for _, c := range t.d.copiers {
		t.report.Copied += c.copied
		t.report.Lost += c.lost
	}
	return errors.Join(err, t.d.closeOrigins())
}

// forgetOrigin notes that everything is copied, before the tables that it was copied from
// are removed. If that is interrupted, a start knows that what is left of them can go.
func (t *transaction) forgetOrigin() error {
	l, err := readLedger(t.dir)
	if err != nil || l.Copied == 0 {
		return err
	}
	l.From, l.Copied = 0, 0
	t.d.ledger.From, t.d.ledger.Copied = 0, 0
	return writeLedger(t.dir, l)
}

// undo restores the program of every link, the last changed first.
func (t *transaction) undo() error {
	var errs []error
	for i := len(t.changes) - 1; i >= 0; i-- {
		c := &t.changes[i]
		if c.old == nil { // the pin first, as in pinnedLink.remove
			if err := killpoint.Remove(c.key.path(t.dir)); err != nil && !isMissing(err) {
				errs = append(errs, fmt.Errorf("unpin a link: %w", err))
			}
		}
		if err := c.undo(); err != nil {
			errs = append(errs, fmt.Errorf("give interface %d its former program back: %w", c.key.ifindex, err))
		}
	}
	return errors.Join(errs...)
}

// forget removes the generation's pins. Its timer ends with its map.
func (t *transaction) forget() error {
	return removeAll(t.dir, nextGenerationDir, nextTablesDir)
}

// closeChanges closes what the changes hold. closeLinks closes the links that were found.
func (t *transaction) closeChanges() {
	for _, c := range t.changes {
		if c.old != nil {
			c.old.Close()
		} else {
			c.link.Close()
		}
	}
}
