package dataplane

import (
	"encoding/binary"
	"slices"
	"testing"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
)

// Rules raise TTLs and lower the MSS of SYNs.
func testScrub(h *harness) {
	const (
		syn   = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460"
		reply = "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1460"
		query = "udp 192.168.1.10:1 > 198.51.100.9:53"
		back  = "udp 198.51.100.9:53 > 192.168.1.10:1"
	)
	h.plays([]play{
		{"max-mss in both directions", "match out on wan0 scrub (max-mss 1400)\npass", []step{
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1400 ttl 63"},
			{"tcx lan", syn, "forward state wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1400 ttl 63"},
			{"xdp wan", reply, "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1400 ttl 63"},
			{"tcx wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 wscale 7 mss 1400",
				"forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 wscale 7 mss 1400 ttl 63"},
		}},
		{"max-mss never raises", "match scrub (max-mss 1400)\npass", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S mss 536", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S mss 536 ttl 63"},
			{"tcx lan", "tcp 192.168.1.10:4001 > 198.51.100.9:80 S", "forward rule wan tcp 192.168.1.10:4001 > 198.51.100.9:80 S ttl 63"},
			{"tcx lan", "tcp 192.168.1.10:4002 > 198.51.100.9:80 S mss 1401", "forward rule wan tcp 192.168.1.10:4002 > 198.51.100.9:80 S mss 1400 ttl 63"},
		}},
		{"a later rule's value replaces an earlier one", "match on wan0 scrub (max-mss 1200, min-ttl 200)\nmatch out on wan0 scrub (max-mss 1440)\npass out scrub (min-ttl 30)\npass in", []step{
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1440 ttl 63"},
			{"xdp lan", query + " ttl 9", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 30"},
		}},
		{"the smaller of two crossings", "match in on lan0 scrub (max-mss 1300)\nmatch out on wan0 scrub (max-mss 1400)\npass", []step{
			{"tcx lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1300 ttl 63"},
		}},
		{"without a state", "pass no state\nmatch out on wan0 scrub (max-mss 1400)\npass out on wan0 no state scrub (min-ttl 100)", []step{
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1400 ttl 100"},
			{"tcx lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1400 ttl 100"},
			{"xdp wan", reply, "forward rule lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1460 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 7 len 24", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 7 len 24 ttl 100"},
			{"xdp lan", "udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24", "forward rule wan udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24 ttl 100"},
		}},
		{"a side without a state", "pass no state\npass out on wan0 scrub (min-ttl 90)\npass in on lan0 no state scrub (min-ttl 70, max-mss 1000)", []step{
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1000 ttl 90"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460 ttl 1", "forward state wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1000 ttl 90"},
			{"xdp wan", reply + " ttl 1", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1460 ttl 89"},
		}},
		{"min-ttl where packets come in: before the hop", "pass\npass in on lan0 scrub (min-ttl 64)", []step{
			{"xdp lan", query + " ttl 1", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", query + " ttl 1", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"tcx lan", query + " ttl 65", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53"},
			{"tcx wan", back + " ttl 8", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:1"}, // leaves there: behind the hop
			{"xdp wan", back + " ttl 1", "up up-ttl came"},
			{"xdp lan", "udp 192.168.1.10:1 > 192.168.1.1:53 ttl 1", "up local done udp 192.168.1.10:1 > 192.168.1.1:53"},
		}},
		{"min-ttl where packets leave: behind the hop", "pass\npass out on wan0 scrub (min-ttl 255)", []step{
			{"xdp lan", query, "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 255"},
			{"tcx lan", query + " ttl 2", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 255"},
			{"tcx lan", query + " ttl 1", "up up-ttl came"}, // it ends before it leaves
			{"xdp wan", back + " ttl 1", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:1 ttl 254"},
			{"own wan", "udp 203.0.113.2:1 > 198.51.100.9:53", "up rule udp 203.0.113.2:1 > 198.51.100.9:53 ttl 255"},
			{"own wan", "udp 203.0.113.2:1 > 198.51.100.9:53", "up state udp 203.0.113.2:1 > 198.51.100.9:53 ttl 255"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:1 ttl 3", "up local done udp 198.51.100.9:53 > 203.0.113.2:1 ttl 255"},
		}},
		{"what the box sends", "pass out on wan0 scrub (max-mss 1400 min-ttl 100)", []step{
			{"own wan", "tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1460", "up rule tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1400 ttl 100"},
			{"own wan", "tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1460", "up state tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1400 ttl 100"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:5 SA seq 300 ack 101 mss 1460", "up local done tcp 198.51.100.9:80 > 203.0.113.2:5 SA seq 300 ack 101 mss 1400 ttl 100"},
		}},
		{"what the stack forwards", "match in on lan0 scrub (min-ttl 10)\nmatch out on wan0 scrub (min-ttl 255, max-mss 1400)\npass", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 203.0.113.9:80 S seq 100 mss 1460 ttl 1", "up up-neighbour came tcp 192.168.1.10:4000 > 203.0.113.9:80 S seq 100 mss 1400 ttl 255"},
			{"out wan came", "tcp 192.168.1.10:4000 > 203.0.113.9:80 S seq 100 mss 1400 ttl 254", "up marked leaves tcp 192.168.1.10:4000 > 203.0.113.9:80 S seq 100 mss 1400 ttl 255"},
			{"tcx lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 1480 ttl 3", "up up-mtu came udp 192.168.1.10:1 > 198.51.100.9:53 len 1480 ttl 255"},
			{"out wan came", "udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 9 len 1456 ttl 254", "up marked leaves udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 9 len 1456 ttl 255"},
		}},
		{"translated", "match out on wan0 nat-to (wan0) static-port scrub (max-mss 1400)\npass", []step{
			{"tcx lan", syn, "forward rule wan tcp 203.0.113.2:4000 > 198.51.100.9:80 S seq 100 mss 1400 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:4000 SA seq 300 ack 101 mss 1460", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1400 ttl 63"},
		}},
		{"IPv6", "match in on lan0 scrub (min-ttl 64 max-mss 1220)\npass", []step{
			{"xdp lan", "tcp [fd00:1::10]:4000 > [2001:db8:7::7]:80 S seq 100 mss 1440 ttl 2", "forward rule wan tcp [fd00:1::10]:4000 > [2001:db8:7::7]:80 S seq 100 mss 1220 ttl 63"},
			{"tcx lan", "tcp [fd00:1::10]:4000 > [2001:db8:7::7]:80 S seq 100 mss 1440 ttl 2", "forward state wan tcp [fd00:1::10]:4000 > [2001:db8:7::7]:80 S seq 100 mss 1220 ttl 63"},
			{"tcx wan", "tcp [2001:db8:7::7]:80 > [fd00:1::10]:4000 SA seq 300 ack 101 mss 1440 ttl 2", "forward state lan tcp [2001:db8:7::7]:80 > [fd00:1::10]:4000 SA seq 300 ack 101 mss 1220"},
		}},
		{"errors about a connection", "match out on wan0 scrub (min-ttl 100)\npass", []step{
			{"xdp lan", query, "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 100"},
			{"xdp wan", "icmp 198.51.100.7 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:1 > 198.51.100.9:53 ttl 1",
				"forward state lan icmp 198.51.100.7 > 192.168.1.10 type 3 code 3 ttl 99 quote udp 192.168.1.10:1 > 198.51.100.9:53 ttl 1"},
		}},
	})
}

// A scrubHook gives a frame from the LAN to a hook.
type scrubHook struct {
	name string
	run  func(frame []byte) result
}

func (h *harness) scrubHooks() []scrubHook {
	return []scrubHook{
		{"xdp", func(frame []byte) result { return h.xdp(h.net.lan0, frame) }},
		{"tcx", func(frame []byte) result { return h.tcIn(h.net.lan0, frame) }},
	}
}

// withHead returns a frame with that id and those flags in its IPv4 header.
func withHead(frame []byte, id uint16, flags byte) []byte {
	frame = slices.Clone(frame)
	binary.BigEndian.PutUint16(frame[18:], id)
	frame[20] |= flags
	setHeaderSum(frame[14:34])
	return frame
}

// Rules clear DF and give packets another id.
func testScrubHeaders(h *harness) {
	t := h.tb
	udp := parsePkt("udp 192.168.1.10:1 > 198.51.100.9:53").frame(lanHostMAC, lan0MAC)
	first := parsePkt("udp 192.168.1.10:1 > 198.51.100.9:53 frag 0+ id 7 len 24").frame(lanHostMAC, lan0MAC)
	late := parsePkt("udp 192.168.1.10 > 198.51.100.9 frag 32 id 7 len 24").frame(lanHostMAC, lan0MAC)
	for _, test := range []struct {
		name, rules string
		frames      [][]byte
		df, newID   bool // afterwards
	}{
		{"nothing", "pass", [][]byte{withHead(udp, 5, dontFragment)}, true, false},
		{"no-df", "match scrub (no-df)\npass", [][]byte{withHead(udp, 5, dontFragment), withHead(udp, 6, dontFragment), withHead(udp, 7, 0)}, false, false},
		{"random-id", "match out scrub (random-id)\npass", [][]byte{withHead(udp, 5, dontFragment), withHead(udp, 5, dontFragment)}, true, true},
		{"both", "match in scrub (no-df random-id)\npass", [][]byte{withHead(udp, 0, dontFragment), withHead(udp, 0, dontFragment)}, false, true},
		{"both, on one side each", "match in scrub (no-df)\nmatch out scrub (random-id)\npass", [][]byte{withHead(udp, 0, dontFragment)}, false, true},
		{"fragments", "match in scrub (no-df random-id)\npass", [][]byte{withHead(first, 7, dontFragment), withHead(late, 7, dontFragment)}, false, false},
		{"fragments without a state", "pass no state scrub (no-df random-id)", [][]byte{withHead(first, 7, dontFragment), withHead(late, 7, dontFragment)}, false, false},
		{"without a state", "pass no state scrub (no-df random-id)", [][]byte{withHead(udp, 7, dontFragment)}, false, true},
	} {
		for _, hook := range h.scrubHooks() {
			h.load(test.rules)
			for i, frame := range test.frames {
				r := hook.run(frame)
				if r.verdict != redirect {
					t.Fatalf("%s at %s: packet %d: %s (%s)", test.name, hook.name, i, r.verdict, r.reason)
				}
				if df := r.frame[20]&dontFragment != 0; df != test.df {
					t.Errorf("%s at %s: packet %d has DF: %t", test.name, hook.name, i, df)
				}
				if id, was := binary.BigEndian.Uint16(r.frame[18:]), binary.BigEndian.Uint16(frame[18:]); (id != was) != test.newID {
					t.Errorf("%s at %s: packet %d: id %d became %d", test.name, hook.name, i, was, id)
				}
				if p := decodePkt(r.frame[14:]); p.sums != "" {
					t.Errorf("%s at %s: packet %d: wrong sums: %s", test.name, hook.name, i, p.sums)
				}
			}
		}
	}
}

// A super-packet of segments that have DF and one id keeps DF: without it the kernel would
// drop the packet. An id stays no segment's own.
func TestScrubSuperPacket(t *testing.T) {
	h := newHarness(t, "match scrub (no-df random-id)\npass")
	syn := parsePkt("tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100").frame(lanHostMAC, lan0MAC)
	if r := h.tcIn(h.net.lan0, syn); r.verdict != redirect {
		t.Fatalf("SYN: %s (%s)", r.verdict, r.reason)
	}
	h.tcIn(h.net.wan0, parsePkt("tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101").frame(wanHostMAC, wan0MAC))
	data := withHead(parsePkt("tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 101 ack 301 len 2800").frame(lanHostMAC, lan0MAC), 9, dontFragment)
	r := h.tc("weir_tc_in", bpfload.Run{Frame: data, Ifindex: h.net.lan0, From: h.net.lan0, GSO: 1400})
	if r.verdict != redirect || r.frame[20]&dontFragment == 0 {
		t.Errorf("a super-packet: %s (%s), flags %#x", r.verdict, r.reason, r.frame[20])
	}
	one := withHead(parsePkt("tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 2901 ack 301 len 10").frame(lanHostMAC, lan0MAC), 9, dontFragment)
	if r := h.tcIn(h.net.lan0, one); r.verdict != redirect || r.frame[20]&dontFragment != 0 {
		t.Errorf("a segment: %s (%s), flags %#x", r.verdict, r.reason, r.frame[20])
	}
}

// A state shows how its packets are normalised, and goes on so under rules that say
// nothing of it.
func TestScrubInStates(t *testing.T) {
	h := newHarness(t, "match in scrub (no-df min-ttl 10)\nmatch out on wan0 scrub (random-id max-mss 1440 min-ttl 64)\npass", func(c *Config) { c.Room = 20 })
	syn := parsePkt("tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460").frame(lanHostMAC, lan0MAC)
	h.xdp(h.net.lan0, syn)
	var scrubs []string
	for s := range h.dp.View().States() {
		scrubs = append(scrubs, s.Scrub.String())
	}
	if want := []string{"no-df random-id min-ttl 10 in min-ttl 64 out max-mss 1440"}; !slices.Equal(scrubs, want) {
		t.Errorf("states: %q, want %q", scrubs, want)
	}
	for s, want := range map[state.Scrub]string{
		{}: "", {NoDF: true}: "no-df", {MinTTL: [2]uint8{5, 5}, MaxMSS: 9}: "min-ttl 5 max-mss 9",
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v prints %q", s, got)
		}
	}
}
