package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"weir/internal/fw/bpfload"
)

// ErrSuperseded is returned (wrapped) if another process has committed a generation
// since. The programs of this one must not be attached any more.
var ErrSuperseded = errors.New("another dataplane is live")

// Attach attaches programs to an interface that appeared after Commit. An error about the
// interface is an *AttachError. The error wraps ErrBusy while another process builds a
// generation. That process may be waiting for this one to end.
func (d *Dataplane) Attach(a Attachment) error {
	return d.place.Do(func() error {
		return d.whileLive(func() error { return d.attach(a) })
	})
}

func (d *Dataplane) attach(a Attachment) error {
	t := transaction{d: d, dir: d.config.Dir, wanted: make(map[linkKey]bool)}
	var err error
	if t.found, err = openLinks(t.dir); err != nil {
		return err
	}
	defer closeLinks(t.found)
	defer t.closeChanges()
	if err := d.needXDP(a); err != nil {
		return err
	}
	err = t.attachOne(a)
	if err == nil {
		err = t.pinLinks()
	}
	if err != nil {
		return errors.Join(&AttachError{Attachment: a, Err: err}, t.undo())
	}
	return t.drop(linkKey{a.Ifindex, bpfload.XDP})
}

// drop removes a link that was found but is not wanted.
func (t *transaction) drop(key linkKey) error {
	if l := t.found[key]; l != nil && !t.wanted[key] {
		return l.remove()
	}
	return nil
}

// Detach removes an interface's programs. It is not an error if the interface is gone. The
// error wraps ErrBusy as that of Attach does.
func (d *Dataplane) Detach(ifindex int) error {
	return d.place.Do(func() error {
		return d.whileLive(func() error { return d.detach(ifindex) })
	})
}

func (d *Dataplane) detach(ifindex int) error {
	for _, hook := range []bpfload.Hook{bpfload.XDP, bpfload.Ingress, bpfload.Egress} {
		key := linkKey{ifindex, hook}
		l, err := openPinnedLink(key, d.config.Dir)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = l.remove()
		l.link.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// Lost returns the interfaces whose programs were removed with their device. A new device
// may have reused the index; it has no programs yet.
func (d *Dataplane) Lost() ([]int, error) {
	return withLinks(d.place, d.config.Dir, func(links map[linkKey]*pinnedLink) (lost []int, err error) {
		for key, l := range links {
			if l.gone && !slices.Contains(lost, key.ifindex) {
				lost = append(lost, key.ifindex)
			}
		}
		return lost, nil
	})
}

// OwnXDP returns the interfaces whose XDP program is weir's, according to the pins in
// dir. It returns none if nothing is pinned.
func OwnXDP(dir string) (map[int]bool, error) {
	return withLinks(bpfload.At(""), dir, func(links map[linkKey]*pinnedLink) (map[int]bool, error) {
		own := make(map[int]bool)
		for key, l := range links {
			if key.hook == bpfload.XDP && !l.gone {
				own[key.ifindex] = true
			}
		}
		return own, nil
	})
}

// whileLive calls f if this generation is still live. No other process can commit
// meanwhile.
func (d *Dataplane) whileLive(f func() error) error {
	lock, err := lockFolder(d.config.Dir, false)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(filepath.Join(d.config.Dir, generationDir)); err != nil {
		return fmt.Errorf("this dataplane is not live: %w", err)
	}
	l, err := readLedger(d.config.Dir)
	if err != nil {
		return err
	}
	if l.Generation != d.ledger.Generation {
		return fmt.Errorf("generation %d is to be changed: %w", d.ledger.Generation, ErrSuperseded)
	}
	return f()
}

// View returns a view of this generation. It shares the Dataplane's tables and must not
// be closed.
func (d *Dataplane) View() *View {
	return &View{dir: d.config.Dir, tables: d.tables, rules: rulesOf(d.objects.Maps)}
}
