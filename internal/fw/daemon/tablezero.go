package daemon

import (
	"net/netip"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
)

// zero clears the statistics of a table, or of some of its entries.
func (t *tableTask) zero() error {
	name, now := t.request.Table, time.Now()
	if _, err := t.program.TableInfo(name); err != nil {
		return err
	}
	var cleared []netip.Prefix
	if t.request.Only {
		t.each(func(e control.TableEntry, not, has bool) control.Mark {
			switch {
			case !has:
				return control.MarkNone
			case not != e.Not:
				return control.MarkConflict
			}
			cleared = append(cleared, e.Prefix)
			return control.MarkCleared
		})
	}
	t.result.Cleared = len(cleared)
	if !t.request.Only {
		t.result.Cleared = 1
	}
	if t.request.DryRun {
		return nil
	}
	if t.program.Counted(name) {
		return t.zeroCounters(name, cleared, now)
	}
	return t.zeroTimes(name, cleared, now)
}

func (t *tableTask) zeroTimes(name string, cleared []netip.Prefix, now time.Time) error {
	times := t.box.timesOf(t.box.rules, name)
	if t.request.Only {
		entries := make([]ruleset.TableEntry, len(cleared))
		for i, p := range cleared {
			entries[i].Prefix = p
		}
		times.Put(entries, uint32(now.Unix()), t.program.TableLen(name), t.box.entriesOf(name))
	} else {
		*times = *rundir.NewTimes(uint32(now.Unix()))
	}
	if t.box.tables[name] == nil { // as the rules define it
		return nil
	}
	return t.box.recordTable(name)
}

func (t *tableTask) zeroCounters(name string, cleared []netip.Prefix, now time.Time) error {
	folder := t.box.cfg.Folder
	zero, err := folder.ReadZero(name)
	if err != nil {
		return err
	}
	if zero == nil || !t.request.Only {
		zero = &rundir.Zero{}
	}
	if zero.Entries == nil {
		zero.Entries = make(map[netip.Prefix]rundir.EntryZero)
	}
	only := make(map[netip.Prefix]bool, len(cleared))
	for _, p := range cleared {
		only[p] = true
	}
	counters, err := t.box.dp.View().TableCounters(name)
	if err != nil {
		return err
	}
	for i := range counters {
		c := &counters[i]
		e := rundir.EntryZero{
			At:      now,
			Packets: [4]uint64{c.InBlocked.Packets, c.InPassed.Packets, c.OutBlocked.Packets, c.OutPassed.Packets},
			Bytes:   [4]uint64{c.InBlocked.Bytes, c.InPassed.Bytes, c.OutBlocked.Bytes, c.OutPassed.Bytes},
		}
		if only[c.Prefix] || !t.request.Only && e.Packets != [4]uint64{} {
			zero.Entries[c.Prefix] = e
		}
	}
	if !t.request.Only {
		zero.All = now
	}
	return folder.WriteZero(name, zero)
}
