package collect

import (
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
)

// fixedEnds lists the kinds of interfaces whose packets all go to one far end.
var fixedEnds = map[string]bool{"gre": true, "gretap": true, "ip6gre": true, "ipip": true, "sit": true, "ip6tnl": true, "vti": true, "xfrm": true}

// tunnels reads what puts packets into other packets, and between how many pairs of hosts
// these go.
func (r *reader) tunnels() {
	r.snapshot.Tunnels = []doctor.Tunnel{}
	add := func(t doctor.Tunnel) { r.snapshot.Tunnels = append(r.snapshot.Tunnels, t) }
	for i := range r.snapshot.Interfaces {
		n := &r.snapshot.Interfaces[i]
		switch {
		case n.Kind == "wireguard":
			peers, err := wireguardPeers(n.Name)
			if err != nil {
				r.lacks("tunnels."+n.Name, err)
			}
			add(doctor.Tunnel{Kind: n.Kind, Interface: n.Name, Flows: peers})
		case fixedEnds[n.Kind]:
			add(doctor.Tunnel{Kind: n.Kind, Interface: n.Name, Flows: 1})
		case n.Kind == "vxlan" || n.Kind == "geneve" || n.Kind == "tun" || n.Kind == "tap":
			add(doctor.Tunnel{Kind: n.Kind, Interface: n.Name})
		}
	}
	flows, err := ipsecFlows()
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT): // a kernel without IPsec
	case err != nil:
		r.lacks("tunnels.ipsec", err)
	case flows > 0:
		add(doctor.Tunnel{Kind: "ipsec", Flows: flows})
	}
}

// ipsecFlows counts the pairs of hosts between which IPsec's associations go. The two
// directions of a pair count once; other ports of UDP encapsulation are another pair.
func ipsecFlows() (int, error) {
	states, err := netlink.XfrmStateList(netlink.FAMILY_ALL)
	if err != nil {
		return 0, err
	}
	type pair struct {
		a, b         string
		aPort, bPort int
	}
	pairs := map[pair]bool{}
	for i := range states {
		s := &states[i]
		p := pair{a: s.Src.String(), b: s.Dst.String()}
		if s.Encap != nil {
			p.aPort, p.bPort = s.Encap.SrcPort, s.Encap.DstPort
		}
		if p.a > p.b {
			p = pair{p.b, p.a, p.bPort, p.aPort}
		}
		pairs[p] = true
	}
	return len(pairs), nil
}
