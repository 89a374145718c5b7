package view

import (
	"net/netip"
	"time"

	"weir/internal/fw/dataplane"
)

// TableEntry is an entry of a table with counters.
type TableEntry struct {
	Prefix netip.Prefix `json:"prefix"`
	Not    bool         `json:"not,omitempty"` // it excludes the prefix
	Since  time.Time    `json:"since"`         // when it came into the table
	In     TableWay     `json:"in"`
	Out    TableWay     `json:"out"`
}

// TableWay is what an entry has counted of packets that came in, or left.
type TableWay struct {
	Blocked TableCount `json:"blocked"`
	Passed  TableCount `json:"passed"`
}

// TableCount is a number of packets, and of their bytes.
type TableCount struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Table returns the entries of a table with counters, in order. It returns none for a
// table without the option, or if there is no such table.
func (v *View) Table(name string) (entries []TableEntry, err error) {
	err = v.read(func(r *reading) error {
		counters, err := r.pins.TableCounters(name)
		entries = make([]TableEntry, 0, len(counters))
		for i := range counters {
			entries = append(entries, tableEntryOf(&counters[i]))
		}
		return err
	})
	return entries, err
}

func tableEntryOf(c *dataplane.TableCounter) TableEntry {
	return TableEntry{
		Prefix: c.Prefix, Not: c.Not, Since: c.Since,
		In:  TableWay{TableCount(c.InBlocked), TableCount(c.InPassed)},
		Out: TableWay{TableCount(c.OutBlocked), TableCount(c.OutPassed)},
	}
}
