package dataplane

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
)

// secondMAC belongs to a second router, 203.0.113.3. Packets with mark 2 in four bits go
// there.
const secondMAC = "02:77:65:00:02:03"

// steer adds a routing policy by marks: ip rule add fwmark 2/0xf lookup 100.
func (h *harness) steer() {
	h.tb.Helper()
	addNeighbour(h.tb, h.net.wan0, "203.0.113.3", secondMAC)
	mask := uint32(0xf)
	rule := netlink.NewRule()
	rule.Mark, rule.Mask, rule.Table, rule.Priority = 2, &mask, 100, 100
	check(h.tb, netlink.RuleAdd(rule))
	h.tb.Cleanup(func() { check(h.tb, netlink.RuleDel(rule)) })
	_, all, err := net.ParseCIDR("0.0.0.0/0")
	check(h.tb, err)
	check(h.tb, netlink.RouteReplace(&netlink.Route{Dst: all, Gw: net.ParseIP("203.0.113.3"), LinkIndex: h.net.wan0, Table: 100}))
}

// Rules set and match the administrator's bits of the mark.
func testMarks(h *harness) {
	const query, answer = "udp 192.168.1.10:1 > 198.51.100.9:53", "udp 198.51.100.9:53 > 192.168.1.10:1"
	h.plays([]play{
		{"set on the way in", "match in on lan0 set mark 0x40000/0xff0000\npass", []step{
			{"xdp lan", query + " ttl 1", "up up-ttl came+0x40000"},
			{"tcx lan", query + " ttl 1", "up up-ttl came+0x40000"},
			{"out wan came+0x40000", query, "up marked leaves+0x40000"},
			{"out wan came", query, "up marked leaves+0x40000"},
			// replies are not steered, but have the mark where they leave
			{"tcx wan", answer + " ttl 1", "up up-ttl came"},
			{"out lan came", answer, "up marked leaves+0x40000"},
		}},
		{"set without a state", "pass no state set mark 0x5", []step{
			{"xdp lan", query + " ttl 1", "up up-ttl record0+0x5"},
			{"out wan record0+0x5", query, "up marked record0+0x5"},
			{"own wan", "udp 203.0.113.2:1 > 198.51.100.9:53", "up rule +0x5"},
			{"xdp lan", "udp 192.168.1.10:1 > 192.168.1.1:53 frag 0+ id 7 len 24", "up local +0x5"},
			{"xdp lan", "udp 192.168.1.10 > 192.168.1.1 frag 32 id 7 len 24", "up local +0x5"},
		}},
		{"set on the way out without a state", "pass in no state set mark 1/1\npass out on wan0 no state set mark 2/6", []step{
			{"xdp lan", query + " ttl 1", "up up-ttl record0+0x1"}, // routed by what the way in has set
			{"out wan record0+0x9", query, "up marked record0+0xb"},
			{"tcx lan", "udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 7 len 24 ttl 1", "up up-ttl record0+0x1"},
			{"tcx lan", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24 ttl 1", "up up-ttl record0+0x1"},
			{"out wan record0+0x1", "udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 7 len 24", "up marked record0+0x3"},
			{"out wan record0+0x1", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24", "up marked record0+0x3"},
		}},
		{"set on what the box sends and gets", "pass in set mark 1/1\npass out on wan0 set mark 6", []step{
			{"own wan", "udp 203.0.113.2:1 > 198.51.100.9:53", "up rule +0x6"},
			{"own wan +0x900", "udp 203.0.113.2:1 > 198.51.100.9:53", "up state +0x6"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:1", "up local +0x6"},
			{"xdp lan", "udp 192.168.1.10:1 > 192.168.1.1:53", "up local +0x1"},
			{"own lan +0x900", "udp 192.168.1.1:53 > 192.168.1.10:1", "up state +0x901"},
		}},
		{"asked for", "block\npass out on wan0 marked 0x40000/0xff0000\npass out on wan0 inet proto icmp ! marked 5", []step{
			{"own wan +0x40000", "udp 203.0.113.2:1 > 198.51.100.9:53", "up rule +0x40000"},
			{"own wan +0x41234", "udp 203.0.113.2:2 > 198.51.100.9:53", "up rule +0x41234"},
			{"own wan +0x80000", "udp 203.0.113.2:3 > 198.51.100.9:53", "drop block"},
			{"own wan", "udp 203.0.113.2:4 > 198.51.100.9:53", "drop block"},
			{"own wan +0x5", "icmp 203.0.113.2 > 198.51.100.9 type 8 id 3", "drop block"},
			{"own wan came+0x5", "icmp 203.0.113.2 > 198.51.100.9 type 8 id 3", "drop block"}, // rules do not match weir's own bits
			{"own wan +0x6", "icmp 203.0.113.2 > 198.51.100.9 type 8 id 4", "up rule +0x6"},
		}},
		{"set, then asked for", "match in on lan0 proto udp to port 53 set mark 3\nmatch in marked 3 set mark 4/4\nblock out\npass out marked 7\npass in", []step{
			{"xdp lan", query + " ttl 1", "up up-ttl came+0x7"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:54", "drop block"},
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53 ttl 1", "up up-ttl came+0x7"},
		}},
		{"what the way in has set stays", "pass in on lan0 set mark 1/3\npass out on wan0 set mark 6/7", []step{
			{"xdp lan", query + " ttl 1", "up up-ttl came+0x1"},
			{"out wan came+0x1", query, "up marked leaves+0x5"},
		}},
	})
}

// A mark that rules have set chooses the route, and so does a packet's own mark.
func testMarksSteer(h *harness) {
	const query, answer = "udp 192.168.1.10:1 > 198.51.100.9:53", "udp 198.51.100.9:53 > 192.168.1.10:1"
	h.steer()
	h.load("pass\npass in on lan0 proto udp to port 53 set mark 2/0xf")
	for _, hook := range []func(int, []byte) result{h.xdp, h.tcIn} {
		h.forget()
		for range 3 { // the first one creates the state, and the second looks the route up again
			h.routed(h.in(hook, "lan", query), secondMAC)
			h.routed(h.in(hook, "lan", "udp 192.168.1.10:1 > 198.51.100.9:54"), wanHostMAC)
		}
		h.routed(h.in(hook, "wan", answer), lanHostMAC) // by the main table: a reply is not steered
	}
	h.load("pass in no state\npass out on wan0 no state set mark 2/0xf") // does not steer
	for _, text := range []string{query, query + " frag 0+ id 7 len 24", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24"} {
		r := h.in(h.tcIn, "lan", text)
		h.routed(r, wanHostMAC)
		if r.mark != 2 {
			h.tb.Errorf("%s leaves with mark %#x", text, r.mark)
		}
	}
	h.load("pass")
	h.ownMarks(query)
}

// ownMarks sends packets of one connection with marks of their own, with the daemon and
// without. Their routes are no news for other packets.
func (h *harness) ownMarks(query string) {
	h.tb.Helper()
	shared := h.dp.tables.shared
	probe := func(tick uint32) {
		for i := range shared.Nexthops {
			shared.Nexthops[i].Probed = tick
		}
	}
	defer h.dp.Heartbeat()
	defer probe(0)
	for _, dead := range []bool{false, true} {
		if dead {
			shared.Heartbeat = shared.Now - 1000
			probe(shared.Now)
		}
		generation := shared.RouteGeneration
		h.markedPackets(query)
		if now := shared.RouteGeneration; now != generation {
			h.tb.Errorf("packets with marks have begun %d generations of routes", now-generation)
		}
	}
}

func (h *harness) markedPackets(query string) {
	h.tb.Helper()
	ifindex, frame := h.arrive("lan", query)
	for _, mark := range []uint32{0, 2, 0, 0x12, 1, 2} { // all of one connection
		r := h.tc("weir_tc_in", bpfload.Run{Frame: frame, Ifindex: ifindex, From: ifindex, Mark: mark})
		h.routed(r, map[bool]string{true: secondMAC, false: wanHostMAC}[mark&0xf == 2])
	}
}

// routed checks which router a frame is redirected to.
func (h *harness) routed(r result, to string) {
	h.tb.Helper()
	if r.verdict != redirect || net.HardwareAddr(r.frame[:6]).String() != to {
		h.tb.Errorf("%s %s to %x, want a redirect to %s", r.verdict, r.reason, r.frame[:min(6, len(r.frame))], to)
	}
}

// Before Linux 6.10 the programs cannot look up the route for a mark. Packets with a mark
// go through the stack, which routes them.
func TestMarkBlind(t *testing.T) {
	h := newHarness(t, "pass\npass in on lan0 proto udp to port 53 set mark 2/0xf", func(c *Config) { c.MarkBlind = true })
	h.steer()
	for range 3 {
		if r := h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53"); r.reason != "up-mark" || r.mark&0xf != 2 {
			t.Errorf("%s %s, mark %#x", r.verdict, r.reason, r.mark)
		}
		h.routed(h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:54"), wanHostMAC)
		h.routed(h.in(h.xdp, "wan", "udp 198.51.100.9:53 > 192.168.1.10:1"), lanHostMAC)
	}
	// the table of the mark may have a route where the main table has none
	_, without, err := net.ParseCIDR("198.18.0.0/15")
	check(t, err)
	check(t, netlink.RouteAdd(&netlink.Route{Dst: without, Type: unix.RTN_UNREACHABLE}))
	for packet, want := range map[string]string{
		"udp 192.168.1.10:1 > 198.18.0.1:53":   "up-mark",
		"udp 192.168.1.10:1 > 198.18.0.1:54":   "local", // without a mark: the stack answers
		"udp 192.168.1.10:1 > 192.168.1.1:53":  "local",
		"udp 192.168.1.10:1 > 203.0.113.2:53":  "local",
		"udp 192.168.1.10:2 > 198.51.100.9:53": "up-mark",
	} {
		if r := h.in(h.xdp, "lan", packet); r.reason != want {
			t.Errorf("%s: %s %s, want %s", packet, r.verdict, r.reason, want)
		}
	}
}

func TestRoutesByMark(t *testing.T) {
	newNet(t)
	knows, err := bpfload.RoutesByMark()
	if err != nil {
		t.Fatal(err)
	}
	if !knows { // those that weir is tested on are newer than 6.10
		t.Error("this kernel finds no routes by marks")
	}
}
