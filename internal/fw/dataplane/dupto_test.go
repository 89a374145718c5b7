package dataplane

import "testing"

// copyRule has copies of UDP sent to a host of the WAN. The other rule asks for none.
const copyRule = "pass in on lan0 inet proto udp dup-to (wan0 203.0.113.1)\npass in proto tcp\npass out"

// XDP leaves what may have to be copied to TCX as it came, and forwards what has a state
// without copies. Verdicts do not differ from those without dup-to. What becomes of the copies
// is shown with real traffic, in test/dupto_test.go: a program that is run once redirects
// nothing.
func TestCopies(t *testing.T) {
	h := newHarness(t, copyRule)
	const ask, answer = "udp 192.168.1.10:5 > 198.51.100.9:53", "udp 198.51.100.9:53 > 192.168.1.10:5"
	const syn = "tcp 192.168.1.10:5 > 198.51.100.9:80 S seq 5"
	h.plays([]play{
		{"what XDP leaves", copyRule, []step{
			{"xdp lan", ask, "up up-copy"},
			{"states", "", ""},
			{"tcx lan", ask, "forward rule wan " + ask + " ttl 63"},
			{"xdp lan", ask, "up up-copy"},
			{"xdp wan", answer, "up up-copy"},
			{"tcx wan", answer, "forward state lan " + answer + " ttl 63"},
			{"states", "", "17 192.168.1.10:5 > 198.51.100.9:53 udp.single 2:1 1/1"},
		}},
		{"without a state", "pass in on lan0 dup-to (wan0 203.0.113.1) inet proto udp no state\npass out", []step{
			{"xdp lan", ask, "up up-copy"},
			{"tcx lan", ask, "forward rule wan " + ask + " ttl 63"},
			{"xdp lan", ask, "up up-copy"}, // the next one is copied, too
			{"tcx lan", ask, "forward state wan " + ask + " ttl 63"},
		}},
		{"what it does not leave", copyRule, []step{
			{"xdp lan", syn, "up up-copy"}, // the rules say whether it is copied
			{"tcx lan", syn, "forward rule wan " + syn + " ttl 63"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:5 SA seq 9 ack 6", "forward state lan tcp 198.51.100.9:80 > 192.168.1.10:5 SA seq 9 ack 6 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:5 > 198.51.100.9:80 A seq 6 ack 10", "forward state wan tcp 192.168.1.10:5 > 198.51.100.9:80 A seq 6 ack 10 ttl 63"},
		}},
	})
}
