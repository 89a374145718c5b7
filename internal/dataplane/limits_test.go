package dataplane

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// full runs a test while a table has no room left: its number of entries in use
// says so, and is afterwards what it was.
func full(number *uint32, limit uint32, test func()) {
	before := *number
	*number = limit
	defer func() { *number = before }()
	test()
}

// expect has a packet come in at "xdp lan", "tcx wan" or the like, and compares
// verdict and reason.
func (h *harness) expect(at, packet, want string) result {
	h.tb.Helper()
	hook, from, _ := strings.Cut(at, " ")
	r := h.in(map[string]func(int, []byte) result{"xdp": h.xdp, "tcx": h.tcIn}[hook], from, packet)
	if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != want {
		h.tb.Errorf("%s %s: got %s, want %s", at, packet, got, want)
	}
	return r
}

// Without a number for its next hop a packet goes by the stack, which knows the
// neighbour; next hops that have one go on.
func testNextHopsFull(h *harness) {
	h.load("pass keep state")
	addNeighbour(h.tb, h.net.wan0, "203.0.113.77", wanHostMAC)
	s := h.dp.tables.shared
	h.expect("xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule")
	full(&s.NexthopsHigh, MaxNextHops, func() {
		h.expect("xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule")
		for range 3 {
			const handed = "udp 192.168.1.10:3 > 203.0.113.77:53 ttl 63"
			r := h.expect("xdp lan", "udp 192.168.1.10:3 > 203.0.113.77:53", "up up-neighbour")
			r = h.tcFrom(h.net.wan0, parsePkt(handed).frame(wan0MAC, wanHostMAC), r.mark, h.net.lan0)
			if r.verdict != up || r.reason != "marked" {
				h.tb.Errorf("by the stack: %s %s, want up marked", r.verdict, r.reason)
			}
		}
		if s.NexthopsHigh != MaxNextHops {
			h.tb.Errorf("%d next hops, where there is room for %d", s.NexthopsHigh, MaxNextHops)
		}
	})
	h.expect("xdp lan", "udp 192.168.1.10:3 > 203.0.113.77:53", "forward state")
}

// Where no path is free, packets count under the rules that decided alone; and
// where of those that are kept for that none is free, under no rule. None is lost.
func testPathsFull(h *harness) {
	const first = 90 // no other section's rules have such numbers
	h.load(strings.Repeat("match in on lo\n", first) +
		"match in\npass in on lan0 proto udp\npass in on lan0 proto 47\npass in on wan0\npass out on wan0")
	before := countedPaths(h)
	s := h.dp.tables.shared
	h.expect("xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 12", "forward rule")
	full(&s.PathsHigh, MaxPaths, func() {
		h.expect("xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53 len 12", "forward rule") // its path is known
		h.expect("xdp lan", "47 192.168.1.10 > 198.51.100.9 len 20", "forward rule")
		full(&s.PathsReserved, reservedPaths, func() {
			h.expect("xdp lan", "47 192.168.1.10 > 198.51.100.8 len 20", "forward rule") // so is that of its deciding rules
			h.expect("tcx wan", "udp 198.51.100.9:1 > 192.168.1.10:9 len 2", "forward no-rule")
			h.expect("tcx wan", "udp 198.51.100.9:1 > 192.168.1.10:9 len 2", "forward state")
		})
	})
	got := countedPaths(h)
	for path, n := range before {
		if got[path] -= n; got[path] == 0 {
			delete(got, path)
		}
	}
	want := map[string]uint64{"[90 91 94]": 2, "[92 94]": 2, "full": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		h.tb.Errorf("packets of paths (-want +got):\n%s", diff)
	}
}

func countedPaths(h *harness) map[string]uint64 {
	packets := make(map[string]uint64)
	for _, p := range must(h.dp.View().Paths())(h.tb) {
		name := fmt.Sprint(p.Rules)
		if p.Full {
			name = "full"
		}
		if p.Counter.Packets > 0 {
			packets[name] += p.Counter.Packets
		}
	}
	return packets
}
