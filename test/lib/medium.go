package lib

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"weir/internal/lab"
)

// A Medium is a kind of link between fw and another host.
type Medium string

// Kinds of links.
const (
	Wire   Medium = "wire"   // a veth pair
	Bridge Medium = "bridge" // a veth pair, fw's end the port of a bridge that has the addresses
	Tunnel Medium = "tun"    // packets without Ethernet header

	// VLAN and those after it not every kernel has: see Has.
	VLAN      Medium = "vlan"      // a VLAN on a veth pair that carries nothing else
	QinQ      Medium = "qinq"      // a VLAN in a VLAN with a service tag, likewise
	WireGuard Medium = "wireguard" // over a veth pair
	PPP       Medium = "ppp"       // over a serial line: a pair of pseudo terminals
	VRF       Medium = "vrf"       // no path: for Has only
	XFRM      Medium = "xfrm"      // likewise
)

// modules are the kernel modules that a medium needs.
var modules = map[Medium][]string{VLAN: {"8021q"}, QinQ: {"8021q"}, WireGuard: {"wireguard"}, PPP: {"ppp_async"}, VRF: {"vrf"}, XFRM: {"xfrm_interface"}}

// Has reports whether this machine's kernel supports a medium.
func Has(m Medium) bool { return hasModules(modules[m]...) }

func hasModules(modules ...string) bool {
	for _, module := range modules {
		if _, err := os.Stat("/sys/module/" + module); err == nil {
			continue
		}
		if exec.Command("modprobe", "--quiet", module).Run() != nil {
			return false
		}
	}
	return true
}

// A Path is a way between fw and another host, by one medium.
type Path struct {
	Medium Medium
	Host   string // at the far end
	Device string // of fw
	Under  string // the device of fw that carries Device's packets; ""
	number int    // of the path, from 1 on: it is in the addresses
}

// side returns 1 for the LAN and 2 for the WAN, as in addresses.
func (p *Path) side() int {
	if p.Host == lab.LAN {
		return 1
	}
	return 2
}

// Addr returns an address on the path's network, IPv4 or IPv6: fw has 1, the host 10 and
// 20.
func (p *Path) Addr(host int, ipv6 bool) string {
	if ipv6 {
		return fmt.Sprintf("fd77:%d:%d::%d", p.side(), p.number, host)
	}
	return fmt.Sprintf("10.%d.%d.%d", p.side(), p.number, host)
}

func (p *Path) with(hosts ...int) []string {
	var all []string
	for _, n := range hosts {
		all = append(all, p.Addr(n, false)+"/24", p.Addr(n, true)+"/64")
	}
	return all
}

// Paths joins lan and wan to fw by each of the media. fw's devices are called lan-MEDIUM
// and wan-MEDIUM. Packets from a host's address on a path take that path.
func (b *Box) Paths(media ...Medium) (lan, wan []Path) {
	b.Helper()
	for i, m := range media {
		lan = append(lan, Path{Medium: m, Host: lab.LAN, Device: "lan-" + string(m), number: i + 1})
		wan = append(wan, Path{Medium: m, Host: lab.WAN, Device: "wan-" + string(m), number: i + 1})
	}
	for i := range media {
		b.join(&lan[i])
		b.join(&wan[i])
	}
	return lan, wan
}

func (b *Box) join(p *Path) {
	b.Helper()
	far := string(p.Medium)
	switch p.Medium {
	case Wire:
		b.Wire(p.Device, p.Host, far)
	case Bridge:
		port := "port-" + p.Host
		b.Wire(port, p.Host, far)
		b.IP(lab.FW, "link add "+p.Device+" type bridge", "link set "+port+" master "+p.Device, "link set "+port+" up")
	case Tunnel:
		b.Tunnel(lab.FW, p.Device, p.Host, far)
	case VLAN:
		p.Under = "trunk-" + p.Host
		b.Wire(p.Under, p.Host, "trunk")
		for host, names := range map[string][2]string{lab.FW: {p.Under, p.Device}, p.Host: {"trunk", far}} {
			b.IP(host, "link set "+names[0]+" up", "link add link "+names[0]+" name "+names[1]+" type vlan id 10")
		}
	case QinQ:
		p.Under = "double-" + p.Host
		b.Wire(p.Under, p.Host, "double")
		b.Run(p.Host, "ethtool", "-K", "double", "tx-vlan-stag-hw-insert", "off") // veth would hide the tag from XDP
		for host, names := range map[string][2]string{lab.FW: {p.Under, p.Device}, p.Host: {"double", far}} {
			b.IP(host, "link set "+names[0]+" up",
				"link add link "+names[0]+" name "+names[0]+".9 type vlan proto 802.1ad id 9", "link set "+names[0]+".9 up",
				"link add link "+names[0]+".9 name "+names[1]+" mtu 1496 type vlan id 11")
		}
	case WireGuard:
		p.Under = "outer-" + p.Host
		b.Wire(p.Under, p.Host, "outer")
		b.wireGuard(p, far)
	case PPP:
		b.ppp(p, far)
	default:
		b.Fatalf("no such medium: %s", p.Medium)
	}
	b.Address(lab.FW, p.Device, p.with(1)...)
	b.Address(p.Host, far, p.with(10, 20)...)
	b.takePath(p, far)
}

// takePath gives a host routes by a path for packets from its addresses there.
func (b *Box) takePath(p *Path, device string) {
	b.Helper()
	table := fmt.Sprint(100 + p.number)
	for _, ipv6 := range []bool{false, true} {
		family, network := "-4", p.Addr(0, false)+"/24"
		if ipv6 {
			family, network = "-6", p.Addr(0, true)+"/64"
		}
		b.IP(p.Host, family+" rule add from "+network+" table "+table,
			strings.Join([]string{family, "route add default via", p.Addr(1, ipv6), "dev", device, "table", table}, " "))
	}
}
