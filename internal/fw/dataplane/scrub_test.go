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
		{"SYN with FIN", "match out on wan0 scrub (max-mss 1400)\npass flags S/SAFR", []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 SF seq 100 mss 1460", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1400 ttl 63"},
			{"tcx lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 SF seq 100", "forward state wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 SFA seq 300 ack 101", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 ttl 63"},
			{"tcx lan", "tcp 192.168.1.10:4001 > 192.168.1.1:80 SF seq 100", "up local tcp 192.168.1.10:4001 > 192.168.1.1:80 S seq 100"},
			{"out wan", "tcp 203.0.113.2:4000 > 198.51.100.9:80 SF seq 100", "up rule tcp 203.0.113.2:4000 > 198.51.100.9:80 S seq 100"},
			{"xdp lan", "tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 SF seq 100", "forward rule wan tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 S seq 100 ttl 63"},
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

// FreeBSD's scrub rules choose single packets. The first one that matches counts, in each
// crossing, also for replies.
func testScrubLists(h *harness) {
	const (
		syn   = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460"
		reply = "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1460"
		query = "udp 192.168.1.10:1 > 198.51.100.9:53"
		back  = "udp 198.51.100.9:53 > 192.168.1.10:1"
	)
	h.plays([]play{
		{"one direction", "scrub in on wan0 all max-mss 1440\npass", []step{
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460 ttl 63"},
			{"tcx lan", syn, "forward state wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460 ttl 63"},
			{"xdp wan", reply, "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1440 ttl 63"},
			{"tcx wan", reply, "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1440 ttl 63"},
		}},
		{"the first that matches", "scrub in on wan0 max-mss 1440\nscrub out on wan0 max-mss 1440\nscrub all max-mss 1200\npass", []step{
			{"own wan", "tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1460", "up rule tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1440"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:5 SA seq 300 ack 101 mss 1460", "up local done tcp 198.51.100.9:80 > 203.0.113.2:5 SA seq 300 ack 101 mss 1440"},
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1200 ttl 63"}, // by lan0
		}},
		{"in an anchor", "scrub-anchor norm\nscrub all max-mss 1200\nload anchor \"norm\" {\nscrub on wan0 max-mss 1440\n}\nload anchor \"out\" {\nscrub all max-mss 100\n}\npass", []step{
			{"own wan", "tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1460", "up rule tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1440"},
			{"own lan", "tcp 192.168.1.1:5 > 192.168.1.10:80 S seq 100 mss 1460", "up rule tcp 192.168.1.1:5 > 192.168.1.10:80 S seq 100 mss 1200"},
		}},
		{"no scrub", "no scrub on wan0 inet from any to 198.51.100.9\nscrub all min-ttl 100\nno scrub all max-mss 900\npass", []step{
			{"xdp lan", query, "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 99"}, // lan0 scrubs it
			{"xdp wan", back, "forward state lan udp 198.51.100.9:53 > 192.168.1.10:1 ttl 100"},
			{"own wan", "udp 203.0.113.2:1 > 198.51.100.9:53", "up rule"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:1", "up local done udp 198.51.100.9:53 > 203.0.113.2:1 ttl 100"},
		}},
		{"replies of a translated connection", "scrub in on wan0 from any to 203.0.113.2 max-mss 1300\nscrub out on lan0 from any to 192.168.1.10 min-ttl 99\n" +
			"scrub from any to 192.168.1.0/24 max-mss 1\nnat on wan0 inet from 192.168.1.0/24 to any -> (wan0) static-port\npass", []step{
			{"tcx lan", syn, "forward rule wan tcp 203.0.113.2:4000 > 198.51.100.9:80 S seq 100 mss 1460 ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 203.0.113.2:4000 SA seq 300 ack 101 mss 1460", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1300 ttl 99"},
		}},
		{"replies of a redirected connection", "scrub out on wan0 from 192.168.1.10 max-mss 1000\nscrub in on wan0 to 203.0.113.2 max-mss 1100\n" +
			"rdr on wan0 inet proto tcp from any to 203.0.113.2 port 80 -> 192.168.1.10\npass", []step{
			{"xdp wan", "tcp 198.51.100.9:4000 > 203.0.113.2:80 S seq 100 mss 1460", "forward rule lan tcp 198.51.100.9:4000 > 192.168.1.10:80 S seq 100 mss 1100 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:80 > 198.51.100.9:4000 SA seq 300 ack 101 mss 1460", "forward state wan tcp 203.0.113.2:80 > 198.51.100.9:4000 SA seq 300 ack 101 mss 1000 ttl 63"},
		}},
		{"beside scrub of rules", "scrub in on wan0 all min-ttl 50\nmatch out on wan0 scrub (min-ttl 60, max-mss 1400)\npass", []step{
			{"xdp lan", syn + " ttl 9", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1400 ttl 60"},
			{"xdp wan", reply + " ttl 9", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1400 ttl 59"},
		}},
		{"without a state", "scrub in on wan0 all max-mss 1400 min-ttl 80\npass no state", []step{
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460 ttl 63"},
			{"xdp wan", reply, "forward rule lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1400 ttl 79"},
			{"tcx wan", "udp 198.51.100.9:53 > 192.168.1.10:1 frag 0+ id 7 len 24", "forward rule lan udp 198.51.100.9:53 > 192.168.1.10:1 frag 0+ id 7 len 24 ttl 79"},
			{"xdp wan", "udp 198.51.100.9 > 192.168.1.10 frag 32 id 7 len 24", "forward rule lan udp 198.51.100.9 > 192.168.1.10 frag 32 id 7 len 24 ttl 79"},
		}},
		{"routes", "scrub in from urpf-failed min-ttl 100\nscrub in on wan0 from ! no-route max-mss 1400\nscrub out on lan0 from urpf-failed max-mss 1300\npass", []step{
			{"xdp lan", syn, "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100 mss 1460 ttl 63"},
			{"xdp wan", reply, "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101 mss 1300 ttl 63"},
			{"own wan", "tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 mss 1460", "up rule"},
			{"tcx wan", "tcp 198.51.100.9:80 > 203.0.113.2:5 SA seq 300 ack 101 mss 1460", "up local tcp 198.51.100.9:80 > 203.0.113.2:5 SA seq 300 ack 101 mss 1400"},
			{"xdp wan", "udp 192.168.1.77:4000 > 203.0.113.2:53 ttl 9", "up local done udp 192.168.1.77:4000 > 203.0.113.2:53 ttl 100"},
		}},
		{"what the stack forwards", "scrub out on lan0 all min-ttl 255\npass", []step{
			{"xdp lan", query, "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"tcx wan", back + " len 1480", "up up-mtu came udp 198.51.100.9:53 > 192.168.1.10:1 len 1480 ttl 255"},
			{"out lan came", back + " ttl 254", "up marked leaves udp 198.51.100.9:53 > 192.168.1.10:1 ttl 255"},
			{"tcx lan", query + " len 1480", "up up-mtu came"},
			{"out wan came", query + " ttl 63", "up marked leaves"},
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

// States show what differs by direction.
func TestScrubListInStates(t *testing.T) {
	h := newHarness(t, "scrub in on wan0 all no-df min-ttl 10 max-mss 1400\npass")
	for _, packet := range []string{"udp 192.168.1.10:4000 > 198.51.100.9:80", "udp 192.168.1.10:4000 > 192.168.1.1:80"} {
		h.xdp(h.net.lan0, parsePkt(packet).frame(lanHostMAC, lan0MAC))
	}
	h.tcOut(h.net.wan0, parsePkt("udp 203.0.113.2:4000 > 198.51.100.9:80").frame(wan0MAC, wanHostMAC), 0)
	h.xdp(h.net.wan0, parsePkt("udp 198.51.100.9:4000 > 192.168.1.10:80").frame(wanHostMAC, wan0MAC))
	var got []string
	for s := range h.dp.View().States() {
		v := s.View(&state.Context{Rule: func(uint32) (state.RuleRef, bool) { return state.RuleRef{}, true }})
		got = append(got, stateText(s)+": "+v.Scrub+", replies "+v.ScrubBack)
	}
	slices.Sort(got)
	want := []string{
		"17 192.168.1.10:4000 > 192.168.1.1:80 udp.first 1:0 1/0: , replies ",
		"17 192.168.1.10:4000 > 198.51.100.9:80 udp.first 1:0 1/0: , replies no-df min-ttl 10 in max-mss 1400",
		"17 198.51.100.9:4000 > 192.168.1.10:80 udp.first 1:0 1/0: no-df min-ttl 10 in max-mss 1400, replies no",
		"17 203.0.113.2:4000 > 198.51.100.9:80 udp.first 1:0 1/0: , replies no-df min-ttl 10 in max-mss 1400",
	}
	if !slices.Equal(got, want) {
		t.Errorf("states:\n%q\nwant\n%q", got, want)
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
		v := s.View(&state.Context{Rule: func(uint32) (state.RuleRef, bool) { return state.RuleRef{}, true }})
		scrubs = append(scrubs, v.Scrub, v.ScrubBack)
	}
	if want := []string{"no-df random-id min-ttl 10 in min-ttl 64 out max-mss 1440", ""}; !slices.Equal(scrubs, want) {
		t.Errorf("states: %q, want %q", scrubs, want)
	}
	for s, want := range map[state.Scrub]string{
		{}: "", {NoDF: true}: "no-df", {Enters: 5, Leaves: 5, MaxMSS: 9}: "min-ttl 5 max-mss 9",
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v prints %q", s, got)
		}
	}
}
