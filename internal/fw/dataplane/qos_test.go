package dataplane

import (
	"fmt"
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

// TestPrio checks what rules see of a packet's priority: that of its tag, of the socket that
// sends it, and what rules have set where it came in.
func TestPrio(t *testing.T) {
	h := newHarness(t, "pass", func(c *Config) { c.Room = 100 })
	const packet = "udp 192.168.1.10:4000 > 198.51.100.9:53"
	passes := func(rules string, run func() result, want bool) {
		t.Helper()
		h.load(rules)
		if r := run(); (r.verdict == drop) == want {
			t.Errorf("%s: %s (%s)", rules, r.verdict, r.reason)
		}
	}
	only := func(direction string, n int) string {
		return fmt.Sprintf("block %s\npass %s prio %d\npass %s", direction, direction, n, map[string]string{"in": "out", "out": "in"}[direction])
	}
	tcx := func(note [5]uint32) func() result {
		return func() result {
			frame := parsePkt(packet).frame(lanHostMAC, lan0MAC)
			return h.tc("weir_tc_in", bpfload.Run{Frame: frame, Ifindex: h.net.lan0, From: h.net.lan0, Note: note})
		}
	}
	forged := h.noteTag(0xa007)
	forged[1]++
	for n := range 8 {
		passes(only("in", n), tcx([5]uint32{}), n == 3)
		passes(only("in", n), tcx(forged), n == 3)
		passes(only("in", n), tcx(h.noteTag(0xa007)), n == 5)
		passes(only("in", n), tcx(h.noteTag(0x2007)), n == 0) // background is below best effort
		passes(only("in", n), tcx(h.noteTag(0x0007)), n == 1)
		passes(only("in", n), func() result { return h.in(h.xdp, "lan", packet) }, n == 3)
		passes(only("out", n), tcx(h.noteTag(0xa007)), n == 5)
		passes(only("out", n)+" on lan0 set prio 6", tcx(h.noteTag(0xa007)), n == 6)
		passes(only("out", n)+" on lan0 set prio (6, 2)", func() result {
			return h.tc("weir_tc_in", bpfload.Run{Frame: lowDelayUDP(), Ifindex: h.net.lan0, From: h.net.lan0})
		}, n == 2)
		for before, prio := range map[uint32]int{0: 3, 6: 6, 0x50002: 2, 8: 3} {
			passes(only("out", n), func() result {
				frame := parsePkt("udp 203.0.113.2:4000 > 198.51.100.9:53").frame(wan0MAC, wanHostMAC)
				return h.tc("weir_tc_out", bpfload.Run{Frame: frame, Ifindex: h.net.wan0, Priority: before})
			}, n == prio)
		}
	}
	// a side without state asks for each packet
	h.load("pass in on lan0 set prio 6\nblock out\npass out on wan0 prio 6 no state")
	for range 2 {
		if r := h.in(h.xdp, "lan", packet); r.verdict != redirect {
			t.Errorf("a state has the priority of its rules: %s (%s)", r.verdict, r.reason)
		}
	}
}

// The same for tags that XDP sees.
func TestPrioOfXDPTags(t *testing.T) {
	h := newHarness(t, "pass", func(c *Config) { c.Room = 100 })
	device := addWire(t, "nic0", lan0MAC, lanHostMAC)
	h.enableXDP(device)
	service, inner := tag{Type8021AD, 0xa014}, tag{Type8021Q, 0x200a}
	for prio, lan := range map[int][]tag{5: {service}, 0: {service, inner}} {
		var wan []tag // carries it
		if len(lan) == 2 {
			wan = lan[:1]
		}
		for n := range 8 {
			h.load(fmt.Sprintf("block in\npass in prio %d\npass out", n))
			h.setTrunk(device, lan, wan)
			r := h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 198.51.100.9:53")
			if (r.verdict == drop) == (n == prio) {
				t.Errorf("prio %d, tags %v: %s (%s)", n, lan, r.verdict, r.reason)
			}
		}
	}
}
