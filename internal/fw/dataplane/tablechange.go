package dataplane

import (
	"net/netip"

	"weir/internal/fw/ruleset"
)

// ReplaceTable makes entries all that a table holds, under traffic: a packet finds
// the table as it was or as it is now. Of several entries for the same prefix the
// first counts. It returns how many entries have changed; after an error none has.
// States and established packets are not touched. Tables are changed by one caller
// at a time.
func (d *Dataplane) ReplaceTable(name string, entries []ruleset.TableEntry) (changed int, err error) {
	return d.live.change(d.live.program.ReplaceTable(name, entries))
}

// ChangeTable takes prefixes out of a table and puts entries in. Each address is in
// the table as it was or as it is now; one call's entries do not change all at once.
// All else is as for ReplaceTable.
func (d *Dataplane) ChangeTable(name string, put []ruleset.TableEntry, remove []netip.Prefix) (changed int, err error) {
	return d.live.change(d.live.program.ChangeTable(name, put, remove))
}

// TableEntries calls yield with all entries of a table, in order.
func (d *Dataplane) TableEntries(name string, yield func(ruleset.TableEntry) bool) error {
	return d.live.program.TableEntries(name, yield)
}

// change writes an update that the program has made.
func (l *liveRules) change(u *ruleset.TableUpdate, err error) (changed int, _ error) {
	if err != nil {
		return 0, err
	}
	err = l.update(u)
	u.Done(err)
	if err != nil {
		return 0, err
	}
	return u.Changed, nil
}
