package view

import (
	"net/netip"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
)

// TableEntry is an entry of a table with counters.
type TableEntry struct {
	Prefix netip.Prefix `json:"prefix"`
	Not    bool         `json:"not,omitempty"` // it excludes the prefix
	Since  time.Time    `json:"since"`         // when it came into the table, or its statistics were cleared
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
		zero, err := r.folder.ReadZero(name) // first: what is counted since is more
		if err != nil {
			return err
		}
		counters, err := r.pins.TableCounters(name)
		entries = make([]TableEntry, 0, len(counters))
		for i := range counters {
			e := tableEntryOf(&counters[i])
			e.clear(zero)
			entries = append(entries, e)
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

// clear takes off what the entry had counted when its statistics were cleared.
func (e *TableEntry) clear(zero *rundir.Zero) {
	if zero == nil {
		return
	}
	base, ok := zero.Entries[e.Prefix]
	switch {
	case ok && !e.Since.After(base.At):
		e.Since = base.At
		for i, c := range []*TableCount{&e.In.Blocked, &e.In.Passed, &e.Out.Blocked, &e.Out.Passed} {
			c.Packets -= min(c.Packets, base.Packets[i])
			c.Bytes -= min(c.Bytes, base.Bytes[i])
		}
	case e.Since.Before(zero.All):
		e.Since = zero.All
	}
}

// Add adds the counts of another entry.
func (w *TableWay) Add(other *TableWay) {
	w.Blocked.Packets += other.Blocked.Packets
	w.Blocked.Bytes += other.Blocked.Bytes
	w.Passed.Packets += other.Passed.Packets
	w.Passed.Bytes += other.Passed.Bytes
}
