package doctor

import (
	"fmt"
	"slices"

	"weir/internal/units"
)

// refusedByPeers finds veths that drop what they are given while no core is full: the other end, in a
// container, takes no packet that is larger than its own MTU, and nobody is told (is_skb_forwardable).
func (v *view) refusedByPeers(o *outcome) {
	if len(v.fullCores()) > 0 {
		return
	}
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		l, known := v.link(d.Name)
		share := float64(l.TxDropped) / float64(max(1, l.TxDropped+l.TxPackets))
		if d.Kind != "veth" || !d.Up || !known || l.TxDropped < fewLost || share < lossLimits || d.XDP != "" {
			continue
		}
		if slices.ContainsFunc(v.qdiscsOf(d.Name), func(q qdisc) bool { return q.Parent == "root" && q.Drops > 0 }) {
			continue // a queue in front of it drops them
		}
		o.add(Finding{
			Severity: Warning, Subject: d.Name, core: -1, weight: share,
			Says:     fmt.Sprintf("%s drops %s of what it is given: its other end has a smaller MTU than its own %d, most likely", d.Name, percent(share), d.MTU),
			Evidence: []string{fmt.Sprintf("tx_dropped of %s: %s in %s, and no queue in front of it", d.Name, units.Thousands(int(l.TxDropped)), seconds(v.Seconds))},
			Remedies: []Remedy{
				{Command: "ip -d link show dev " + d.Name, Text: "find the other end (link-netnsid, peer), and see its mtu there: give this end, and the bridge that it belongs to, the same (ip link set dev " + d.Name + " mtu …); then senders are told"},
				{Command: "ip -s -s link show dev " + d.Name, Text: "if both are alike, the other end is down, or its queue was full"},
			},
			Expect: "large packets arrive, or their senders hear that they are too large",
		})
	}
}

// wideBridges returns what makes bridges of containers no wider than the way out: what their hosts
// send at a larger MTU is refused there, or vanishes below it.
func (v *view) wideBridges(narrow *Interface) (remedies []Remedy) {
	for i := range v.Interfaces {
		b := &v.Interfaces[i]
		if b.Kind != "bridge" || !b.Up || b.MTU <= narrow.MTU || narrow.Kind != "physical" {
			continue
		}
		port := slices.ContainsFunc(v.Interfaces, func(p Interface) bool { return p.Master == b.Name && p.Kind == "physical" })
		guests := slices.ContainsFunc(v.Interfaces, func(p Interface) bool { return p.Master == b.Name && (p.Kind == "veth" || p.guest()) })
		if port || !guests {
			continue
		}
		remedies = append(remedies, Remedy{Command: fmt.Sprintf("ip link set dev %s mtu %d", b.Name, narrow.MTU),
			Text: fmt.Sprintf("%s is wider than %s: its guests need the mtu of %s, too (Docker: \"mtu\": %d in daemon.json, or dockerd --mtu, for new networks; others: the network's mtu)", b.Name, narrow.Name, narrow.Name, narrow.MTU)})
	}
	return remedies
}
