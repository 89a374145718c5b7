package dataplane

import (
	"strings"
	"testing"
)

// With set reassemble no, fragments that come in meet the rules one by one, as in pf. They
// match no rule with ports, flags, types or users, make no state, follow none, and are
// never translated.
func TestFragmentsMeetRules(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "set reassemble no"+"\npass\n"+stickyRule, func(c *Config) { c.Room = 100 })
	for _, section := range []struct {
		name  string
		plays []play
	}{
		{"rules", aloneRules},
		{"ways", aloneWays},
	} {
		h.sub(section.name, func(h *harness) {
			h.reset()
			h.plays(section.plays)
		})
	}
}

const (
	aloneBothWays = masquerade + "match in on lan0 inet proto udp to 192.168.1.1 port 5353 rdr-to 198.51.100.9 port 53\n"

	aloneFirst  = "udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 1472"
	aloneLater  = "udp 192.168.1.10 > 198.51.100.9 frag 1480 id 9 len 100"
	aloneWhole  = "udp 192.168.1.10:4000 > 198.51.100.9:53"
	aloneFirst6 = "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 frag 0+ id 9 len 1440"
	aloneLater6 = "udp fd00:1::10 > 2001:db8:9::1 frag 1448 id 9 len 100"
	aloneTCP    = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S frag 0+ id 9 len 4"
	aloneEcho   = "icmp 192.168.1.10 > 198.51.100.9 type 8 frag 0+ id 9 len 16"
)

// unchanged is a fragment that is forwarded unchanged.
func unchanged(why, to, fragment string) string {
	return "forward " + why + " " + to + " " + fragment + " ttl 63"
}

// alone returns plays under set reassemble no. At each hook both fragments come in any
// order.
func alone(name, rules string, passes bool, fragments ...string) play {
	p := play{name: name, rules: "set reassemble no" + "\n" + rules}
	for _, at := range []string{"xdp lan", "tcx lan"} {
		for i := range fragments {
			f := fragments[len(fragments)-1-i]
			want := "drop block"
			if passes {
				want = unchanged("rule", "wan", f)
			}
			p.steps = append(p.steps, step{at, f, want}, step{at, f, want})
		}
	}
	p.steps = append(p.steps, step{"states", "", ""})
	return p
}

var aloneRules = []play{
	alone("pass", "pass", true, aloneFirst, aloneLater, aloneFirst6, aloneLater6),
	alone("ports", "block\npass proto udp to port 53", false, aloneFirst, aloneLater, aloneFirst6, aloneLater6),
	alone("from port", "pass\nblock proto udp from port 4000", true, aloneFirst, aloneLater, aloneFirst6, aloneLater6),
	alone("protocol", "block\npass proto udp", true, aloneFirst, aloneLater, aloneFirst6, aloneLater6),
	alone("another protocol", "block\npass proto icmp", false, aloneFirst, aloneLater),
	alone("block fragment", "pass\nblock fragment", false, aloneFirst, aloneLater, aloneFirst6, aloneLater6, aloneTCP, aloneEcho),
	alone("pass fragment", "block\npass fragment", true, aloneFirst, aloneLater, aloneFirst6, aloneLater6, aloneTCP, aloneEcho),
	alone("pass fragment of one protocol", "block\npass proto tcp fragment", false, aloneFirst, aloneLater, aloneEcho),
	alone("fragment of one family", "block\npass inet6 fragment", true, aloneFirst6, aloneLater6),
	alone("fragment at one interface", "pass\nblock in on lan0 proto udp fragment", false, aloneFirst, aloneLater),
	alone("fragment on the way out", "pass\nblock out on wan0 fragment", false, aloneFirst, aloneLater),
	alone("flags S/SA are the default", "block\npass", false, aloneTCP),
	alone("flags any", "block\npass flags any", true, aloneTCP, aloneFirst),
	alone("icmp", "block\npass inet proto icmp", true, aloneEcho),
	alone("icmp-type", "block\npass inet proto icmp icmp-type echoreq", false, aloneEcho),
	alone("user", "pass\nblock proto udp user unknown", true, aloneFirst, aloneLater),
	alone("return", "block return", false, aloneFirst, aloneLater, aloneFirst6, aloneTCP, aloneEcho),
	alone("quick anchors", "block\nanchor fragment {\n pass\n}", true, aloneFirst, aloneLater),
	alone("FreeBSD's rdr pass", "rdr pass on lan0 inet proto udp from any to 198.51.100.9 -> 203.0.113.1\nblock\npass out", false, aloneFirst, aloneLater),
	alone("FreeBSD's nat", "nat on wan0 inet from any to any -> 203.0.113.2\npass\nblock out from 203.0.113.2", true, aloneFirst, aloneLater),
	{"whole packets", "set reassemble no" + "\npass\nblock fragment", []step{
		{"xdp lan", aloneWhole, "forward rule wan " + aloneWhole + " ttl 63"},
		{"tcx lan", aloneWhole, "forward state wan " + aloneWhole + " ttl 63"},
		{"xdp lan", aloneFirst, "drop block"},
		{"tcx lan", aloneLater, "drop block"},
		{"states", "", "17 192.168.1.10:4000 > 198.51.100.9:53 udp.single 1:0 2/0"},
	}},
	{"atomic fragments are whole", "set reassemble no" + "\npass\nblock fragment", []step{
		{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 frag 0 id 9 len 8", "forward rule wan udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 frag 0 id 9 len 8 ttl 63"},
	}},
}

var aloneWays = []play{
	{"no state is followed", "set reassemble no" + "\npass", []step{
		{"xdp lan", aloneWhole, "forward rule wan " + aloneWhole + " ttl 63"},
		{"xdp lan", aloneFirst, unchanged("rule", "wan", aloneFirst)},
		{"tcx lan", aloneLater, unchanged("rule", "wan", aloneLater)},
		{"states", "", "17 192.168.1.10:4000 > 198.51.100.9:53 udp.first 1:0 1/0"},
	}},
	{"nothing is translated", "set reassemble no" + "\n" + masquerade + "match in on lan0 inet to 198.51.100.9 rdr-to 203.0.113.1\npass", []step{
		{"xdp lan", aloneWhole, "forward rule wan udp 203.0.113.2:$p > 203.0.113.1:53 ttl 63"},
		{"xdp lan", aloneLater, unchanged("rule", "wan", aloneLater)},
		{"tcx lan", aloneFirst, unchanged("rule", "wan", aloneFirst)},
	}},
	{"overlaps", "set reassemble no" + "\npass", []step{
		{"xdp lan", aloneFirst, unchanged("rule", "wan", aloneFirst)},
		{"xdp lan", "udp 192.168.1.10 > 198.51.100.9 frag 8+ id 9 len 64", unchanged("rule", "wan", "udp 192.168.1.10 > 198.51.100.9 frag 8+ id 9 len 64")},
	}},
	{"to the box", "set reassemble no" + "\nblock\npass in proto udp fragment", []step{
		{"xdp lan", "udp 192.168.1.10 > 192.168.1.1 frag 80 id 9 len 72", "up local done"},
		{"tcx lan", "udp 192.168.1.10:4000 > 192.168.1.1:53 frag 0+ id 9 len 72", "up local"},
		{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:53", "drop block"},
	}},
	{"by the stack", "set reassemble no" + "\npass", []step{
		{"xdp lan", aloneFirst + " ttl 1", "up up-ttl record0"},
		{"tcx lan", aloneLater + " ttl 1", "up up-ttl record0"},
		{"out wan record0", aloneFirst, "up marked record0"},
		{"out wan record0", aloneLater, "up marked record0"},
		{"out wan record0", strings.Replace(aloneLater, "id 9", "id 10", 1), "drop guard"},
		{"out wan record0", strings.Replace(aloneFirst, "id 9", "id 10", 1), "drop guard"},
	}},
	{"the stack cuts a whole packet", "set reassemble no" + "\n" + masquerade + "pass", []step{
		{"xdp lan", aloneWhole + " len 2000", "up up-mtu came"},
		{"out wan came", aloneFirst, "up marked leaves udp 203.0.113.2:$p > 198.51.100.9:53 frag 0+ id 9 len 1472"},
		{"out wan came", aloneLater, "up marked leaves udp 203.0.113.2 > 198.51.100.9 frag 1480 id 9 len 100"},
	}},
	{"what the box sends is whole", "set reassemble no" + "\nblock\npass out on wan0 proto udp to port 53", []step{
		{"own wan", "udp 203.0.113.2:5 > 198.51.100.9:53 frag 0+ id 9 len 72", "up rule"},
		{"own wan", "udp 203.0.113.2 > 198.51.100.9 frag 80 id 9 len 72", "up state"},
		{"states", "", "17 203.0.113.2:5 > 198.51.100.9:53 udp.first 1:0 2/0"},
	}},
	{"the stack has a state that looks the same", "set reassemble no\n" + aloneBothWays + "pass", []step{
		{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:5353 ttl 1", "up up-ttl record0 udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 1"},
		{"xdp lan", aloneFirst + " ttl 1", "up up-ttl record0"},
		{"out wan record0", aloneFirst, "up marked record0"},
	}},
	{"scrubbed", "set reassemble no" + "\npass\nmatch in on lan0 scrub (min-ttl 100)", []step{
		{"xdp lan", aloneLater, "forward rule wan " + aloneLater + " ttl 99"},
		{"tcx lan", aloneFirst, "forward rule wan " + aloneFirst + " ttl 99"},
	}},
}
