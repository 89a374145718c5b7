package dataplane

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/shaper"
)

// Classes of the tree, as internal/fw/htb numbers them: 1 is line, 2 voice, 3 bulk, 4 rest.
const heldClass = 0x7766_0000

// TestHold checks the class that TCX names where a qdisc holds the packets, also for those that
// the box sends and that the stack forwards, and that XDP sends nothing past the qdisc.
func TestHold(t *testing.T) {
	const rules = `
queue line on wan0 bandwidth 10M engine queue
queue voice parent line bandwidth 1M
queue bulk parent line bandwidth 8M
queue rest parent line bandwidth 1M default
match out on wan0 proto tcp set (queue (bulk, voice), prio 6)
match in on lan0 proto udp to port 100 set queue voice
pass
pass out on wan0 proto udp to port 99 set queue bulk no state
`
	h := newHarness(t, rules, func(c *Config) { c.Room = 100 })
	check(t, h.dp.SetQueues(h.net.wan0, QueueDevice{"wan0", shaper.Ethernet(0)}))
	if s := h.dp.config.Program.Shapers; len(s) != 1 || s[0].Engine != shaper.Queue {
		t.Fatalf("the trees are %+v", s)
	}
	check(t, h.dp.Hold(0, true, h.net.wan0, -1))
	lan := func(text string) []byte { return parsePkt(text).frame(lanHostMAC, lan0MAC) }
	in := func(what, text string, before, want uint32) {
		t.Helper()
		r := h.tc("weir_tc_in", bpfload.Run{Frame: slices.Clone(lan(text)), Ifindex: h.net.lan0, From: h.net.lan0, Priority: before})
		if r.verdict != redirect || r.priority != want {
			t.Errorf("%s: %s (%s) with priority %#x, want %#x", what, r.verdict, r.reason, r.priority, want)
		}
	}
	in("the first packet", "tcp 192.168.1.10:4001 > 198.51.100.9:80 S seq 100", 0, heldClass|3)
	in("a later one, without data", "tcp 192.168.1.10:4001 > 198.51.100.9:80 A seq 101 ack 301", 7, heldClass|2)
	in("the queue of the way in", "udp 192.168.1.10:4000 > 198.51.100.9:100", 0, heldClass|2)
	in("the default keeps a priority", "udp 192.168.1.10:4000 > 198.51.100.9:53", 5, 5)
	in("but not the name of a class", "udp 192.168.1.10:4000 > 198.51.100.9:53", heldClass|2, heldClass|4)
	in("without a state", "udp 192.168.1.10:4000 > 198.51.100.9:99", 0, heldClass|3)

	out := func(what, text string, want uint32) {
		t.Helper()
		r := h.tcOut(h.net.wan0, parsePkt(text).frame(wan0MAC, wanHostMAC), 0)
		if r.verdict != up || r.priority != want {
			t.Errorf("%s: %s (%s) with priority %#x, want %#x", what, r.verdict, r.reason, r.priority, want)
		}
	}
	out("the box's own, with a priority, too", "tcp 203.0.113.1:5001 > 198.51.100.9:80 S seq 100", heldClass|3)
	out("a later one of the box", "tcp 203.0.113.1:5001 > 198.51.100.9:80 S seq 100", heldClass|3)

	h.setInterface(h.net.wan0, InterfacePresent|InterfaceTarget|InterfaceHolds, wan0MAC)
	h.dp.BumpRoutes()
	if r := h.xdp(h.net.lan0, lan("tcp 192.168.1.10:4001 > 198.51.100.9:80 A seq 101 ack 301")); r.reason != "up-device" {
		t.Errorf("under XDP: %s (%s)", r.verdict, r.reason)
	}
	steersHeld(t, h, h.net.wan0, h.net.lan0, lan("tcp 192.168.1.10:4001 > 198.51.100.9:80 A seq 101 ack 301"))
	check(t, h.dp.Hold(0, false, 0, -1))
	for number, name := range h.dp.config.Program.Queues {
		if name == "voice" {
			in("counted again", "tcp 192.168.1.10:4001 > 198.51.100.9:80 A seq 101 ack 301", 0, uint32(number)<<16|6)
		}
	}
}

// TestHoldIncoming checks how what comes in gets to the device where it waits: by a redirect of TCX
// ingress, half translated for the stack, with its class. XDP sends nothing past it, and leaves the
// class in front of the frame. What the stack cannot deliver is counted and goes on.
func TestHoldIncoming(t *testing.T) {
	const rules = `
queue line on wan0 in bandwidth 10M engine queue
queue voice parent line bandwidth 1M
queue bulk parent line bandwidth 8M
queue rest parent line bandwidth 1M default
match out on wan0 proto tcp set queue bulk
pass
pass in on wan0 proto udp to port 98 route-to 203.0.113.1
pass in on wan0 proto udp to port 99 set queue voice no state
pass out on lan0 proto udp to port 99 no state
`
	h := newHarness(t, rules, func(c *Config) { c.Room = 100 })
	check(t, h.dp.SetQueues(h.net.wan0, QueueDevice{"wan0", shaper.Ethernet(0)}))
	const answer = "tcp 198.51.100.9:80 > 192.168.1.10:4001 SA seq 300 ack 101"
	if r := h.in(h.xdp, "lan", "tcp 192.168.1.10:4001 > 198.51.100.9:80 S seq 100"); r.verdict != redirect {
		t.Fatalf("a connection: %s (%s)", r.verdict, r.reason)
	}
	if r := h.in(h.xdp, "wan", answer); r.verdict != redirect || r.reason != "state" {
		t.Errorf("counted: %s (%s)", r.verdict, r.reason)
	}
	check(t, h.dp.Hold(0, true, h.net.lan0, -1))
	waits := func(what, text, reason string, class uint32) {
		t.Helper()
		frame := parsePkt(text).frame(wanHostMAC, wan0MAC)
		r := h.tc("weir_tc_in", bpfload.Run{Frame: slices.Clone(frame), Ifindex: h.net.wan0, From: h.net.wan0})
		if r.verdict != redirect || r.reason != reason || r.priority != heldClass|class {
			t.Errorf("%s: %s (%s) with priority %#x, want %#x", what, r.verdict, r.reason, r.priority, heldClass|class)
		}
		if x := h.xdp(h.net.wan0, frame); x.verdict != up || x.reason != reason || x.number != class {
			t.Errorf("%s under XDP: %s (%s) with class %d, want %d", what, x.verdict, x.reason, x.number, class)
		}
	}
	waits("an answer", answer, "up-device", 3)
	waits("for the box, in the default queue", "udp 198.51.100.9:53 > 203.0.113.2:5000", "local", 4)
	waits("without a state", "udp 198.51.100.9:53 > 192.168.1.10:99", "up-device", 2)
	routed := parsePkt("udp 198.51.100.9:53 > 192.168.1.10:98").frame(wanHostMAC, wan0MAC)
	if r := h.tc("weir_tc_in", bpfload.Run{Frame: routed, Ifindex: h.net.wan0, From: h.net.wan0}); r.verdict != redirect || r.priority != 0 {
		t.Errorf("with a way of its own: %s (%s) with priority %#x", r.verdict, r.reason, r.priority)
	}
	if r := h.in(h.xdp, "lan", "udp 192.168.1.10:5000 > 198.51.100.9:53"); r.verdict != redirect {
		t.Errorf("what leaves: %s (%s)", r.verdict, r.reason)
	}
	steersHeld(t, h, h.net.lan0, h.net.wan0, parsePkt(answer).frame(wanHostMAC, wan0MAC))
	check(t, h.dp.Hold(0, false, 0, -1))
	if r := h.in(h.xdp, "wan", answer); r.verdict != redirect {
		t.Errorf("counted again: %s (%s)", r.verdict, r.reason)
	}
}

// steersHeld checks which core goes on with a frame that comes in at an interface and that XDP passes to
// the stack, with what it has decided in front of it. device: that has the qdisc.
func steersHeld(t *testing.T, h *harness, device, at int, frame []byte) {
	t.Helper()
	const pass, handOver = 2, 4 // XDP_PASS, XDP_REDIRECT
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, here unix.CPUSet
	check(t, unix.SchedGetaffinity(0, &before))
	defer func() { check(t, unix.SchedSetaffinity(0, &before)) }()
	core := 0
	for !before.IsSet(core) {
		core++
	}
	here.Set(core)
	check(t, unix.SchedSetaffinity(0, &here))
	cores := must(bpfload.CPUs())(t)
	for _, to := range []int{core, (core + 1) % cores, -1} {
		want := uint32(pass)
		if to >= 0 && to != core {
			want = handOver
		}
		check(t, h.dp.Hold(0, true, device, to))
		o := must(bpfload.RunXDP(h.dp.objects.Programs["weir_xdp"], bpfload.Run{Frame: slices.Clone(frame), Ifindex: at}))(t)
		if reason := h.counts(at); o.Result != want || reason != "up-device" || len(o.Meta) != metadataSize {
			t.Errorf("core %d goes on with what comes in on %d: action %d (%s) with %d bytes in front, want %d", to, core, o.Result, reason, len(o.Meta), want)
		}
	}
}

// TestHoldByGateway checks the class of what the box sends to a gateway that a rule has chosen, and whose address
// the kernel has to find out. TCX ingress of the uplink sends it. The kernel has forgotten its priority there.
func TestHoldByGateway(t *testing.T) {
	const rules = `
queue line on wan0 bandwidth 10M engine queue
queue bulk parent line bandwidth 8M
queue rest parent line bandwidth 1M default
pass out on lan0 route-to (wan0 203.0.113.77)
pass out on wan0 proto udp set queue bulk%s
`
	for _, option := range []string{"", " no state", ", set prio 6"} {
		h := newHarness(t, fmt.Sprintf(rules, option), func(c *Config) { c.Room = 100 })
		check(t, h.dp.SetQueues(h.net.wan0, QueueDevice{"wan0", shaper.Ethernet(0)}))
		check(t, h.dp.Hold(0, true, h.net.wan0, -1))
		for _, text := range []string{"the first packet", "a later one"} {
			r := h.tcOut(h.net.lan0, parsePkt("udp 192.168.1.1:5000 > 198.51.100.9:53").frame(lan0MAC, lanHostMAC), 0)
			if r.verdict != redirect || r.priority != heldClass|2 {
				t.Fatalf("%s with%q: %s (%s) with priority %#x", text, option, r.verdict, r.reason, r.priority)
			}
			r = h.tc("weir_tc_in", bpfload.Run{Frame: r.frame, Ifindex: h.net.wan0, From: h.net.wan0, Note: r.note})
			if r.verdict != redirect || r.priority != heldClass|2 {
				t.Errorf("%s with%q at the uplink: %s (%s) with priority %#x, want %#x", text, option, r.verdict, r.reason, r.priority, heldClass|2)
			}
		}
	}
}
