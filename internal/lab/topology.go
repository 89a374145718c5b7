package lab

import "net/netip"

// Hosts of [Gateway].
const (
	LAN = "lan"
	FW  = "fw"
	WAN = "wan"
)

// Topology says which hosts a lab has and how they are connected.
type Topology struct {
	Hosts []Host
	Wires []Wire
}

// Host is one network namespace.
type Host struct {
	Name     string
	Forwards bool // the firewall; its device names are those of the wires
	Routes   []Route
}

// Route leads to a network through a neighbour on one of the host's wires.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

// Wire is a veth pair between two hosts.
type Wire [2]End

// End is one device of a pair.
type End struct {
	Host      string
	Device    string
	MAC       string         // locally administered, so that all labs are alike
	Addresses []netip.Prefix // with prefix lengths
}

// Gateway is the network of examples/gateway.conf: a LAN, the firewall, and the internet
// as one host.
func Gateway() Topology {
	return Topology{
		Hosts: []Host{
			{Name: LAN, Routes: defaultRoutes("192.168.1.1", "fd00:1::1")},
			{Name: FW, Forwards: true, Routes: defaultRoutes("203.0.113.1", "2001:db8:113::1")},
			{Name: WAN},
		},
		Wires: []Wire{
			{
				newEnd(FW, "lan0", "02:77:65:00:00:01", "192.168.1.1/24", "fd00:1::1/64"),
				newEnd(LAN, "eth0", "02:77:65:00:00:02", "192.168.1.10/24", "fd00:1::10/64"),
			}, {
				newEnd(FW, "wan0", "02:77:65:00:01:01", "203.0.113.2/24", "2001:db8:113::2/64"),
				newEnd(WAN, "eth0", "02:77:65:00:01:02", "203.0.113.1/24", "2001:db8:113::1/64"),
			},
		},
	}
}

// end finds an end of a wire by host and device.
func (t *Topology) end(host, device string) (own, peer *End) {
	for i := range t.Wires {
		for side := range t.Wires[i] {
			if e := &t.Wires[i][side]; e.Host == host && e.Device == device {
				return e, &t.Wires[i][1-side]
			}
		}
	}
	return nil, nil
}

// forwards reports whether a host forwards between others.
func (t *Topology) forwards(host string) bool {
	for _, h := range t.Hosts {
		if h.Name == host {
			return h.Forwards
		}
	}
	return false
}

func newEnd(host, device, mac string, addresses ...string) End {
	e := End{Host: host, Device: device, MAC: mac}
	for _, a := range addresses {
		e.Addresses = append(e.Addresses, netip.MustParsePrefix(a))
	}
	return e
}

func defaultRoutes(via4, via6 string) []Route {
	return []Route{
		{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr(via4)},
		{netip.MustParsePrefix("::/0"), netip.MustParseAddr(via6)},
	}
}
