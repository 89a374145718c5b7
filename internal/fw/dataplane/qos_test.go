package dataplane

import (
	"slices"
	"testing"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

const qosRules = `
queue line on wan0 bandwidth 10M
queue voice parent line bandwidth 1M
queue bulk parent line bandwidth 9M default
match out on wan0 set queue (bulk, voice)
match out on wan0 proto tcp set prio (2, 6)
match in on wan0 proto udp set (prio 1, queue voice)
pass
`

// lowDelayUDP is a UDP packet of the LAN that asks for a low delay.
func lowDelayUDP() []byte {
	frame := parsePkt("udp 192.168.1.10:4000 > 198.51.100.9:53").frame(lanHostMAC, lan0MAC)
	frame[15] = lowDelay
	setHeaderSum(frame[14:34])
	return frame
}

// TestQueues checks the queue number in skb->priority: which of two queues it is, what
// else the word keeps, and that a queue that the rules no longer name leaves nothing
// there.
func TestQueues(t *testing.T) {
	h := newHarness(t, "pass", func(c *Config) { c.Room = 100 })
	h.load(qosRules)
	bulk, voice := uint32(h.queueNumber("bulk"))<<16, uint32(h.queueNumber("voice"))<<16
	if bulk == 0 || voice == 0 || bulk == voice {
		t.Fatalf("queues %#x and %#x", bulk, voice)
	}
	in := func(what string, ifindex int, frame []byte, before, want uint32) {
		t.Helper()
		r := h.tc("weir_tc_in", bpfload.Run{Frame: slices.Clone(frame), Ifindex: ifindex, From: ifindex, Priority: before})
		if r.verdict != redirect || r.priority != want {
			t.Errorf("%s: %s (%s) with priority %#x, want %#x", what, r.verdict, r.reason, r.priority, want)
		}
	}
	lan := func(text string) []byte { return parsePkt(text).frame(lanHostMAC, lan0MAC) }
	wan := func(text string) []byte { return parsePkt(text).frame(wanHostMAC, wan0MAC) }
	udp := lan("udp 192.168.1.10:4000 > 198.51.100.9:53")
	in("the first of a state", h.net.lan0, udp, 0x10, bulk|0x10)
	in("one of a state", h.net.lan0, udp, 0x20007, bulk|7)
	in("one that asks for a low delay", h.net.lan0, lowDelayUDP(), 0, voice)
	in("a reply", h.net.wan0, wan("udp 198.51.100.9:53 > 192.168.1.10:4000"), 0, bulk)
	in("SYN", h.net.lan0, lan("tcp 192.168.1.10:4001 > 198.51.100.9:80 S seq 100"), 0x70, bulk|2)
	in("SYN of the reply, with ACK and no data", h.net.wan0, wan("tcp 198.51.100.9:80 > 192.168.1.10:4001 SA seq 300 ack 101"), 0, voice|6)
	in("where they came in counts less", h.net.wan0, wan("udp 198.51.100.9:1000 > 192.168.1.10:53"), 4, voice|1)

	gone := must(ruleset.Compile(h.parse("match out on wan0 proto tcp set prio 3\npass"), h.snapshot()))(t)
	check(t, h.dp.live.load(gone))
	in("a state whose queue is gone", h.net.lan0, udp, 0x10, 0x10)
	in("a state whose queue is gone keeps its priority", h.net.wan0, wan("tcp 198.51.100.9:80 > 192.168.1.10:4001 SA seq 300 ack 101"), 0, 6)
}
