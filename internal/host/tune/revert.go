package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"weir/internal/killpoint"
)

// Restored is a key that Revert has dealt with.
type Restored struct {
	Key string `json:"key"`
	To  string `json:"to"` // value found before weir
	// Found is the present value if it was not weir's; otherwise "".
	Found string `json:"found,omitempty"`
	// Same is set if the key already had the value found before weir.
	Same bool `json:"-"`
	// Kept is the reason why Found was left; "" if To was put back.
	Kept string `json:"kept,omitempty"`
}

// Revert puts back the found values of all keys that weir has set, and removes all traces
// of weir. If the administrator has since set a key to something else, Revert leaves it,
// unless all is true. Values that cannot be put back stay in the journal.
func (h *Host) Revert(all bool) ([]Restored, error) {
	unlock, err := h.lock(true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	j, err := h.readJournal()
	if err != nil {
		return nil, err
	}
	setters, err := h.admin()
	if err != nil {
		return nil, err
	}
	restored := []Restored{}
	left := map[string]bool{}
	var faults []error
	done := map[string]bool{} // false: left as it was
	his := h.changedSideEffects(j)
	for _, key := range again(j.keys()) {
		e := *j.entry(key)
		if back, second := done[key]; second { // second time, after the queues
			if !back {
				continue
			}
			// A key that is away now is gone with its queue.
			if err := h.restoreKey(key, e.Before); !errors.Is(err, errAway) {
				faults = append(faults, err)
			}
			continue
		}
		r, err := h.restore(j, e, setters, all)
		done[key] = err == nil && r.Kept == ""
		if err != nil {
			left[key] = true
			faults = append(faults, err)
			continue
		}
		killpoint.Done("restore %s", key)
		restored = append(restored, r)
	}
	for i := range j.Entries {
		e := &j.Entries[i]
		if !done[e.Key] {
			continue
		}
		besides := maps.Clone(e.Besides)
		maps.DeleteFunc(besides, func(other, _ string) bool {
			back, own := done[other]
			return find(j.Entries[:i], other) != nil || !all && (his[other] || own && !back)
		})
		if err := h.restoreAll(besides); err != nil {
			left[e.Key] = true
			faults = append(faults, err)
		}
	}
	keep := slices.DeleteFunc(slices.Clone(j.Entries), func(e entry) bool { return !left[e.Key] })
	err = errors.Join(append(faults, h.persist(keep), h.writeJournal(&contents{Entries: keep, Missing: j.Missing}))...)
	return restored, err
}

// changedSideEffects returns the keys that a change of weir's left with one value and that
// somebody has set to another since.
func (h *Host) changedSideEffects(j *contents) map[string]bool {
	his := map[string]bool{}
	for _, e := range j.Entries {
		for key, behind := range e.Behind {
			if _, cut := j.Besides[key]; cut {
				continue // an interrupted transaction may have lost it once more
			}
			now, err := h.Read(key)
			if err == nil && j.entry(key) == nil && !sameValue(key, now, behind) {
				his[key] = true
			}
		}
	}
	return his
}

// keys returns the entries' keys in order.
func (j *contents) keys() []string {
	var keys []string
	for _, e := range j.Entries {
		keys = append(keys, e.Key)
	}
	return keys
}

// restore puts one key back. It leaves the administrator's value, unless all is true.
func (h *Host) restore(j *contents, e entry, setters []setter, all bool) (Restored, error) {
	r := Restored{Key: e.Key, To: e.Before}
	now, err := h.Read(e.Key)
	if errors.Is(err, fs.ErrNotExist) {
		r.Same = true
		return r, h.whyMissing(e.Key)
	}
	if err != nil {
		return r, err
	}
	r.Same = sameValue(e.Key, now, e.Before)
	if !j.weirs(e, now) && !sameValue(e.Key, now, e.Before) {
		r.Found = now
		r.Kept = "somebody has set it since"
	}
	if s := setBy(setters, e.Key); s != nil && sameValue(e.Key, now, s.value) && !sameValue(e.Key, now, e.Before) {
		r.Found = now
		r.Kept = fmt.Sprintf("the administrator sets it in %s", s.at)
	}
	if r.Kept != "" && !all {
		return r, nil
	}
	r.Kept = ""
	return r, h.restoreKey(e.Key, e.Before)
}

// weirs reports whether a value is one that weir has set: the last one or, if the last
// transaction was interrupted, the one before.
func (j *contents) weirs(e entry, value string) bool {
	before := find(j.Previous, e.Key)
	return sameValue(e.Key, value, e.Set) || before != nil && sameValue(e.Key, value, before.Set)
}

// forget puts back keys that the administrator has taken over in a file, if they still
// have weir's value. His file takes effect once he loads it, and the journal no longer
// keeps the found value.
func (h *Host) forget(j *contents, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	setters, err := h.admin()
	if err != nil {
		return err
	}
	for _, e := range j.Entries {
		if !slices.Contains(keys, e.Key) {
			continue
		}
		if _, err := h.restore(j, e, setters, false); err != nil {
			return err
		}
		killpoint.Done("restore %s", e.Key)
	}
	return nil
}
