package dataplane

import (
	"fmt"
	"testing"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
	"weir/internal/fw/shaper"
	"weir/internal/fw/state"
)

// newQueued returns a harness with queues in force on wan0.
func newQueued(tb testing.TB, rules string) *harness {
	h := newHarness(tb, rules)
	check(tb, h.dp.SetQueues(h.net.wan0, QueueDevice{"wan0", shaper.Ethernet(0)}))
	check(tb, h.dp.SetQueues(h.net.lan0, QueueDevice{"lan0", shaper.Ethernet(0)}))
	return h
}

// queueCounts returns the counts of the queues.
func (h *harness) queueCounts() (all []QueueCount) {
	h.tb.Helper()
	losses := must(readQueueLosses(h.dp.objects.Maps[mapQueueLosses]))(h.tb)
	defer losses.Close()
	check(h.tb, changeArray(h.dp.objects.Maps[mapQueueCounters], func(raw []xdpQueueCounter) { all = h.dp.View().queueCounts(raw, losses) }))
	return all
}

// Each direction of a connection has a count of its own, which knows its host and what it has lost. A
// later connection with its number has lost nothing yet.
func TestQueueCounts(t *testing.T) {
	h := newQueued(t, "queue up on wan0 bandwidth 10M\nqueue bulk parent up bandwidth 9M default\nqueue down on wan0 in bandwidth 20M default\npass")
	h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 203.0.113.1:53 len 1400")
	h.in(h.xdp, "wan", "udp 203.0.113.1:53 > 192.168.1.10:4000 len 100")
	var passed, lost uint64
	for range 100 {
		if h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 203.0.113.1:53 len 1400").reason == "queue" {
			lost++
		} else {
			passed++
		}
	}
	if passed == 0 || lost == 0 {
		t.Fatalf("%d packets passed, %d were lost", passed, lost)
	}
	text := func() map[string]QueueCount {
		all := make(map[string]QueueCount)
		for _, c := range h.queueCounts() {
			all[fmt.Sprintf("%s %d %v %v %v", c.Kind, c.Class, c.State != nil, c.Back, c.Host)] = c
		}
		return all
	}
	counts := text()
	forth, back := counts["connection 1 true false 192.168.1.10"], counts["connection 2 true true 192.168.1.10"]
	const bytes = 1400 + 28 + 38
	if len(counts) != 2 || forth.Loss != (state.Loss{Packets: lost, Bytes: lost * bytes}) || forth.Sent != (1+passed)*bytes || back.Loss.Packets != 0 || back.Sent != 100+28+38 {
		t.Errorf("%d packets passed, %d were lost; the counts are\n%+v", passed, lost, counts)
	}
	h.dp.tables.states[forth.State.Index].Created++ // as of another connection
	if c := text()["connection 1 true false 192.168.1.10"]; c.State == nil || c.Loss.Packets != 0 {
		t.Errorf("a later connection has lost %+v", c.Loss)
	}
	h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 203.0.113.1:53 len 1400")
	if c := text()["connection 1 true false 192.168.1.10"]; c.Loss.Packets != 1 {
		t.Errorf("after one loss it has lost %+v", c.Loss)
	}
}

// The count of a host has its address; that of packets without a state has none.
func TestQueueCountsOfHosts(t *testing.T) {
	h := newQueued(t, "queue up on wan0 bandwidth 10M default fair host\npass\npass proto 47 no state")
	h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
	h.in(h.xdp, "lan", "udp 192.168.1.10:4001 > 203.0.113.1:53")
	got := make(map[string]int)
	for _, c := range h.queueCounts() {
		got[fmt.Sprint(c.Kind, " ", c.Host)]++
	}
	if len(got) != 1 || got["host 192.168.1.10"] != 1 {
		t.Errorf("the counts are %v", got)
	}
}

// The record of a packet that a queue drops says which class has done it; those of others say none.
func TestQueueDropIsCaptured(t *testing.T) {
	h := newQueued(t, "queue up on wan0 bandwidth 10M\nqueue bulk parent up bandwidth 9M default\nqueue down on wan0 in bandwidth 1M default\npass\nblock in proto udp to port 9")
	h.capture(60, everything)
	why := make(map[QueueWhy]int)
	drops := func(from, packet string) (records int) {
		for range 100 {
			h.in(h.xdp, from, packet)
		}
		want := map[string]uint32{"lan": 2, "wan": 3}[from]
		for _, r := range h.captured() {
			switch {
			case r.Reason == reason.Queue && (r.Class != want || r.Peer != 0 || r.Verdict != VerdictDrop):
				t.Fatalf("class %d has dropped a packet: %+v", want, r)
			case r.Reason == reason.Queue:
				records++
				why[r.Why]++
			case r.Class != 0 || r.Why != 0:
				t.Fatalf("no queue has dropped it: %+v", r)
			}
		}
		return records
	}
	if n := drops("lan", "udp 192.168.1.10:4000 > 203.0.113.1:53 len 1400"); n == 0 {
		t.Error("class bulk drops nothing")
	}
	if n := drops("wan", "udp 203.0.113.1:53 > 192.168.1.10:4000 len 1400"); n == 0 {
		t.Error("class down drops nothing")
	}
	if n := drops("lan", "udp 192.168.1.10:4000 > 203.0.113.1:9 len 1400"); n != 0 {
		t.Error("a blocked packet is dropped by a queue")
	}
	if why[QueueYoung] == 0 || len(why) != 1 {
		t.Errorf("the timer has given them nothing yet, and they are dropped because %v", why)
	}
	for _, c := range []struct {
		tell, why uint8
		want      QueueWhy
	}{{0, 0, QueueFull}, {0, 2, QueueDeaf}, {1, 0, QueueTold}} {
		check(t, changeArray(h.dp.objects.Maps[mapQueueCounters], func(all []xdpQueueCounter) {
			for i := range all {
				if q := &all[i]; q.Key != 0 { // it has no room; tell and why are as the timer has set them
					q.Until, q.Tell = q.Sent, c.tell
					setQueueWhy(q, c.why)
				}
			}
		}))
		h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 203.0.113.1:53 len 1400")
		got := h.captured()
		if last := got[len(got)-1]; last.Reason != reason.Queue || last.Class != 2 || last.Why != c.want {
			t.Errorf("a packet is dropped by class %d because it is %s, want %s", last.Class, last.Why, c.want)
		}
	}
}

// setQueueWhy writes a byte of bits: fresh is the first of them.
func setQueueWhy(q *xdpQueueCounter, why uint8) {
	*(*uint8)(unsafe.Add(unsafe.Pointer(&q.Tell), -1)) = why << 1
}

// A packet for whose tag the driver has no room is counted where it goes on, not where XDP gives it up.
// One that gets its tag is counted once.
func TestQueueWithoutHeadroom(t *testing.T) {
	for _, rules := range []string{"pass", "pass no state"} {
		t.Run(rules, func(t *testing.T) { testQueueWithoutHeadroom(t, rules) })
	}
}

func testQueueWithoutHeadroom(t *testing.T, rules string) {
	h := newQueuedTag(t, "queue up on wan0 bandwidth 100M default\n"+rules)
	const packet, bytes = "udp 192.168.1.10:4000 > 203.0.113.1:53 len 1000", 1000 + 28 + 38
	ifindex, frame := h.arrive("lan", packet)
	for _, c := range []struct {
		meta int // metadata takes the room in front of the frame
		want verdict
		sent uint64
	}{{0, redirect, bytes}, {0, redirect, 2 * bytes}, {216, drop, 2 * bytes}} {
		o := must(bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: frame, Ifindex: ifindex, Meta: make([]byte, c.meta)}))(t)
		var sent uint64
		for _, q := range h.queueCounts() {
			sent += q.Sent
		}
		if r := xdpResult(&o); r.verdict != c.want || sent != c.sent {
			t.Errorf("with %d bytes of metadata: %s, %d bytes are counted; want %s, %d", c.meta, r.verdict, sent, c.want, c.sent)
		}
	}
}
