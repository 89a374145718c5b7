package tune

import (
	"errors"
	"io/fs"
	"strings"
	"time"
)

// Status is what weir has set, with the present state.
type Status struct {
	Keys []KeyStatus `json:"keys"`
	// Confirm is the time until which a trial has to be confirmed; nil for none.
	Confirm *time.Time `json:"confirm,omitempty"`
	// Unkept lists the keys that nothing will set again at the next boot.
	Unkept []string `json:"unkept,omitempty"`
	CutOff bool     `json:"cut_off"` // a transaction was not finished
	Drift  int      `json:"drift"`   // number of keys that no longer have weir's value
}

// KeyStatus is the status of one key.
type KeyStatus struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	Set    string `json:"set"`
	Now    string `json:"now"` // "" if the key is gone
	Drift  bool   `json:"drift"`
	Fault  string `json:"fault,omitempty"` // why it cannot be read
}

// Status reads the journal and the host. It changes nothing.
func (h *Host) Status() (*Status, error) {
	j, err := h.readJournal()
	if err != nil {
		return nil, err
	}
	s := &Status{Keys: []KeyStatus{}, CutOff: len(j.Changing) > 0 && (j.Confirm.IsZero() || time.Now().After(j.Confirm))}
	if !j.Confirm.IsZero() && !s.CutOff {
		s.Confirm = &j.Confirm
	}
	s.Unkept = h.unkept(j.Entries)
	for _, e := range j.Entries {
		now, err := h.Read(e.Key)
		k := KeyStatus{Key: e.Key, Before: oneLine(e.Before), Set: e.Set, Now: oneLine(now)}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.Fault = err.Error()
		}
		k.Drift = err != nil || !sameValue(e.Key, now, e.Set)
		if k.Drift {
			s.Drift++
		}
		s.Keys = append(s.Keys, k)
	}
	return s, nil
}

// oneLine returns a value with single spaces between its fields.
func oneLine(value string) string { return strings.Join(strings.Fields(value), " ") }
