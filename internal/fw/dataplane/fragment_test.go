package dataplane

import "testing"

import "fmt"

// Late fragments follow their first fragment.
func testFragments(h *harness) {
	first := "udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472"
	later := func(offset int, rest string) string {
		return fmt.Sprintf("udp 192.168.1.10 > 198.51.100.9 frag %d%s", offset, rest)
	}
	const passed = "forward rule wan udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472 ttl 63"
	goes := func(offset int, rest string) string {
		return fmt.Sprintf("forward state wan udp 192.168.1.10 > 198.51.100.9 frag %d%s ttl 63", offset, rest)
	}
	h.plays([]play{
		{"in order", "pass", []step{
			{"xdp lan", first, passed},
			{"xdp lan", later(1480, "+ id 9 len 1480"), goes(1480, "+ id 9 len 1480")},
			{"xdp lan", later(2960, " id 9 len 100"), goes(2960, " id 9 len 100")},
			{"states", "", "17 192.168.1.10:4000 > 198.51.100.9:53 udp.first 1:0 3/0"},
		}},
		{"translated", masquerade + "pass", []step{
			{"xdp lan", first, "forward rule wan udp 203.0.113.2:$p > 198.51.100.9:53 frag 0+ id 9 len 1472 ttl 63"},
			{"xdp lan", later(1480, "+ id 9 len 104"), "forward state wan udp 203.0.113.2 > 198.51.100.9 frag 1480+ id 9 len 104 ttl 63"},
			{"tcx lan", later(1584, " id 9 len 100"), "forward state wan udp 203.0.113.2 > 198.51.100.9 frag 1584 id 9 len 100 ttl 63"},
			{"xdp wan", "udp 198.51.100.9:53 > 203.0.113.2:$p frag 0+ id 7 len 72", "forward state lan udp 198.51.100.9:53 > 192.168.1.10:4000 frag 0+ id 7 len 72 ttl 63"},
			{"xdp wan", "udp 198.51.100.9 > 203.0.113.2 frag 80 id 7 len 72", "forward state lan udp 198.51.100.9 > 192.168.1.10 frag 80 id 7 len 72 ttl 63"},
		}},
		{"the id again", "pass", []step{
			{"xdp lan", first, passed},
			{"xdp lan", later(2960, " id 9 len 100"), goes(2960, " id 9 len 100")},
			{"xdp lan", first, "drop fragment-overlap"},
			{"xdp lan", later(1480, "+ id 9 len 1480"), goes(1480, "+ id 9 len 1480")},
			{"xdp lan", later(1480, "+ id 9 len 1480"), "drop fragment-orphan"}, // the packet was whole
			{"xdp lan", first, "forward state wan udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472 ttl 63"},
			{"xdp lan", later(1480, " id 9 len 100"), goes(1480, " id 9 len 100")},
			{"tcx lan", first, "forward state wan udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472 ttl 63"},
			{"tcx lan", later(1480, "+ id 9 len 104"), goes(1480, "+ id 9 len 104")},
			{"tcx lan", later(1584, "+ id 9 len 104"), goes(1584, "+ id 9 len 104")},
			{"tcx lan", later(1688, " id 9 len 100"), goes(1688, " id 9 len 100")},
			{"tcx lan", later(1480, " id 9 len 100"), "drop fragment-orphan"},
		}},
		{"what ends before others", "pass", []step{
			{"xdp lan", first, passed},
			{"xdp lan", later(2960, "+ id 9 len 8"), goes(2960, "+ id 9 len 8")},
			{"xdp lan", later(1480, " id 9 len 1480"), goes(1480, " id 9 len 1480")},
			{"xdp lan", first, "drop fragment-overlap"},
			{"xdp lan", later(2968, " id 9 len 8"), goes(2968, " id 9 len 8")},
			{"xdp lan", later(2968, " id 9 len 8"), "drop fragment-orphan"},
		}},
		{"v6, translated", masquerade + "pass", []step{
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 frag 0+ id 9 len 1440", "forward rule wan udp [2001:db8:113::2]:$p > [2001:db8:9::1]:53 frag 0+ id 9 len 1440 ttl 63"},
			{"xdp lan", "udp fd00:1::10 > 2001:db8:9::1 frag 1448 id 9 len 100", "forward state wan udp 2001:db8:113::2 > 2001:db8:9::1 frag 1448 id 9 len 100 ttl 63"},
		}},
		{"without state", "pass no state", []step{
			{"xdp lan", first, passed},
			{"xdp lan", later(1480, " id 9 len 100"), "forward rule wan udp 192.168.1.10 > 198.51.100.9 frag 1480 id 9 len 100 ttl 63"},
		}},
		{"before its first", "pass", []step{
			{"xdp lan", later(1480, " id 9 len 100"), "drop fragment-orphan"},
			{"xdp lan", first, passed},
			{"xdp lan", later(1480, " id 8 len 100"), "drop fragment-orphan"},
			{"xdp wan", "udp 198.51.100.9 > 192.168.1.10 frag 1480 id 9 len 100", "drop fragment-orphan"},
		}},
		{"blocked firsts are not remembered", "block", []step{
			{"xdp lan", first, "drop block"},
			{"xdp lan", later(1480, " id 9 len 100"), "drop fragment-orphan"},
		}},
		{"overlap", "pass", []step{
			{"xdp lan", first, passed},
			{"xdp lan", later(1472, " id 9 len 100"), "drop fragment-overlap"},
			{"xdp lan", later(2960, "+ id 9 len 80"), goes(2960, "+ id 9 len 80")},
			{"xdp lan", later(2952, "+ id 9 len 16"), "drop fragment-overlap"},
			{"xdp lan", later(3032, "+ id 9 len 16"), "drop fragment-overlap"},
			{"xdp lan", later(2960, "+ id 9 len 80"), "drop fragment-overlap"},
			{"xdp lan", first, "drop fragment-overlap"},
		}},
		{"holes", "pass", []step{
			{"xdp lan", first, passed},
			{"xdp lan", later(2000, "+ id 9 len 8"), goes(2000, "+ id 9 len 8")},
			{"xdp lan", later(3000, "+ id 9 len 8"), goes(3000, "+ id 9 len 8")},
			{"xdp lan", later(4000, "+ id 9 len 8"), goes(4000, "+ id 9 len 8")},
			{"xdp lan", later(5000, "+ id 9 len 8"), goes(5000, "+ id 9 len 8")},
			{"xdp lan", later(6000, "+ id 9 len 8"), goes(6000, "+ id 9 len 8")},
			{"xdp lan", later(7000, "+ id 9 len 8"), goes(7000, "+ id 9 len 8")},
			{"xdp lan", later(8000, "+ id 9 len 8"), goes(8000, "+ id 9 len 8")},
			{"xdp lan", later(9000, "+ id 9 len 8"), "drop fragment-memory"},
			{"xdp lan", later(2008, "+ id 9 len 8"), goes(2008, "+ id 9 len 8")},
		}},
		{"timeout frag", "pass", []step{
			{"xdp lan", first, passed},
			{"wait", "59", ""},
			{"xdp lan", later(1480, "+ id 9 len 8"), goes(1480, "+ id 9 len 8")},
			{"wait", "1", ""},
			{"xdp lan", later(1488, "+ id 9 len 8"), "drop fragment-orphan"},
		}},
		{"of an expired state", "set timeout udp.first 5\npass", []step{
			{"xdp lan", first, passed},
			{"wait", "60", ""},
			{"xdp lan", later(1480, "+ id 9 len 8"), "drop fragment-orphan"},
		}},
		{"to the box", "pass", []step{
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:53 frag 0+ id 9 len 72", "up local done"},
			{"xdp lan", "udp 192.168.1.10 > 192.168.1.1 frag 80 id 9 len 72", "up local done"},
		}},
	})
}

// A late fragment of a bound state at another interface than its first meets no rule, and
// is dropped.
func TestFragmentsOfBoundStates(t *testing.T) {
	t.Parallel()
	const (
		first = "udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472"
		later = "udp 192.168.1.10 > 198.51.100.9 frag 1480+ id 9 len 1480"
		last  = "udp 192.168.1.10 > 198.51.100.9 frag 2960 id 9 len 100"
	)
	h := newHarness(t, boundRule+"pass")
	h.plays([]play{
		{"elsewhere", "pass keep state (if-bound)", []step{
			{"xdp lan", first, "forward rule wan " + first + " ttl 63"},
			{"xdp wan", later, "drop state-mismatch"},
			{"tcx lan", later, "forward state wan " + later + " ttl 63"},
			{"tcx wan", last, "drop state-mismatch"},
			{"xdp lan", last, "forward state wan " + last + " ttl 63"},
		}},
		{"not bound", "pass", []step{
			{"xdp lan", first, "forward rule wan " + first + " ttl 63"},
			{"xdp wan", later, "forward state wan " + later + " ttl 63"},
		}},
	})
}

// With set reassemble no, fragments meet the rules each for itself, and make no states.
func TestFragmentsAlone(t *testing.T) {
	h := newHarness(t, "set reassemble no\npass", func(c *Config) { c.Room = 100 })
	const (
		first  = "udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472"
		later  = "udp 192.168.1.10 > 198.51.100.9 frag 1480 id 9 len 100"
		later6 = "udp fd00:1::10 > 2001:db8:9::1 frag 1448 id 9 len 100"
		whole  = "udp 192.168.1.10:4000 > 198.51.100.9:53"
	)
	goesOn := func(packet string) string { return "forward rule wan " + packet + " ttl 63" }
	const set = "set reassemble no\n"
	h.plays([]play{
		{"a rule that asks for nothing in their header", set + masquerade + "pass", []step{
			{"xdp lan", later, goesOn(later)},
			{"tcx lan", first, goesOn(first)},
			{"xdp lan", later6, goesOn(later6)},
			{"states", "", ""},
			{"xdp lan", later, goesOn(later)}, // nothing is remembered
		}},
		{"ports", set + "block\npass proto udp to port 53\npass out", []step{
			{"xdp lan", first, "drop block"},
			{"tcx lan", later, "drop block"},
			{"xdp lan", whole, goesOn(whole)},
			{"xdp lan", first, "drop block"}, // they do not belong to the state
		}},
		{"rules for fragments", set + "block\npass proto udp fragment", []step{
			{"xdp lan", first, goesOn(first)},
			{"xdp lan", later6, goesOn(later6)},
			{"xdp lan", whole, "drop block"},
			{"xdp lan", "tcp 192.168.1.10 > 198.51.100.9 frag 1480 id 9 len 100", "drop block"},
		}},
		{"flags", set + "pass\nblock in proto tcp flags any\npass in proto tcp flags S/SA", []step{
			{"xdp lan", "tcp 192.168.1.10 > 198.51.100.9 frag 1480 id 9 len 100", "drop block"},
		}},
		{"icmp-type", set + "block\npass inet proto icmp icmp-type echoreq\npass out", []step{
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3 frag 0+ len 1472", "drop block"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward rule wan icmp 192.168.1.10 > 198.51.100.9 type 8 id 3 ttl 63"},
		}},
		{"where they leave", set + "pass\nblock out fragment\n", []step{
			{"xdp lan", later, "drop block"},
			{"xdp lan", whole, goesOn(whole)},
		}},
		{"no reject", set + "block return", []step{
			{"xdp lan", first, "drop block"},
			{"tcx lan", later, "drop block"},
		}},
		{"for the box", set + "pass", []step{
			{"xdp lan", "udp 192.168.1.10 > 192.168.1.1 frag 80 id 9 len 72", "up local done"},
		}},
		{"the box's own were whole", set + "block\npass out proto udp to port 53", []step{
			{"out wan", "udp 203.0.113.2:5000 > 198.51.100.9:53 frag 0+ id 9 len 1472", "up rule"},
			{"out wan", "udp 203.0.113.2 > 198.51.100.9 frag 1480 id 9 len 20", "up state"},
		}},
		{"FreeBSD's scrub rules", "scrub in fragment no reassemble\nblock\npass proto udp to port 53\npass in inet6 fragment\npass out", []step{
			{"xdp lan", first, "drop block"},
			{"xdp lan", later6, goesOn(later6)},
		}},
	})
}

// FreeBSD's scrub rules choose which fragments meet the rules each for itself. The first that
// matches a fragment decides.
func TestFragmentsListed(t *testing.T) {
	h := newHarness(t, "scrub in fragment no reassemble\nscrub out\npass", func(c *Config) { c.Room = 100 })
	const (
		first   = "udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472"
		later   = "udp 192.168.1.10 > 198.51.100.9 frag 1480 id 9 len 100"
		later6  = "udp fd00:1::10 > 2001:db8:9::1 frag 1448 id 9 len 100"
		whole   = "udp 192.168.1.10:4000 > 198.51.100.9:53"
		echo    = "icmp 192.168.1.10 > 198.51.100.9 type 8 frag 0+ id 3 len 1472"
		follows = "udp 192.168.1.10:4000 > 198.51.100.7:53 frag 0+ id 9 len 1472"
		last    = "udp 192.168.1.10 > 198.51.100.7 frag 1480 id 9 len 100"
	)
	goesOn := func(why, packet string) string { return "forward " + why + " wan " + packet + " ttl 63" }
	h.plays([]play{
		{"by address", "scrub in on lan0 inet from any to 198.51.100.9 fragment no reassemble\nscrub all\nblock\npass in proto udp to port 53\npass out", []step{
			{"xdp lan", first, "drop block"},
			{"tcx lan", later, "drop block"},
			{"xdp lan", follows, goesOn("rule", follows)},
			{"xdp lan", last, goesOn("state", last)},
			{"xdp lan", whole, goesOn("rule", whole)},
			{"tcx lan", first, "drop block"}, // it does not belong to the state
		}},
		{"by interface", "scrub in on lan0 fragment no reassemble\nscrub in on wan0\nblock\npass in proto udp fragment\npass out", []step{
			{"xdp lan", later, goesOn("rule", later)},
			{"tcx lan", first, goesOn("rule", first)},
			{"tcx lan", later6, goesOn("rule", later6)},
			{"states", "", ""},
			{"xdp wan", "udp 198.51.100.9 > 192.168.1.10 frag 1480 id 9 len 100", "drop fragment-orphan"},
		}},
		{"the first that matches", "no scrub in proto udp\nscrub in proto tcp\nscrub in fragment no reassemble\npass", []step{
			{"xdp lan", whole, goesOn("rule", whole)},
			{"xdp lan", first, goesOn("state", first)},
			{"tcx lan", later, goesOn("state", later)},
			{"xdp lan", echo, goesOn("rule", echo)},
			{"states", "", "17 192.168.1.10:4000 > 198.51.100.9:53 udp.single 1:0 3/0"},
		}},
		{"fragments show no ports", "scrub in proto udp from any to any port 53 fragment no reassemble\nscrub in\nblock\npass proto udp to port 53", []step{
			{"xdp lan", first, goesOn("rule", first)},
			{"xdp lan", later, goesOn("state", later)},
		}},
		{"by the stack", "scrub in on lan0 fragment no reassemble\nscrub in on wan0\npass", []step{
			{"xdp lan", first + " ttl 1", "up up-ttl record0"},
			{"tcx lan", later + " ttl 1", "up up-ttl record0"},
			{"out wan record0", first, "up marked record0"},
			{"out wan record0", later, "up marked record0"},
		}},
	})
}
