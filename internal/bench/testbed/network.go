package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"weir/internal/fw/bpfload"
	"weir/internal/host/netif"
	"weir/internal/lab"
)

// defaultName is the prefix of the benchmark's namespaces, and the name of its folder in
// /run.
const defaultName = "weir-bench"

// Networks of the hosts that frames come from and go to. The lowest bits, which number
// the hosts, are zero. Targets are in the networks for benchmarks (RFC 2544, RFC 5180).
// examples/gateway.conf and examples/gateway.nft translate hosts of the LAN, and not
// those of the routed network.
var (
	LANHosts    = Address{"192.168.1.64", "fd00:1::40"}
	RoutedHosts = Address{"198.51.100.64", "2001:db8:100::40"}
	// IllegalHosts do not belong on the LAN's side. No rule passes them.
	IllegalHosts = Address{"198.51.101.64", "2001:db8:101::40"}
	TargetNet    = Address{"198.18.0.0", "2001:2::"}
	routedNet    = []string{"198.51.100.0/24", "2001:db8:100::/64"}
)

// RoutedClient is an address that the LAN's host has in [RoutedGateway]. The examples do
// not translate it.
var RoutedClient = netip.MustParsePrefix("198.51.100.10/24")

// RoutedGateway is [lab.Gateway] with that address, and with a route back to it.
func RoutedGateway() lab.Topology {
	t := lab.Gateway()
	for i := range t.Wires {
		for side := range t.Wires[i] {
			if e := &t.Wires[i][side]; e.Host == lab.LAN {
				e.Addresses = append(e.Addresses, RoutedClient)
			}
		}
	}
	for i := range t.Hosts {
		if h := &t.Hosts[i]; h.Name == lab.WAN {
			h.Routes = append(h.Routes, lab.Route{To: RoutedClient.Masked(), Via: netip.MustParseAddr("203.0.113.2")})
		}
	}
	return t
}

// SourceHosts is the number of hosts in each network of sources.
const SourceHosts = 64

// Address is an address in both families.
type Address struct{ v4, v6 string }

// Addr returns the address in one of the families.
func (f Address) Addr(ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.MustParseAddr(f.v6)
	}
	return netip.MustParseAddr(f.v4)
}

// Place is a device of the lab.
type Place struct{ Host, Device string }

// The devices that frames cross, from the near end to the far end.
var (
	NearEnd  = Place{lab.LAN, "eth0"}
	NearDoor = Place{lab.FW, "lan0"}
	FarDoor  = Place{lab.FW, "wan0"}
	FarEnd   = Place{lab.WAN, "eth0"}
)

// Hosts that some benchmarks have in addition to those of [lab.Gateway]: a second pair.
const (
	LAN2 = "lan2"
	WAN2 = "wan2"
)

// everyHost returns all hosts that any benchmark builds, so that each can remove what
// another one left.
func everyHost() lab.Topology {
	t := lab.Gateway()
	for _, name := range []string{LAN2, WAN2} {
		t.Hosts = append(t.Hosts, lab.Host{Name: name})
	}
	return t
}

// build builds the lab that frames cross.
func (b *Testbed) build(ctx context.Context, o Options) (err error) {
	b.Lab, err = lab.Up(ctx, lab.Options{Name: b.name, Topology: o.Topology, Offloads: o.Offloads, Neighbours: true})
	if err != nil {
		return err
	}
	for _, p := range []Place{NearEnd, NearDoor, FarDoor, FarEnd} {
		if err := b.findDevice(p); err != nil {
			return err
		}
	}
	return b.AddHosts()
}

func (b *Testbed) findDevice(p Place) error {
	return b.Lab.Do(p.Host, func() error {
		i, err := net.InterfaceByName(p.Device)
		if err != nil {
			return fmt.Errorf("find %s in %s: %w", p.Device, b.Lab.Namespace(p.Host), err)
		}
		b.Indexes[p] = i.Index
		return nil
	})
}

// AddHosts makes the near end answer for all hosts that frames come from.
func (b *Testbed) AddHosts() error {
	for _, to := range routedNet {
		if err := b.Lab.AddRoute(NearDoor.Host, NearDoor.Device, netip.MustParsePrefix(to), netip.Addr{}); err != nil {
			return err
		}
	}
	var hosts []netip.Addr
	for _, first := range []Address{LANHosts, RoutedHosts} {
		for _, ipv6 := range []bool{false, true} {
			a := first.Addr(ipv6)
			for range SourceHosts {
				hosts = append(hosts, a)
				a = a.Next()
			}
		}
	}
	return b.Lab.AddNeighbours(NearDoor.Host, NearDoor.Device, hosts)
}

// MACs returns the addresses of a frame on its way from one device to the next.
func (b *Testbed) MACs(from, to Place) (source, target net.HardwareAddr, err error) {
	own, _ := b.Lab.MACs(from.Host, from.Device)
	if source, err = net.ParseMAC(own); err != nil {
		return nil, nil, fmt.Errorf("address of %s in %s: %w", from.Device, from.Host, err)
	}
	own, _ = b.Lab.MACs(to.Host, to.Device)
	if target, err = net.ParseMAC(own); err != nil {
		return nil, nil, fmt.Errorf("address of %s in %s: %w", to.Device, to.Host, err)
	}
	return source, target, nil
}

// Firewall returns the name of the namespace in which paths are built.
func (b *Testbed) Firewall() string { return b.name + "-" + lab.FW }

// Attach attaches a program to a device of the lab.
func (b *Testbed) Attach(p Place, hook bpfload.Hook, program *bpfload.Program) (*bpfload.Link, error) {
	var link *bpfload.Link
	err := b.Lab.Do(p.Host, func() error {
		var err error
		link, err = bpfload.Attach(program, hook, b.Indexes[p])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", p.Device, b.Lab.Namespace(p.Host), err)
	}
	return link, nil
}

// IngressProgram returns the id of the program that frames meet first at a device of the
// lab, by XDP or else by TCX; 0 if there is none.
func (b *Testbed) IngressProgram(p Place) (id uint32, err error) {
	err = b.Lab.Do(p.Host, func() error {
		links, err := netif.Links()
		if err != nil {
			return err
		}
		for i := range links {
			if links[i].Index == b.Indexes[p] {
				id = links[i].XDP
			}
		}
		if id == 0 {
			id, err = bpfload.TCXProgram(b.Indexes[p])
		}
		return err
	})
	return id, err
}

// Detach detaches a program from its device.
func Detach(l *bpfload.Link) error { return errors.Join(l.Detach(), l.Close()) }
