package rundir

import (
	"errors"
	"io/fs"
	"slices"
	"time"
)

// A Modem is a queue that somebody has measured behind an interface.
type Modem struct {
	Interface string        `json:"interface"`
	Delay     time.Duration `json:"delay_ns"` // of packets in it, at most
	Time      time.Time     `json:"time"`
}

// Modems returns the path of the list of queues that somebody has measured: []Modem.
func (f Folder) Modems() string { return f.path("modems.json") }

// NoteModem notes that packets have waited behind an interface. Less than what is known changes
// nothing.
func (f Folder) NoteModem(m Modem) error {
	var all []Modem
	if err := ReadJSON(f.Modems(), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	i := slices.IndexFunc(all, func(x Modem) bool { return x.Interface == m.Interface })
	switch {
	case i < 0:
		all = append(all, m)
	case all[i].Delay >= m.Delay:
		return nil
	default:
		all[i] = m
	}
	return WriteJSON(f.Modems(), all)
}

// ReadModems returns the interfaces behind which a queue was measured.
func (f Folder) ReadModems() (map[string]bool, error) {
	var all []Modem
	if err := ReadJSON(f.Modems(), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make(map[string]bool)
	for i := range all {
		names[all[i].Interface] = true
	}
	return names, nil
}
