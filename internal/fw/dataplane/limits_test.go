package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// full runs a test while a table has no room left. It sets the number of used entries for
// that, and restores it afterwards.
func full(number *uint32, limit uint32, test func()) {
	before := *number
	*number = limit
	defer func() { *number = before }()
	test()
}

// expect makes a packet come in at "xdp lan", "tcx wan" or the like, and compares verdict
// and reason.
func (h *harness) expect(at, packet, want string) result {
	h.tb.Helper()
	hook, from, _ := strings.Cut(at, " ")
	r := h.in(map[string]func(int, []byte) result{"xdp": h.xdp, "tcx": h.tcIn}[hook], from, packet)
	if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != want {
		h.tb.Errorf("%s %s: got %s, want %s", at, packet, got, want)
	}
	return r
}

// If its next hop gets no number, a packet goes through the stack, which knows the
// neighbour. Next hops that have a number go on.
func testNextHopsFull(h *harness) {
	h.load("pass keep state")
	addNeighbour(h.tb, h.net.wan0, "203.0.113.77", wanHostMAC)
	s := h.dp.tables.shared
	h.expect("xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule")
	full(&s.NexthopsHigh, MaxNextHops, func() {
		h.expect("xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule")
		for range 3 {
			const handed = "udp 192.168.1.10:3 > 203.0.113.77:53 ttl 63"
			r := h.expect("xdp lan", "udp 192.168.1.10:3 > 203.0.113.77:53", "up up-nexthop")
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

// If no path is free, packets count under the deciding rules alone. If none of the paths
// reserved for that is free, they count under no rule. No packet is lost.
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
			h.expect("xdp lan", "47 192.168.1.10 > 198.51.100.8 len 20", "forward rule") // so is the path of its deciding rules
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

// If there are more fragmented packets than weir remembers, the oldest are forgotten. The
// test uses one CPU, because each CPU keeps its own list of newest entries, even if
// nothing is added any more.
func testFragmentsFull(h *harness) {
	oneCPU(h.tb, 0)
	h.load("pass no state")
	const packets = 20000
	fragment := func(id int, rest string) string {
		return fmt.Sprintf("udp 192.168.1.10%s id %d len 16", rest, id)
	}
	frame := parsePkt(fragment(1, ":1 > 198.51.100.9:53 frag 0+")).frame(lanHostMAC, lan0MAC)
	for id := 1; id <= packets; id++ {
		binary.BigEndian.PutUint16(frame[18:], uint16(id))
		sumHeader(frame)
		must(bpfload.RunTC(h.program("weir_tc_in"), bpfload.Run{Frame: frame, Ifindex: h.net.lan0, From: h.net.lan0}))(h.tb)
	}
	h.counts(h.net.lan0)
	h.expect("xdp lan", fragment(packets, " > 198.51.100.9 frag 24"), "forward rule")
	h.expect("xdp lan", fragment(1, " > 198.51.100.9 frag 24"), "drop fragment-orphan")
}

// If the stack has packets of more tuples than there are records, the oldest record is
// forgotten: its packet does not leave. All others do. The test uses one CPU, as above.
func testHandoffsFull(h *harness) {
	oneCPU(h.tb, 0)
	h.load("pass no state")
	const tuples = 20000
	frame := parsePkt("udp 192.168.1.10:1 > 203.0.113.99:53").frame(lanHostMAC, lan0MAC)
	var marks [tuples + 1]uint32
	for port := 1; port <= tuples; port++ {
		binary.BigEndian.PutUint16(frame[34:], uint16(port))
		o := must(bpfload.RunTC(h.program("weir_tc_in"), bpfload.Run{Frame: frame, Ifindex: h.net.lan0, From: h.net.lan0}))(h.tb)
		marks[port] = o.Mark
	}
	h.counts(h.net.lan0)
	for port, want := range map[int]string{1: "drop guard", tuples - 1000: "up marked", tuples: "up marked"} {
		sent := parsePkt(fmt.Sprintf("udp 192.168.1.10:%d > 203.0.113.99:53 ttl 63", port)).frame(wan0MAC, wanHostMAC)
		r := h.tcFrom(h.net.wan0, sent, marks[port], h.net.lan0)
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); marks[port] == 0 || got != want {
			h.tb.Errorf("the packet from port %d, with the mark %#x: got %s, want %s", port, marks[port], got, want)
		}
	}
}

// A full ring loses no packet. Records without room are counted, and the rest can be
// read.
func testLogRingFull(h *harness) {
	h.load("pass in log on lan0 no state\npass in on wan0 no state\npass out no state")
	ring := must(h.dp.OpenRing(LogRing))(h.tb)
	defer ring.Close()
	h.dp.SetRecording(LogRing, true)
	defer h.dp.SetRecording(LogRing, false)
	before := must(h.dp.View().RecordsLost(LogRing))(h.tb)
	const packets = 30000
	frame := parsePkt("udp 192.168.1.10:1 > 198.51.100.9:53 len 500").frame(lanHostMAC, lan0MAC)
	for range packets {
		r := must(bpfload.RunTC(h.program("weir_tc_in"), bpfload.Run{Frame: frame, Ifindex: h.net.lan0, From: h.net.lan0}))(h.tb)
		if tcResult(&r).verdict != redirect {
			h.tb.Fatalf("a packet that was to be logged was not forwarded: %+v", r)
		}
	}
	h.counts(h.net.lan0)
	lost := must(h.dp.View().RecordsLost(LogRing))(h.tb) - before
	h.expect("xdp wan", "udp 198.51.100.9:1 > 192.168.1.10:9", "forward rule")
	var read uint64
	check(h.tb, ring.Read(0, func(Record) { read++ }))
	if lost == 0 || read == 0 || read+lost != packets {
		h.tb.Errorf("of %d records %d were lost and %d read", packets, lost, read)
	}
	h.expect("xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule")
	if now := must(h.dp.View().RecordsLost(LogRing))(h.tb) - before; now != lost || !ring.Pending() {
		h.tb.Errorf("%d records are lost after the ring was read, want %d and one in the ring", now, lost)
	}
}

func countedPaths(h *harness) map[string]uint64 {
	packets := make(map[string]uint64)
	for _, p := range must(h.dp.View().Paths())(h.tb) {
		name := fmt.Sprint(p.Rules)
		if p.Full {
			name = "full"
		}
		if p.Counter().Packets > 0 {
			packets[name] += p.Counter().Packets
		}
	}
	return packets
}

// TestManyInterfaces checks that interfaces beyond the limit are counted together.
// Packets of an interface without any room are dropped and counted with them.
func TestManyInterfaces(t *testing.T) {
	h := newHarness(t, "pass")
	for i := range MaxInterfaces {
		h.setInterface(1000+i, InterfacePresent, lan0MAC)
	}
	if err := h.dp.SetInterface(MaxIfindex, Interface{}); err == nil {
		t.Errorf("interface %d is known", MaxIfindex)
	}
	const tooHigh = 2 * MaxIfindex
	for name, ifindex := range map[string]int{"far0": tooHigh, "last0": 1000 + MaxInterfaces - 1} {
		check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, Index: ifindex}, PeerName: name + "-far"}))
	}
	frame := parsePkt("udp 192.168.1.10:1 > 198.51.100.9:53 len 12").frame(lanHostMAC, lan0MAC)
	for ifindex, want := range map[int]verdict{tooHigh: drop, 1000 + MaxInterfaces - 1: redirect} {
		o := must(bpfload.RunTC(h.program("weir_tc_in"), bpfload.Run{Frame: frame, Ifindex: ifindex, From: ifindex}))(t)
		if r := tcResult(&o); r.verdict != want {
			t.Errorf("a packet at interface %d: %s, want %s", ifindex, r.verdict, want)
		}
	}
	all := must(h.dp.View().Interfaces())(t)
	others := all[len(all)-1]
	if len(all) != MaxInterfaces || others.Ifindex != 0 || others.Reasons[reason.Interface].Packets != 1 || others.Reasons[reason.Rule].Packets != 1 {
		t.Errorf("%d interfaces are counted, the last as %+v", len(all), others)
	}
}

// TestManyAddresses checks that a full table takes as many addresses as it has room for,
// and that others take their place later.
func TestManyAddresses(t *testing.T) {
	n := newNet(t)
	d := build(t, n.blank())
	const room, more = 4096, 4
	var addresses []Address
	for i := range room + more {
		addresses = append(addresses, Address{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32), n.lan0})
	}
	var full *AddressesError
	if err := d.SetAddresses(addresses); !errors.As(err, &full) || full.Left != more || full.Room != room {
		t.Errorf("%d addresses: %v", len(addresses), err)
	}
	check(t, d.SetAddresses(addresses[more:]))
	var owner uint32
	for _, a := range []Address{addresses[more], addresses[room+more-1]} {
		check(t, d.tables.maps[mapAddresses].Lookup(rawAddr(a.Addr()), &owner))
	}
}
