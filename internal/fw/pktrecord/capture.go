package pktrecord

import (
	"time"

	"weir/internal/fw/dataplane"
)

// Names finds the names of what records tell by number.
type Names interface {
	// Interface is the name of an interface.
	Interface(index uint32) string
	// Rule is the rule of that global number; nil if no record of it is left.
	Rule(global uint32) *Rule
}

var kinds = map[dataplane.RecordKind]string{
	dataplane.RecordLog: Log, dataplane.RecordBefore: Before, dataplane.RecordAfter: After,
}

var verdicts = map[dataplane.Verdict]string{
	dataplane.VerdictPass: Pass, dataplane.VerdictDrop: Drop, dataplane.VerdictRedirect: Redirect, dataplane.VerdictUp: Up,
}

// Name is the dataplane's record with names. boot is the time at which the
// machine's CLOCK_BOOTTIME was 0. Data is the dataplane's own.
func Name(raw *dataplane.Record, boot time.Time, names Names) Record {
	r := Record{
		Time: boot.Add(time.Duration(raw.Time)), Kind: kinds[raw.Kind],
		Interface: names.Interface(raw.Ifindex), Ifindex: int(raw.Ifindex), Direction: "in",
		State: raw.State, Length: int(raw.Length), Family: int(raw.Family),
		L3: raw.Flags&dataplane.RecordL3 != 0, All: raw.Flags&dataplane.RecordAll != 0,
		Data: raw.Data,
	}
	if raw.Out {
		r.Direction = "out"
	}
	if raw.Kind != dataplane.RecordBefore {
		r.Verdict, r.Reason = verdicts[raw.Verdict], raw.Reason
	}
	if raw.Peer != 0 {
		r.Peer = names.Interface(raw.Peer)
	}
	if raw.Rule != 0 {
		r.Rule = names.Rule(raw.Rule - 1)
	}
	return r
}
