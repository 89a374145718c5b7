package pktrecord

import (
	"time"

	"weir/internal/fw/dataplane"
)

// Names looks up the names that belong to the numbers in records.
type Names interface {
	// Interface returns the name of an interface.
	Interface(index uint32) string
	// Rule returns the rule with this global number, or nil if there is no record of
	// it.
	Rule(global uint32) *Rule
	// Queue returns the name of a class of the queues and that of its interface; "" if
	// there is none.
	Queue(class uint32) (name, device string)
}

var kinds = map[dataplane.RecordKind]string{
	dataplane.RecordLog: Log, dataplane.RecordBefore: Before, dataplane.RecordAfter: After,
}

var verdicts = map[dataplane.Verdict]string{
	dataplane.VerdictPass: Pass, dataplane.VerdictDrop: Drop, dataplane.VerdictRedirect: Redirect, dataplane.VerdictUp: Up,
}

// Name adds names to the dataplane's record. boot is the time at which the machine's
// CLOCK_BOOTTIME was 0. Data is shared with raw.
func Name(raw *dataplane.Record, boot time.Time, names Names) Record {
	r := Record{
		Time: boot.Add(time.Duration(raw.Time)), Kind: kinds[raw.Kind],
		Interface: names.Interface(raw.Ifindex), Ifindex: int(raw.Ifindex), Direction: "in",
		State: raw.State, Length: int(raw.Length), Family: int(raw.Family),
		L3: raw.Flags&dataplane.RecordL3 != 0, All: raw.Flags&dataplane.RecordAll != 0,
		User: raw.User, Data: raw.Data,
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
	if raw.Class != 0 {
		r.Queue, r.QueueOn = names.Queue(raw.Class)
		r.QueueWhy = raw.Why.String()
	}
	if raw.Rule != 0 {
		r.Rule = names.Rule(raw.Rule - 1)
	}
	return r
}
