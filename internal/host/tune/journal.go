package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/host/netif"
	"weir/internal/host/undolog"
)

// entry is a key that weir has set.
type entry struct {
	Key    string `json:"key"`
	Before string `json:"before"` // first value found, as the kernel writes it
	Set    string `json:"set"`
	Why    string `json:"why"`
	// Besides holds what a card loses by the change, by key, as found before it.
	Besides map[string]string `json:"besides,omitempty"`
	// Behind holds the same keys as weir's change left them. If a value differs now,
	// somebody has set it.
	Behind map[string]string `json:"behind,omitempty"`
}

// contents is the journal: what weir has set, and what it found. It is written before any
// change, so that the change can always be undone.
type contents struct {
	Entries []entry `json:"entries"`
	// Changing lists the keys of a transaction that is not finished.
	Changing []string `json:"changing,omitempty"`
	// Confirm is the time until which the transaction has to be confirmed; zero for
	// none.
	Confirm time.Time `json:"confirm,omitzero"`
	// Trial names a transaction that has to be confirmed, so that its session can
	// tell it from a later one.
	Trial string `json:"trial,omitempty"`
	// Missing lists the directories for weir's files that did not exist before its
	// first change, the deepest last.
	Missing []string `json:"missing,omitempty"`
	// Besides holds what cards lose by the transaction, by key, as it was at its
	// start.
	Besides map[string]string `json:"besides,omitempty"`
	// Found is the former value of each key of the transaction.
	Found map[string]string `json:"found,omitempty"`
	// Previous holds the entries before the transaction, to which a rollback returns.
	Previous []entry `json:"previous,omitempty"`
}

// entry returns a key's entry, nil if there is none.
func (j *contents) entry(key string) *entry { return find(j.Entries, key) }

func find(entries []entry, key string) *entry {
	if i := slices.IndexFunc(entries, func(e entry) bool { return e.Key == key }); i >= 0 {
		return &entries[i]
	}
	return nil
}

// journal returns the journal's file. It is below /var/lib for the host, whose settings
// are permanent, and below /run for a namespace, which ends with the machine's run. A
// namespace's cookie is never used twice.
func (h *Host) journal() (undolog.File, error) {
	if h.isWholeMachine() {
		return undolog.File{Path: h.path("var/lib/weir/tune.json"), Of: h.command()}, nil
	}
	cookie, err := netif.Cookie()
	if err != nil {
		return undolog.File{}, err
	}
	return undolog.File{Path: fmt.Sprintf("/run/%s/%d.json", h.runName(), cookie), Of: h.command()}, nil
}

// readJournal returns an empty journal if nothing is set.
func (h *Host) readJournal() (*contents, error) {
	file, err := h.journal()
	if err != nil {
		return nil, err
	}
	var j contents
	if err := file.Read(&j); err != nil {
		return nil, err
	}
	return &j, nil
}

// writeJournal replaces the journal. If the journal is empty, it removes it, and the
// directories that weir made.
func (h *Host) writeJournal(j *contents) error {
	file, err := h.journal()
	if err != nil {
		return err
	}
	if len(j.Entries) > 0 || len(j.Changing) > 0 {
		return file.Write(j)
	}
	old, err := h.readJournal()
	if err != nil {
		return err
	}
	if err := file.Remove(); err != nil {
		return err
	}
	for _, folder := range slices.Backward(old.Missing) {
		os.Remove(h.path(folder)) //nolint:errcheck // a directory that is not empty is somebody else's
	}
	return nil
}

// lock keeps out a second process of the command until unlock is called. If another one
// has the lock, it waits or fails.
func (h *Host) lock(wait bool) (unlock func(), err error) {
	path := "/run/" + h.runName() + ".lock"
	if h.Root != "" {
		path = h.path("." + h.runName() + ".lock")
	}
	return undolog.Lock(path, h.command(), wait)
}

// runName is the base name of the command's files below /run.
func (h *Host) runName() string { return strings.ReplaceAll(h.command(), " ", "-") }

// missing returns the directories for weir's files that do not exist, the deepest last.
func (h *Host) missing() []string {
	if !h.isWholeMachine() {
		return nil
	}
	var all []string
	for _, folder := range []string{"var/lib", filepath.Dir(ownFile), linkFolder, filepath.Dir(unitLink)} {
		path := ""
		for part := range strings.SplitSeq(folder, "/") {
			path = filepath.Join(path, part)
			if _, err := os.Stat(h.path(path)); errors.Is(err, fs.ErrNotExist) && !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	slices.Sort(all)
	return all
}
