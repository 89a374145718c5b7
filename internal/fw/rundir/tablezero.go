package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"weir/internal/killpoint"
)

// A Zero says when statistics of a table were cleared, and what the counters were then. The
// dataplane only adds to them: to set a counter while packets count would lose some.
type Zero struct {
	All     time.Time                  `json:"all,omitzero"` // of all entries that were in the table then
	Entries map[netip.Prefix]EntryZero `json:"entries,omitempty"`
}

// An EntryZero is what an entry had counted when its statistics were cleared.
type EntryZero struct {
	At      time.Time `json:"at"`
	Packets [4]uint64 `json:"packets"` // in blocked, in passed, out blocked, out passed
	Bytes   [4]uint64 `json:"bytes"`
}

// Since returns when the statistics of an entry were cleared, or else put, when the entry
// came into the table.
func (z *Zero) Since(p netip.Prefix, put time.Time) time.Time {
	if z == nil {
		return put
	}
	if base, ok := z.Entries[p]; ok && put.Before(base.At) {
		return base.At
	}
	if put.Before(z.All) {
		return z.All
	}
	return put
}

// zeroOf returns the file with the Zero of a table.
func (f Folder) zeroOf(table string) string {
	return filepath.Join(f.path("zeroed"), url.PathEscape(table)+".json")
}

// ReadZero reads the Zero of a table; nil: its statistics were never cleared.
func (f Folder) ReadZero(table string) (*Zero, error) {
	text, err := os.ReadFile(f.zeroOf(table))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	z := new(Zero)
	if err == nil {
		err = json.Unmarshal(text, z)
	}
	if err != nil {
		return nil, fmt.Errorf("read when the table %s was cleared: %w", table, err)
	}
	return z, nil
}

// WriteZero replaces the Zero of a table.
func (f Folder) WriteZero(table string, z *Zero) error {
	if err := killpoint.MkdirAll(f.path("zeroed")); err != nil {
		return fmt.Errorf("record that the table %s was cleared: %w", table, err)
	}
	return WriteJSON(f.zeroOf(table), z)
}
