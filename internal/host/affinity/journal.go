package affinity

import (
	"path/filepath"
	"slices"
	"time"

	"weir/internal/host/undolog"
)

// entry is a setting that weir has changed, or that a change of queues changes with
// them.
type entry struct {
	Setting Setting `json:"setting"`
	Before  string  `json:"before"` // what was found first
	Set     string  `json:"set"`    // Before, where weir did not mean to change it
}

// contents is the journal: what weir has set and what it found. It is written before
// anything is changed. It lies below /run: the settings do not outlive the machine's
// run either.
type contents struct {
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

// command is who the journal is of.
const command = "weir affinity"

func (h *Host) journal() undolog.File {
	return undolog.File{Path: filepath.Join(h.dir, "journal.json"), Of: command}
}

// readJournal is an empty one where nothing is set.
func (h *Host) readJournal() (*contents, error) {
	var j contents
	if err := h.journal().Read(&j); err != nil {
		return nil, err
	}
	return &j, nil
}

// writeJournal replaces it, or removes it and its folder where it is empty.
func (h *Host) writeJournal(j *contents) error {
	if len(j.Entries) > 0 || j.Open != "" {
		return h.journal().Write(j)
	}
	if err := h.journal().Remove(); err != nil {
		return err
	}
	return undolog.RemoveFolder(filepath.Dir(h.dir))
}

// lock keeps a second weir affinity out, in all namespaces: interrupts are the machine's.
func (h *Host) lock(wait bool) (unlock func(), err error) {
	return undolog.Lock("/run/weir-affinity.lock", command, wait)
}

// enter adds a setting of the open transaction; what was found before its first
// change stays.
func (j *contents) enter(s Setting, before, set string) {
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
