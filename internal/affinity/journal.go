package affinity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/steps"
)

// entry is a setting that weir has changed, or that a change of queues changes with
// them.
type entry struct {
	Setting Setting `json:"setting"`
	Before  string  `json:"before"` // what was found first
	Set     string  `json:"set"`    // Before, where weir did not mean to change it
}

// journal is what weir has set and what it found. It is written before anything is
// changed. It lies below /run: the settings do not outlive the machine's run either.
type journal struct {
	Entries []entry `json:"entries"`
	// Open is a transaction that has not come to its end: its settings go back to
	// what it found, and Entries to Previous.
	Open     string  `json:"open,omitempty"`
	Found    []entry `json:"found,omitempty"`
	Previous []entry `json:"previous,omitempty"`
	// Confirm is until when the open one has to be confirmed; zero for none.
	Confirm time.Time `json:"confirm,omitzero"`
	// Confirmed is the last one that was, for the process that waits for it.
	Confirmed string `json:"confirmed,omitempty"`
}

func find(entries []entry, s *Setting) *entry {
	for i := range entries {
		if entries[i].Setting == *s {
			return &entries[i]
		}
	}
	return nil
}

func (h *Host) journalPath() string { return filepath.Join(h.dir, "journal.json") }

// readJournal is an empty one where nothing is set.
func (h *Host) readJournal() (*journal, error) {
	text, err := os.ReadFile(h.journalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return &journal{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what weir affinity has set: %w", err)
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("read what weir affinity has set: %s: %w", h.journalPath(), err)
	}
	return &j, nil
}

// writeJournal replaces it by rename, or removes it and its folder where it is empty.
func (h *Host) writeJournal(j *journal) error {
	if len(j.Entries) == 0 && j.Open == "" {
		if err := steps.RemoveAll(h.dir); err != nil {
			return err
		}
		if err := os.Remove(filepath.Dir(h.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err := steps.MkdirAll(h.dir); err != nil {
		return fmt.Errorf("keep what weir affinity sets: %w", err)
	}
	fresh := h.journalPath() + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep what weir affinity sets: %w", err)
	}
	return steps.Rename(fresh, h.journalPath())
}

var errBusy = errors.New("another weir affinity is at work here")

// lockPath is the same for all namespaces: interrupts are the machine's.
const lockPath = "/run/weir-affinity.lock"

// lock keeps a second weir affinity out until unlock is called. It waits for the
// first one, or fails with errBusy. The file stays, as a lock on a removed one is a
// lock on nothing; it is below /run, which the next boot empties.
func (h *Host) lock(wait bool) (unlock func(), err error) {
	file, err := os.OpenFile(lockPath, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep a second weir affinity out: %w", err)
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), how)
	}
	if err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errBusy
		}
		return nil, err
	}
	return func() { file.Close() }, nil
}

// enter adds a setting of the open transaction; what was found before its first
// change stays.
func (j *journal) enter(s Setting, before, set string) {
	for _, all := range []*[]entry{&j.Entries, &j.Found} {
		if e := find(*all, &s); e != nil {
			e.Set = set
			continue
		}
		*all = append(*all, entry{s, before, set})
	}
}

// backward are the entries, the last first.
func backward(entries []entry) []entry {
	all := slices.Clone(entries)
	slices.Reverse(all)
	return all
}
