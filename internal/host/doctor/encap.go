package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// encapsulation is what a tunnel of a kind adds to each packet at least, in bytes, where the
// outer packets are those of IPv4.
var encapsulation = map[string]int{"vxlan": 50, "geneve": 50, "gretap": 38, "gre": 24, "ipip": 20, "sit": 20, "ip6tnl": 40, "ip6gre": 44, "wireguard": 60}

// outerSix is what an outer header of IPv6 has more than one of IPv4.
const outerSix = 20

// unlimited is the least MTU of a tunnel that leaves the size of packets to what is attached to it:
// Open vSwitch gives its tunnels 65,000.
const unlimited = 65000

// tooWide finds tunnels whose MTU leaves no room for what they add: their largest packets
// are split, or vanish where the way carries no fragments. The MTU of an external tunnel is no fault by itself:
// what hands it packets knows the room, unless packets are split or refused.
func (v *view) tooWide(o *outcome) {
	split := v.counted("Ip.FragFails", "Ip.FragOKs") >= fewLost
	six, _ := v.snmp("Ip6.FragOKs")
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		more, below := encapsulation[d.Kind], v.beneath(d)
		if more > 0 && six >= fewLost && d.Kind != "sit" && d.Kind != "ip6tnl" && d.Kind != "ip6gre" {
			more += outerSix // outer packets of IPv6 are split
		}
		if narrow := v.narrower(d, below, more); split && narrow != nil {
			below = narrow
		}
		if more == 0 || !d.Up || d.MTU == 0 || below == nil || below.MTU == 0 || d.MTU+more <= below.MTU {
			continue
		}
		if d.External && !split || d.MTU >= unlimited {
			continue
		}
		f := Finding{
			Severity: Notice, Subject: d.Name, core: -1, weight: float64(d.MTU + more - below.MTU),
			Says:     fmt.Sprintf("the MTU of the tunnel %s is %d bytes, and %s below it carries %d: with the %d bytes of %s, its largest packets do not fit", d.Name, d.MTU, below.Name, below.MTU, more, d.Kind),
			Evidence: []string{fmt.Sprintf("%s: mtu %d, kind %s; %s: mtu %d", d.Name, d.MTU, d.Kind, below.Name, below.MTU)},
			Remedies: []Remedy{{Command: fmt.Sprintf("ip link set dev %s mtu %d", d.Name, below.MTU-more), Text: fmt.Sprintf("set the same mtu where the tunnel is configured (CNI, VPN), at both ends and on what is attached to it; mtu %d where its outer packets are IPv6", below.MTU-more-outerSix)}},
			Expect:   "large packets arrive: handshakes and downloads that hung go on",
		}
		if l, known := v.link(d.Name); known && max(l.RxPackets, l.TxPackets) >= few {
			f.Severity = Warning
		}
		o.add(f)
	}
}

// narrower returns another tunnel, or session, that seems to carry this one, though the default
// route does not lead into it: this one's packets do not fit into it, and it sends more than this
// one does. nil: none. Packets must be split, or nothing tells that it does.
func (v *view) narrower(d, below *Interface, more int) *Interface {
	l, known := v.link(d.Name)
	if !known || l.TxPackets < few || below != nil && below.MTU > 0 && d.MTU+more > below.MTU {
		return nil
	}
	for i := range v.Interfaces {
		e := &v.Interfaces[i]
		over, counted := v.link(e.Name)
		inside := tunnelKinds[e.Kind] != "" || e.Kind == "ppp"
		if inside && e.Up && !e.guest() && e.Name != d.Name && e.MTU > 0 && d.MTU+more > e.MTU && counted && over.TxPackets > l.TxPackets {
			return e
		}
	}
	return nil
}

// beneath returns the interface that a tunnel's outer packets leave by: the one that it is bound
// to, that of the default route, or the one with the largest MTU; nil: unknown.
func (v *view) beneath(d *Interface) *Interface {
	if below := v.device(d.Parent); below != nil {
		return below
	}
	for _, r := range v.Routes {
		if below := v.device(r.Interface); below != nil && r.Family == "inet" && encapsulation[below.Kind] == 0 {
			return below
		}
	}
	if len(v.nics) == 0 {
		return nil
	}
	return slices.MaxFunc(v.nics, func(a, b *nic) int { return cmp.Compare(a.MTU, b.MTU) }).Interface
}
