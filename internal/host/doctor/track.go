package doctor

import (
	"fmt"
	"slices"

	"weir/internal/units"
)

// flooding is the share of the received packets that find no free entry of connection tracking, from which
// on no limit is large enough: they are refused, or an older entry makes room for them.
const flooding = 0.1

// flood describes a table of connections that strangers fill faster than entries end.
func (v *view) flood(f *Finding, refused uint64) {
	share := float64(refused) / float64(max(1, v.received()))
	if refused < few || share < flooding {
		return
	}
	f.kind, f.bites = "flood", true
	f.Says += fmt.Sprintf(", and %s more find no room of their own: a flood or a scan", packetRate(refused, v.Seconds))
	f.Evidence = append(f.Evidence, fmt.Sprintf("%s of what came began a connection for which there was no free entry", percent(share)))
	f.Remedies = append([]Remedy{
		{Command: "conntrack -L | awk '{print $1, $4}' | sort | uniq -c | sort -rn | head; tcpdump -c 50 -nn", Text: "see which protocol and port it is"},
		{Command: "nft 'add table inet early; add chain inet early prerouting { type filter hook prerouting priority raw; }; add rule inet early prerouting udp dport … notrack'",
			Text: "leave what floods untracked (notrack; what is not tracked is not translated either), or drop it there: in the filter's own chains it has been tracked before any rule sees it. What weir drops at XDP costs least and is never tracked"},
	}, f.Remedies...)
	f.Expect = "cores and table have room again; a larger table alone only fills a little later"
}

// invalid finds segments that connection tracking knows no connection for (out of their window, or too late).
// Where addresses are translated, they are not translated back: they reach this box's own TCP, which answers
// with a reset, and the connection ends.
func (v *view) invalid(o *outcome, before *Conntrack) {
	const liberal = "net.netfilter.nf_conntrack_tcp_be_liberal"
	n := Grown(v.After.Conntrack.Invalid, before.Invalid)
	resets, known := v.snmp("Tcp.OutRsts")
	share := float64(n) / float64(max(1, v.received()))
	translates := slices.ContainsFunc(v.Chains, func(c Chain) bool { return c.NAT })
	if n < 10*fewLost || share < lossLimits || !known || resets < n/2 || !translates || v.Sysctls[liberal] == "1" {
		return
	}
	o.add(Finding{
		Severity: Warning, core: -1, weight: share, kind: "invalid",
		Says:     fmt.Sprintf("connection tracking knows no connection for %s of what comes, and this box answers with resets: connections that are translated end", percent(share)),
		Evidence: []string{fmt.Sprintf("invalid (conntrack -S) grew by %s, Tcp.OutRsts by %s in %s", units.Thousands(int(n)), units.Thousands(int(resets)), seconds(v.Seconds))},
		Remedies: []Remedy{
			{Command: "iptables -I INPUT -m conntrack --ctstate INVALID -j DROP", Text: "do not answer them (nft: ct state invalid drop in the input chain): the sender tries again, and the connection goes on"},
			{Command: "sysctl -w " + liberal + "=1", Text: "or let segments outside of the window pass as part of their connection"},
		},
		Expect: "no more resets in the middle of connections",
	})
}
