package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/killpoint"
)

// The unit that sets at boot what no system file can keep, and the link by which systemd
// starts it.
const (
	unitFile = "etc/systemd/system/weir-tune.service"
	unitLink = "etc/systemd/system/multi-user.target.wants/weir-tune.service"
)

// unitText returns a unit that runs weir once the network is up, because many drivers
// request their interrupts only when a card comes up. The journal says what to set.
func unitText(program string) string {
	return fmt.Sprintf(`# Written by weir tune apply; weir tune revert removes it.
[Unit]
Description=Set cards and cores as weir tune apply has set them
Documentation=man:weir-tune(8)
After=network-online.target systemd-modules-load.service
Wants=network-online.target
ConditionPathExists=/var/lib/weir/tune.json

[Service]
Type=oneshot
ExecStart=%s tune restore

[Install]
WantedBy=multi-user.target
`, program)
}

// keepUnit writes the unit if entries need it and systemd runs. Otherwise it removes the
// unit.
func (h *Host) keepUnit(entries []entry) error {
	if len(entries) == 0 || !h.hasSystemd() {
		if err := h.removeUnit(); err != nil {
			return fmt.Errorf("remove the unit for the next boot: %w", err)
		}
		return nil
	}
	program := h.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return fmt.Errorf("keep values for the next boot: %w", err)
		}
	}
	if err := h.keep(unitFile, unitText(program)); err != nil {
		return err
	}
	link := h.path(unitLink)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return fmt.Errorf("keep values for the next boot: %w", err)
	}
	if err := os.Symlink("/"+unitFile, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep values for the next boot: %w", err)
	}
	killpoint.Done("link %s", link)
	return nil
}

// removeUnit removes the unit, and what remains if weir died while writing it.
func (h *Host) removeUnit() error {
	for _, name := range []string{unitLink, unitFile} {
		found, err := filepath.Glob(h.path(name) + "*")
		if err != nil || found == nil {
			continue
		}
		if err := killpoint.RemoveReplaced(h.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// hasSystemd reports whether systemd starts the host's services.
func (h *Host) hasSystemd() bool {
	_, err := os.Stat(h.path("run/systemd/system"))
	return err == nil
}

// unkept returns the keys that nothing keeps for the next boot: settings of cards and
// cores on a host without systemd.
func (h *Host) unkept(entries []entry) []string {
	if h.hasSystemd() || !h.isWholeMachine() {
		return nil
	}
	_, rest := h.links(deviceEntries(entries))
	var keys []string
	for _, e := range rest {
		keys = append(keys, e.Key)
	}
	return keys
}

// deviceEntries returns the entries of cards and cores.
func deviceEntries(entries []entry) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		return !strings.HasPrefix(e.Key, cardPrefix) && e.Key != governorKey
	})
}

// Restore sets cards and cores from the journal, at boot, and returns their settings. It does
// not set values of unconfirmed or interrupted transactions. For a missing setting it returns
// an error after it has set the rest.
func (h *Host) Restore() ([]Kept, error) {
	unlock, err := h.lock(true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	j, err := h.readJournal()
	if err != nil {
		return nil, err
	}
	entries := j.Entries
	if len(j.Changing) > 0 {
		entries = j.Previous
	}
	kept := []Kept{}
	var faults []error
	for _, e := range deviceEntries(entries) {
		k := Kept{Key: e.Key, Set: e.Set}
		if err := h.restoreEntry(e); err != nil {
			k.Problem = err.Error()
			faults = append(faults, err)
		}
		kept = append(kept, k)
	}
	return kept, errors.Join(faults...)
}

func (h *Host) restoreEntry(e entry) error {
	now, err := h.Read(e.Key)
	if err != nil || sameValue(e.Key, now, e.Set) {
		return err
	}
	return h.write(e.Key, e.Set)
}
