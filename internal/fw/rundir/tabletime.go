package rundir

import (
	"iter"
	"maps"
	"net/netip"
	"slices"

	"weir/pf/resolve"
)

// Times says when each entry of a table was put there, or its statistics were cleared, in
// seconds since 1970. Most entries usually have the same time, so only the others take
// memory.
type Times struct {
	most uint32
	own  map[netip.Prefix]uint32 // of entries with another time than most
}

// NewTimes returns times that are all the same.
func NewTimes(now uint32) *Times { return &Times{most: now} }

// Of returns an entry's time.
func (t *Times) Of(p netip.Prefix) uint32 {
	if own, ok := t.own[p]; ok {
		return own
	}
	return t.most
}

// Put notes the time of entries that were put into a table now. count is how many it had
// before, and all yields those that it has now.
func (t *Times) Put(entries []resolve.TableEntry, now uint32, count int, all iter.Seq[resolve.TableEntry]) {
	if count == 0 {
		*t = *NewTimes(now)
		return
	}
	if now == t.most {
		for _, e := range entries {
			delete(t.own, e.Prefix.Masked())
		}
		return
	}
	if t.own == nil {
		t.own = make(map[netip.Prefix]uint32)
	}
	if len(entries) > count { // from now on most are of now
		for e := range all {
			if _, ok := t.own[e.Prefix]; !ok {
				t.own[e.Prefix] = t.most
			}
		}
		t.most = now
		for _, e := range entries {
			delete(t.own, e.Prefix.Masked())
		}
		return
	}
	for _, e := range entries {
		t.own[e.Prefix.Masked()] = now
	}
}

// Remove forgets entries that have left the table.
func (t *Times) Remove(prefixes []netip.Prefix) {
	for _, p := range prefixes {
		delete(t.own, p.Masked())
	}
}

// Keep forgets the entries that have left the table.
func (t *Times) Keep(stays func(netip.Prefix) bool) {
	maps.DeleteFunc(t.own, func(p netip.Prefix, _ uint32) bool { return !stays(p) })
}

// byTime returns the entries in groups of the same time.
func (t *Times) byTime(entries []resolve.TableEntry) (times []uint32, groups map[uint32][]resolve.TableEntry) {
	groups = make(map[uint32][]resolve.TableEntry)
	if len(t.own) == 0 {
		groups[t.most] = entries
		return []uint32{t.most}, groups
	}
	for _, e := range entries {
		at := t.Of(e.Prefix)
		groups[at] = append(groups[at], e)
	}
	return slices.Sorted(maps.Keys(groups)), groups
}
