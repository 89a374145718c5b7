package dataplane

import (
	"fmt"
	"testing"

	"weir/internal/fw/bpfload"
)

// logRecords returns the records in the log's ring as text.
func (h *harness) logRecords(ring *Ring) []string {
	h.tb.Helper()
	var all []string
	check(h.tb, ring.Read(0, func(r Record) {
		verdict, direction := "pass", "in"
		if r.Verdict == VerdictDrop {
			verdict = "drop"
		}
		if r.Out {
			direction = "out"
		}
		all = append(all, fmt.Sprintf("rule %d %s %s %s", r.Rule-1, direction, verdict, r.Reason))
	}))
	return all
}

// A full ring counts its losses exactly and affects no packet: the verdicts are as
// without a log.
func TestLogRingFull(t *testing.T) {
	h := newHarness(t, "block log quick proto udp\npass log (all)")
	ring := must(h.dp.OpenRing(LogRing))(t)
	defer ring.Close()
	h.dp.SetRecording(LogRing, true)
	lost := func() uint64 { return must(h.dp.View().RecordsLost(LogRing))(t) }
	const (
		size  = 2 << 20          // LOG_RING_BYTES
		room  = (size - 1) / 264 // one byte of a ring stays free
		drops = room - 1
		more  = 500
	)
	_, blocked := h.arrive("lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
	_, ping := h.arrive("lan", "icmp 192.168.1.10 > 203.0.113.1 type 8 id 7")
	for range drops {
		runXDP(t, h, blocked, 1)
	}
	if n := lost(); n != 0 {
		t.Fatalf("%d records are lost before the ring is full", n)
	}
	// there is room for the ping's record of its in crossing, but not for its out
	// crossing
	runXDP(t, h, ping, 4)
	for range more {
		runXDP(t, h, ping, 4)
		runXDP(t, h, blocked, 1)
	}
	if n, want := lost(), uint64(1+more*(2+1)); n != want {
		t.Errorf("%d records are lost, want %d", n, want)
	}
	got := h.logRecords(ring)
	if len(got) != room || got[0] != "rule 0 in drop block" || got[room-1] != "rule 1 in pass rule" {
		t.Errorf("the ring held %d records, want %d; the first is %q, the last %q", len(got), room, got[0], got[len(got)-1])
	}
	before := lost()
	runXDP(t, h, ping, 4)
	if got := h.logRecords(ring); len(got) != 2 || got[0] != "rule 1 in pass state" || got[1] != "rule 1 out pass state" || lost() != before {
		t.Errorf("after the ring was read, a packet leaves the records %q, and %d are lost more", got, lost()-before)
	}
}

// runXDP makes a frame come in by lan0 and checks what the XDP program returns.
func runXDP(t *testing.T, h *harness, frame []byte, want uint32) {
	t.Helper()
	o, err := bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: frame, Ifindex: h.net.lan0})
	if err != nil || o.Result != want {
		t.Fatalf("the program returned %d, %v; want %d", o.Result, err, want)
	}
}

// Without a reader nothing is written.
func TestLogWithoutReader(t *testing.T) {
	h := newHarness(t, "pass log (all)")
	ring := must(h.dp.OpenRing(LogRing))(t)
	defer ring.Close()
	_, ping := h.arrive("lan", "icmp 192.168.1.10 > 203.0.113.1 type 8 id 7")
	runXDP(t, h, ping, 4)
	runXDP(t, h, ping, 4)
	h.dp.SetRecording(LogRing, true)
	runXDP(t, h, ping, 4)
	h.dp.SetRecording(LogRing, false)
	runXDP(t, h, ping, 4)
	if got := h.logRecords(ring); len(got) != 2 {
		t.Errorf("%q; want the records of one packet", got)
	}
}
