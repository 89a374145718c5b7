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

// entry is one key that weir has set.
type entry struct {
	Key    string `json:"key"`
	Before string `json:"before"` // what was found first, as the kernel writes it
	Set    string `json:"set"`
	Why    string `json:"why"`
	// Besides is what a card loses by the change, by key, as it was found.
	Besides map[string]string `json:"besides,omitempty"`
	// Behind is the same keys as weir's change has left them: what is otherwise by
	// now, somebody has set.
	Behind map[string]string `json:"behind,omitempty"`
}

// contents is the journal: what weir has set and what it found. It is written before anything is
// changed, so that whatever happens then can be undone.
type contents struct {
	Entries []entry `json:"entries"`
	// Changing is the keys of a transaction that has not come to its end.
	Changing []string `json:"changing,omitempty"`
	// Confirm is until when the transaction has to be confirmed; zero for none.
	Confirm time.Time `json:"confirm,omitzero"`
	// Trial names a transaction that has to be confirmed, so that its session knows
	// it from a later one.
	Trial string `json:"trial,omitempty"`
	// Missing are the folders for weir's files that were not there before its first
	// change, the deepest last.
	Missing []string `json:"missing,omitempty"`
	// Besides is what cards lose by the transaction, by key, as it was when it began.
	Besides map[string]string `json:"besides,omitempty"`
	// Found is what each key of the transaction was before it.
	Found map[string]string `json:"found,omitempty"`
	// Previous is the entries before the transaction, to which it goes back.
	Previous []entry `json:"previous,omitempty"`
}

// entry is that of a key, nil if there is none.
func (j *contents) entry(key string) *entry { return find(j.Entries, key) }

func find(entries []entry, key string) *entry {
	for i := range entries {
		if entries[i].Key == key {
			return &entries[i]
		}
	}
	return nil
}

// journal lies below /var/lib for the host, which is set up for good, and below /run for
// a namespace, which ends with the machine's run. A namespace's cookie is never given
// twice.
func (h *Host) journal() (undolog.File, error) {
	if h.whole() {
		return undolog.File{Path: h.path("var/lib/weir/tune.json"), Of: h.command()}, nil
	}
	cookie, err := netif.Cookie()
	if err != nil {
		return undolog.File{}, err
	}
	return undolog.File{Path: fmt.Sprintf("/run/%s/%d.json", h.runName(), cookie), Of: h.command()}, nil
}

// readJournal is an empty one where nothing is set.
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

// writeJournal replaces the journal, or removes it and the folders that weir has made
// where it is empty.
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
		os.Remove(h.path(folder)) //nolint:errcheck // what is not empty is somebody's
	}
	return nil
}

// lock keeps a second process of the command out until unlock is called. It waits for the first one,
// or fails.
func (h *Host) lock(wait bool) (unlock func(), err error) {
	path := "/run/" + h.runName() + ".lock"
	if h.Root != "" {
		path = h.path("." + h.runName() + ".lock")
	}
	return undolog.Lock(path, h.command(), wait)
}

// runName is what the command's files below /run are named after.
func (h *Host) runName() string { return strings.ReplaceAll(h.command(), " ", "-") }

// missing are the folders for weir's files that are not there, the deepest last.
func (h *Host) missing() []string {
	if !h.whole() {
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
