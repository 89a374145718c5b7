package dataplane

import (
	"testing"

	"github.com/vishvananda/netlink"
)

// Conditions on the routes of addresses, and on the packet's size and type of service.
func testFacts(h *harness) {
	route := &netlink.Route{Dst: must(netlink.ParseIPNet("10.66.0.0/16"))(h.tb), Type: 7, LinkIndex: 0} // unreachable
	check(h.tb, netlink.RouteReplace(route))
	defer func() { check(h.tb, netlink.RouteDel(route)) }()
	const (
		spoofed = "udp 192.168.1.10:4000 > 198.51.100.9:53"
		urpf    = "block in quick from urpf-failed\npass"
	)
	h.plays([]play{
		{"urpf-failed", urpf, []step{
			{"xdp lan", spoofed, "forward rule wan " + spoofed + " ttl 63"},
			{"xdp wan", "udp 192.168.1.77:4000 > 203.0.113.2:53", "drop block"},
			{"tcx wan", "udp [fd00:1::77]:4000 > [2001:db8:113::2]:53", "drop block"},
			{"xdp lan", "udp 198.51.100.7:4000 > 192.168.1.10:53", "drop block"},
			{"xdp wan", "udp 10.66.1.2:4000 > 203.0.113.2:53", "drop block"},
			{"xdp lan", "udp [fe80::7]:4000 > [fd00:1::1]:53", "up local done"},
		}},
		{"own packets", "block from urpf-failed\nblock to no-route", []step{
			{"out wan", "udp 203.0.113.2:4000 > 198.51.100.9:53", "up no-rule"},
			{"out wan", "udp 192.168.1.1:4000 > 198.51.100.9:53", "drop block"},
			{"out wan", "udp 203.0.113.2:4000 > 10.66.1.2:53", "drop block"},
		}},
		{"no-route", "block from no-route\nblock in on lan0 to ! no-route", []step{
			{"xdp wan", "udp 10.66.1.2:4000 > 203.0.113.2:53", "drop block"},
			{"xdp lan", spoofed, "drop block"},
			{"xdp wan", "udp 198.51.100.9:4000 > 192.168.1.10:53", "forward no-rule lan udp 198.51.100.9:4000 > 192.168.1.10:53 ttl 63"},
		}},
		{"size", "block\npass max-pkt-size 48", []step{
			{"xdp lan", spoofed + " len 20", "forward rule wan " + spoofed + " len 20 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:4001 > 198.51.100.9:53 len 21", "drop block"},
			{"xdp lan", "udp [fd00:1::10]:4001 > [2001:db8:9::1]:53 len 1", "drop block"},
		}},
		{"all and none of them", "block\npass quick probability 100%\nblock quick", []step{
			{"xdp lan", spoofed, "forward rule wan " + spoofed + " ttl 63"},
		}},
	})
}

// A quarter of the packets match a rule with a probability of a quarter. The test fails if
// their number is more than 7 standard deviations away.
func TestProbability(t *testing.T) {
	h := newHarness(t, "block\npass in quick on lan0 probability 25% no state\npass out")
	const packets = 4000
	_, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 198.51.100.9:53")
	passed := 0
	for range packets {
		if r := h.tcIn(h.net.lan0, append([]byte(nil), frame...)); string(r.verdict) != "drop" {
			passed++
		}
		h.forget()
	}
	if passed < packets/4-200 || passed > packets/4+200 {
		t.Errorf("%d of %d packets pass with a probability of 25%%", passed, packets)
	}
}
