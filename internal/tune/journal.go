package tune

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/netif"
	"weir/internal/steps"
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

// journal is what weir has set and what it found. It is written before anything is
// changed, so that whatever happens then can be undone.
type journal struct {
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
	// Previous is the entries before the transaction, to which it goes back.
	Previous []entry `json:"previous,omitempty"`
}

// entry is that of a key, nil if there is none.
func (j *journal) entry(key string) *entry { return find(j.Entries, key) }

func find(entries []entry, key string) *entry {
	for i := range entries {
		if entries[i].Key == key {
			return &entries[i]
		}
	}
	return nil
}

// journalPath is where the journal lies: below /var/lib for the host, which is set up
// for good, and below /run for a namespace, which ends with the machine's run. A
// namespace's cookie is never given twice.
func (h *Host) journalPath() (string, error) {
	if h.whole() {
		return h.path("var/lib/weir/tune.json"), nil
	}
	cookie, err := netif.Cookie()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/run/weir-tune/%d.json", cookie), nil
}

// readJournal is an empty one where nothing is set.
func (h *Host) readJournal() (*journal, error) {
	path, err := h.journalPath()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &journal{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what weir tune has set: %w", err)
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("read what weir tune has set: %s: %w", path, err)
	}
	return &j, nil
}

// writeJournal replaces the journal, or removes it and its folder where it is empty.
func (h *Host) writeJournal(j *journal) error {
	path, err := h.journalPath()
	if err != nil {
		return err
	}
	if len(j.Entries) == 0 && len(j.Changing) == 0 {
		return h.removeAll(path)
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err := steps.MkdirAll(filepath.Dir(path)); err != nil {
		return fmt.Errorf("keep what weir tune sets: %w", err)
	}
	return replace(path, append(text, '\n'), 0o600)
}

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

// removeAll removes the journal, and the folders that weir has made and that are empty.
func (h *Host) removeAll(path string) error {
	old, err := h.readJournal()
	if err != nil {
		return err
	}
	if err := removeTrace(path); err != nil {
		return err
	}
	for _, folder := range slices.Backward(old.Missing) {
		os.Remove(h.path(folder)) //nolint:errcheck // what is not empty is somebody's
	}
	return nil
}

// removeTrace removes a file, what a death while it was written has left, and the
// folder that only it lay in.
func removeTrace(path string) error {
	if err := removeFile(path); err != nil {
		return err
	}
	if err := os.Remove(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	return nil
}

// removeFile removes a file that replace has written, if it is there. Where its folder
// is none, it is not.
func removeFile(path string) error {
	for _, name := range []string{path + unfinished, path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
	steps.Done("remove %s", path)
	return nil
}

// unfinished ends the name of a file that is being written. Nobody reads such files.
const unfinished = ".new"

// replace writes a file in one step: whoever reads it finds the old text or the new,
// also after a loss of power.
func replace(path string, text []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	steps.Done("write %s", path+unfinished)
	return steps.Rename(path+unfinished, path)
}
