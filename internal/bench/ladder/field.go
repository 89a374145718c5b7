package ladder

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"

	"weir/internal/bench/iperf"
	"weir/internal/bench/probe"
	"weir/internal/bench/testbed"
	"weir/internal/lab"
)

// Addresses of the ladder: those of the examples, others that the examples do not
// translate (RFC 5737), and those of the wire that bypasses the firewall.
var (
	gatewayOfLAN = netip.MustParseAddr("192.168.1.1")
	gatewayOfWAN = netip.MustParseAddr("203.0.113.2")
	anywhere     = netip.MustParsePrefix("0.0.0.0/0")
)

// ends are the addresses of a pair of hosts: the client's on each route, and the
// server's.
type ends struct {
	client, server                string // hosts
	private, public, direct       netip.Addr
	serverRouted, serverOnTheWire netip.Addr
}

var pairs = [2]ends{
	{lab.LAN, lab.WAN, netip.MustParseAddr("192.168.1.10"), testbed.RoutedClient.Addr(), netip.MustParseAddr("192.0.2.1"),
		netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("192.0.2.2")},
	{testbed.LAN2, testbed.WAN2, netip.MustParseAddr("192.168.1.11"), netip.MustParseAddr("198.51.100.11"), netip.MustParseAddr("192.0.2.3"),
		netip.MustParseAddr("203.0.113.3"), netip.MustParseAddr("192.0.2.4")},
}

// wire24 returns an address with a prefix length of 24, as all networks here have.
func wire24(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 24) }

// topology is the gateway's, with a wire that bypasses it and hosts for a second pair.
func topology() lab.Topology {
	t, first := testbed.RoutedGateway(), pairs[0]
	t.Wires = append(t.Wires, lab.Wire{
		{Host: lab.LAN, Device: "direct0", MAC: "02:77:65:00:02:01", Addresses: []netip.Prefix{wire24(first.direct)}},
		{Host: lab.WAN, Device: "direct0", MAC: "02:77:65:00:02:02", Addresses: []netip.Prefix{wire24(first.serverOnTheWire)}},
	})
	t.Hosts = append(t.Hosts, lab.Host{Name: testbed.LAN2}, lab.Host{Name: testbed.WAN2})
	return t
}

// addSecondPair connects two more hosts to the same wires, as a switch would.
func addSecondPair(l *lab.Lab) error {
	second := pairs[1]
	for _, s := range []struct {
		host, device string
		end          lab.End
		routes       []lab.Route
	}{
		{lab.LAN, "eth0", lab.End{Host: testbed.LAN2, Device: "eth0", MAC: "02:77:65:00:00:03",
			Addresses: []netip.Prefix{wire24(second.private), wire24(second.public)}}, []lab.Route{{To: anywhere, Via: gatewayOfLAN}}},
		{lab.WAN, "eth0", lab.End{Host: testbed.WAN2, Device: "eth0", MAC: "02:77:65:00:01:03",
			Addresses: []netip.Prefix{wire24(second.serverRouted)}}, []lab.Route{{To: testbed.RoutedClient.Masked(), Via: gatewayOfWAN}}},
		{lab.LAN, "direct0", lab.End{Host: testbed.LAN2, Device: "direct0", MAC: "02:77:65:00:02:03",
			Addresses: []netip.Prefix{wire24(second.direct)}}, nil},
		{lab.WAN, "direct0", lab.End{Host: testbed.WAN2, Device: "direct0", MAC: "02:77:65:00:02:04",
			Addresses: []netip.Prefix{wire24(second.serverOnTheWire)}}, nil},
	} {
		if err := l.Share(s.host, s.device, s.end, s.routes...); err != nil {
			return fmt.Errorf("add a second pair of hosts: %w", err)
		}
	}
	return nil
}

// line is the connection between a pair of hosts on a rung.
type line struct {
	lab            *lab.Lab
	client, server string // hosts
	from, to       netip.Addr
}

func newLine(l *lab.Lab, e ends, r route) line {
	n := line{l, e.client, e.server, e.private, e.serverRouted}
	switch r {
	case overLoopback:
		loopback := netip.MustParseAddr("127.0.0.1")
		n.server, n.from, n.to = e.client, loopback, loopback
	case overWire:
		n.from, n.to = e.direct, e.serverOnTheWire
	case routed:
		n.from = e.public
	}
	return n
}

// pair returns the line as iperf3 needs it.
func (n line) pair() iperf.Pair {
	return iperf.Pair{
		Address: n.to.String(), Bind: n.from.String(),
		Client: func(c *exec.Cmd) error { return n.lab.Start(n.client, c) },
		Server: func(c *exec.Cmd) error { return n.lab.Start(n.server, c) },
		Await:  func(ctx context.Context, port uint16) error { return n.lab.AwaitListener(ctx, n.server, port) },
	}
}

func (n line) near() probe.Place { return func(f func() error) error { return n.lab.Do(n.client, f) } }
func (n line) far() probe.Place  { return func(f func() error) error { return n.lab.Do(n.server, f) } }
