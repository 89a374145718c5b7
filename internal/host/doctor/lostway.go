package doctor

import (
	"fmt"
	"slices"

	"weir/internal/units"
)

// Shares of what comes from which on packets without a way matter. Strangers on the Internet
// also send to addresses that a network announces and does not use. A packet in a circle is
// received up to 127 times here before it expires.
const (
	wayless = 0.05
	circles = 0.002
)

// lostWays finds packets that the routing table sends nowhere, and packets that go in circles:
// two routers, or more, that hold each other for the way, until the packet has been forwarded as
// often as it may.
func lostWays(v *view) (o outcome) {
	nowhere, stack := v.counted("IpExt.InNoRoutes"), v.counted("Ip.InReceives")
	if six, known := v.snmp("Ip6.InNoRoutes"); known {
		nowhere += six
	}
	if six, known := v.snmp("Ip6.InReceives"); known {
		stack += six
	}
	received := max(1, nowhere, stack)
	if slices.ContainsFunc(v.nics, func(n *nic) bool { return n.XDP != "" }) { // it forwards beside the stack
		received = max(received, v.received())
	}
	if share := float64(nowhere) / float64(received); nowhere >= fewLost && share >= lossLimits {
		f := Finding{
			Severity: Notice, core: -1, weight: share, kind: "nowhere",
			Says:     fmt.Sprintf("%s of what comes has no route here, and is dropped", percent(share)),
			Evidence: []string{fmt.Sprintf("IpExt.InNoRoutes and Ip6.InNoRoutes: %s in %s", units.Thousands(int(nowhere)), seconds(v.Seconds))},
			Remedies: []Remedy{
				{Command: "ip route get ADDRESS from SENDER iif INTERFACE", Text: "with the addresses of such a packet: it says which rule and table decide (ip rule; ip route show table all); a policy rule whose table lacks a route sends nowhere"},
				{Command: "ip route show type unreachable; ip -6 route show type unreachable", Text: "see which were meant so: strangers also send to addresses that nobody uses"},
			},
			Expect: "only what should not pass is refused",
		}
		if share >= wayless {
			f.Severity = Warning
		}
		o.add(f)
	}
	expired, told := v.counted("Ip.InHdrErrors"), v.counted("Icmp.OutTimeExcds")
	if share := float64(expired) / float64(received); expired >= few && told > 0 && share >= circles {
		o.add(Finding{
			Severity: Warning, core: -1, weight: share, kind: "circle",
			Says:     fmt.Sprintf("%s of what comes has been forwarded too often: packets go in circles between this box and another", percent(share)),
			Evidence: []string{fmt.Sprintf("Ip.InHdrErrors: %s, Icmp.OutTimeExcds: %s in %s", units.Thousands(int(expired)), units.Thousands(int(told)), seconds(v.Seconds))},
			Remedies: []Remedy{
				{Command: "tcpdump -ni any 'ip[8] <= 2' or 'ip6[7] <= 2'", Text: "see their destination, and the router that they come from and go back to (traceroute shows both in turn)"},
				{Command: "ip route add unreachable NETWORK metric 4294967295", Text: "for a network of this box of which only a part is in use: what nobody has must not follow the default route back to the provider"},
			},
			Expect: "each such packet is refused once, instead of crossing the link up to 255 times",
		})
	}
	return o
}
