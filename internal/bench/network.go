package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"weir/internal/lab"
)

// defaultName is the prefix of the benchmark's own namespaces, and the name of
// its folder in /run.
const defaultName = "weir-bench"

// Networks of the hosts that frames come from and go to. The lowest bits, which
// tell hosts apart, are zero. Targets are those set aside for benchmarks (RFC
// 2544, RFC 5180). Hosts of the LAN are translated by examples/gateway.conf and
// examples/gateway.nft, those of the routed network are not.
var (
	lanHosts    = familyAddr{"192.168.1.64", "fd00:1::40"}
	routedHosts = familyAddr{"198.51.100.64", "2001:db8:100::40"}
	// illegalHosts have no business at the LAN's side: no rule lets them pass.
	illegalHosts = familyAddr{"198.51.101.64", "2001:db8:101::40"}
	targetNet    = familyAddr{"198.18.0.0", "2001:2::"}
	routedNet    = []string{"198.51.100.0/24", "2001:db8:100::/64"}
)

// familyAddr is an address in both families.
type familyAddr struct{ v4, v6 string }

func (f familyAddr) addr(ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.MustParseAddr(f.v6)
	}
	return netip.MustParseAddr(f.v4)
}

// place is a device of the lab.
type place struct{ host, device string }

var (
	nearEnd  = place{lab.LAN, "eth0"}
	nearDoor = place{lab.FW, "lan0"}
	farDoor  = place{lab.FW, "wan0"}
	farEnd   = place{lab.WAN, "eth0"}
)

// network is the lab that a benchmark runs in.
type network struct {
	lab     *lab.Lab
	indexes map[place]int
}

// Hosts that some benchmarks have besides those of [lab.Gateway]: a second pair.
const (
	LAN2 = "lan2"
	WAN2 = "wan2"
)

// everyHost names all hosts that benchmarks build, so that each removes what
// another one left.
func everyHost() lab.Topology {
	t := lab.Gateway()
	for _, name := range []string{LAN2, WAN2} {
		t.Hosts = append(t.Hosts, lab.Host{Name: name})
	}
	return t
}

// newNetwork builds the lab that frames of the generator cross.
func newNetwork(ctx context.Context, name string) (*network, error) {
	return newNetworkOf(ctx, lab.Options{Name: name, Offloads: lab.OffloadsOff, Neighbours: true})
}

// newNetworkOf builds a lab; leftovers of a killed run are removed first.
func newNetworkOf(ctx context.Context, o lab.Options) (*network, error) {
	if _, err := lab.Remove(o.Name, everyHost()); err != nil {
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	l, err := lab.Up(ctx, o)
	if err != nil { // an interruption, too, comes when half of it stands
		_, left := lab.Remove(o.Name, everyHost())
		return nil, errors.Join(err, left)
	}
	n := &network{lab: l, indexes: map[place]int{}}
	for _, p := range []place{nearEnd, nearDoor, farDoor, farEnd} {
		if err := n.findDevice(p); err != nil {
			return n, err
		}
	}
	return n, n.addHosts()
}

func (n *network) findDevice(p place) error {
	return n.lab.Do(p.host, func() error {
		i, err := net.InterfaceByName(p.device)
		if err != nil {
			return fmt.Errorf("find %s in %s: %w", p.device, n.lab.Namespace(p.host), err)
		}
		n.indexes[p] = i.Index
		return nil
	})
}

// addHosts makes the near end stand for all hosts that frames come from.
func (n *network) addHosts() error {
	for _, to := range routedNet {
		if err := n.lab.AddRoute(nearDoor.host, nearDoor.device, netip.MustParsePrefix(to), netip.Addr{}); err != nil {
			return err
		}
	}
	var hosts []netip.Addr
	for _, first := range []familyAddr{lanHosts, routedHosts} {
		for _, ipv6 := range []bool{false, true} {
			a := first.addr(ipv6)
			for range sourceHosts {
				hosts = append(hosts, a)
				a = a.Next()
			}
		}
	}
	return n.lab.AddNeighbours(nearDoor.host, nearDoor.device, hosts)
}

// macs are the addresses of a frame on its way from one device to the next.
func (n *network) macs(from, to place) (source, target net.HardwareAddr, err error) {
	own, _ := n.lab.MACs(from.host, from.device)
	if source, err = net.ParseMAC(own); err != nil {
		return nil, nil, fmt.Errorf("address of %s in %s: %w", from.device, from.host, err)
	}
	own, _ = n.lab.MACs(to.host, to.device)
	if target, err = net.ParseMAC(own); err != nil {
		return nil, nil, fmt.Errorf("address of %s in %s: %w", to.device, to.host, err)
	}
	return source, target, nil
}

// firewall is the name of the namespace in which paths are built.
func (n *network) firewall() string { return n.lab.Namespace(lab.FW) }
