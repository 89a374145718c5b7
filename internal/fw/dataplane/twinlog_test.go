package dataplane

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/oracle/model"
)

// readRecords has the twin read what rules log.
func (t *twin) readRecords() {
	t.tb.Helper()
	t.ring = must(t.dp.OpenRing(LogRing))(t.tb)
	t.tb.Cleanup(func() { t.ring.Close() })
	t.dp.SetRecording(LogRing, true)
}

// logged returns the records of the last frame.
func (t *twin) logged() []model.Record {
	if !t.ring.Pending() {
		return nil
	}
	var all []model.Record
	check(t.tb, t.ring.Read(0, func(r Record) {
		all = append(all, model.Record{
			Interface: r.Ifindex, Out: r.Out, Rule: r.Rule, State: r.State, Drop: r.Verdict == VerdictDrop, Reason: r.Reason,
			All: r.Flags&RecordAll != 0, Family: int(r.Family), Length: int(r.Length), Data: slices.Clone(r.Data), User: r.User,
		})
	}))
	return all
}

// differRecords compares records of one frame.
func differRecords(want, got []model.Record) string {
	print := func(all []model.Record) string {
		var b strings.Builder
		for i := range all {
			r := &all[i]
			fmt.Fprintf(&b, "\n\tinterface %d out %t rule %d state %d drop %t (%s) all %t user %s inet%d %d bytes %x",
				r.Interface, r.Out, r.Rule, r.State, r.Drop, r.Reason, r.All, userText(r.User), r.Family, r.Length, r.Data)
		}
		return b.String()
	}
	w, g := print(want), print(got)
	if w == g {
		return ""
	}
	return fmt.Sprintf("records, model:%s\nrecords, dataplane:%s", w, g)
}

func userText(user *uint32) string {
	if user == nil {
		return "none"
	}
	return fmt.Sprint(*user)
}
