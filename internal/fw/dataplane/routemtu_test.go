package dataplane

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"weir/internal/host/netif"
)

// addNarrow adds a route with a locked MTU of its own, which the kernel tells programs.
func addNarrow(tb testing.TB, ifindex int, network, gateway string, mtu int) {
	tb.Helper()
	_, dst, err := net.ParseCIDR(network)
	check(tb, err)
	check(tb, netlink.RouteAdd(&netlink.Route{LinkIndex: ifindex, Dst: dst, Gw: net.ParseIP(gateway), MTU: mtu, MTULock: true}))
}

// A route's own MTU counts for what takes this route alone, though others lead by the same gateway.
// Larger packets go to the stack, which answers or cuts them.
func TestRouteMTU(t *testing.T) {
	h := newHarness(t, "pass")
	addNarrow(t, h.net.wan0, "198.51.100.0/24", "203.0.113.1", 1400)
	addNarrow(t, h.net.wan0, "2001:db8:9::/64", "2001:db8:113::1", 1400)
	type flow struct {
		from, to string
		header   int // IP and UDP
		mtu      int
	}
	flows := []flow{
		{"192.168.1.10:4000", "198.51.100.9:53", 28, 1400},
		{"192.168.1.10:4000", "192.0.2.9:53", 28, 1500},
		{"[fd00:1::10]:4000", "[2001:db8:9::1]:53", 48, 1400},
		{"[fd00:1::10]:4000", "[2001:db8:77::1]:53", 48, 1500},
	}
	for _, hook := range []string{"xdp", "tcx"} {
		h.load("pass")
		for round := range 3 { // the later rounds with states that know their next hop
			why := map[int]string{0: "rule"}[round]
			if why == "" {
				why = "state"
			}
			if round == 2 {
				h.dp.BumpRoutes()
			}
			for _, f := range flows {
				fits := f.mtu - f.header
				h.expect(hook+" lan", fmt.Sprintf("udp %s > %s len %d", f.from, f.to, fits), "forward "+why)
				h.expect(hook+" lan", fmt.Sprintf("udp %s > %s len %d", f.from, f.to, fits+1), "up up-mtu")
			}
		}
	}
}

// So does that of a route to an interface without neighbours, and of packets whose source is translated.
func TestRouteMTUWithoutNeighbours(t *testing.T) {
	h := newHarness(t, "match out on wan0 nat-to 203.0.113.2\npass")
	check(t, netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun7"}, Mode: netlink.TUNTAP_MODE_TUN}))
	tun := must(netlink.LinkByName("tun7"))(t)
	ifindex := address(t, tun, []string{"10.7.0.1/24"})
	h.setInterface(ifindex, InterfacePresent|InterfaceL3, "")
	addNarrow(t, ifindex, "10.9.0.0/16", "", 1300)
	for _, c := range []struct {
		to   string
		size int
		want string
	}{
		{"10.9.1.1", 1300, "forward rule"}, {"10.9.1.1", 1301, "up up-mtu"},
		{"10.7.0.9", 1500, "forward rule"}, {"10.7.0.9", 1501, "up up-mtu"},
		{"10.9.1.1", 1300, "forward state"}, {"10.9.1.1", 1301, "up up-mtu"},
	} {
		h.expect("tcx lan", fmt.Sprintf("udp 192.168.1.10:4000 > %s:53 len %d", c.to, c.size-28), c.want)
	}
	addNarrow(t, h.net.wan0, "198.51.100.0/24", "203.0.113.1", 1400)
	h.expect("xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 len 1372", "forward rule")
	h.expect("xdp lan", "udp 192.168.1.10:4000 > 192.0.2.9:53 len 1472", "forward rule")
	h.expect("xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 len 1373", "up up-mtu")
}

// tellRouteMTUs tells the dataplane the MTUs of the routes that there are now, as the daemon does.
func (h *harness) tellRouteMTUs() {
	h.tb.Helper()
	var all []RouteMTU
	for _, r := range must(netif.RouteMTUs())(h.tb) {
		all = append(all, RouteMTU{Network: r.Network, Ifindex: r.Link, Gateway: r.Gateway, MTU: r.MTU})
	}
	check(h.tb, h.dp.SetRouteMTUs(all))
}

// An MTU that is not locked counts, too: the kernel counts it when it forwards, and does not tell programs. Routes to other
// networks by the same gateway have none, and one that leads elsewhere has none either, if it is in the network.
func TestRouteMTUNotLocked(t *testing.T) {
	h := newHarness(t, "match in on lan0 to 10.77.0.0/16 rtable 77\npass")
	add := func(network, gateway string, r *netlink.Route) {
		t.Helper()
		_, dst, err := net.ParseCIDR(network)
		check(t, err)
		r.Dst, r.Gw = dst, net.ParseIP(gateway)
		check(t, netlink.RouteReplace(r))
	}
	route := func(network, gateway string, ifindex, mtu int) {
		t.Helper()
		add(network, gateway, &netlink.Route{LinkIndex: ifindex, MTU: mtu})
	}
	check(t, netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun7"}, Mode: netlink.TUNTAP_MODE_TUN}))
	tun := address(t, must(netlink.LinkByName("tun7"))(t), []string{"10.7.0.1/24"})
	h.setInterface(tun, InterfacePresent|InterfaceL3, "")
	route("198.51.100.0/24", "203.0.113.1", h.net.wan0, 1400)
	route("2001:db8:9::/64", "2001:db8:113::1", h.net.wan0, 1400)
	route("10.9.0.0/16", "", tun, 1300)
	route("198.51.100.128/25", "", tun, 0)
	route("::/64", "", tun, 1290) // which has ::ffff:10.7.0.9 in it, but that is no address of IPv4
	add("10.77.0.0/17", "203.0.113.1", &netlink.Route{LinkIndex: h.net.wan0, MTU: 1350, MTULock: true, Table: 77})
	add("10.77.128.0/17", "203.0.113.1", &netlink.Route{LinkIndex: h.net.wan0, MTU: 1300, Table: 77})
	lan, lan6 := "192.168.1.10:4000", "[fd00:1::10]:4000"
	type flow struct {
		from, to string
		header   int // IP and UDP
		mtu      int
		longer   string
	}
	flows := []flow{
		{lan, "198.51.100.9:53", 28, 1400, "up up-mtu"},
		{lan, "198.51.100.200:53", 28, 1500, "up up-mtu"},
		{lan, "192.0.2.9:53", 28, 1500, "up up-mtu"},
		{lan6, "[2001:db8:9::1]:53", 48, 1400, "up up-mtu"},
		{lan6, "[2001:db8:77::1]:53", 48, 1500, "up up-mtu"},
		{lan, "10.9.1.1:53", 28, 1300, "up up-mtu"},
		{lan, "10.7.0.9:53", 28, 1500, "up up-mtu"},
		{lan, "10.77.0.1:53", 28, 1350, "forward gateway-mtu"},
		{lan, "10.77.200.1:53", 28, 1500, "forward gateway-mtu"}, // its MTU is not locked
	}
	play := func() {
		t.Helper()
		for round := range 3 { // the later rounds with states that know their next hop
			if round == 2 {
				h.dp.BumpRoutes()
			}
			for _, f := range flows {
				why := "rule"
				if round > 0 {
					why = "state"
				}
				fits := f.mtu - f.header
				h.expect("tcx lan", fmt.Sprintf("udp %s > %s len %d", f.from, f.to, fits), "forward "+why)
				h.expect("tcx lan", fmt.Sprintf("udp %s > %s len %d", f.from, f.to, fits+1), f.longer)
			}
		}
		h.forget()
	}
	h.tellRouteMTUs()
	play()
	route("198.51.100.0/24", "203.0.113.1", h.net.wan0, 1450)
	route("2001:db8:9::/64", "2001:db8:113::1", h.net.wan0, 0)
	flows[0].mtu, flows[3].mtu = 1450, 1500
	h.tellRouteMTUs()
	play()
	route("198.51.100.0/24", "203.0.113.1", h.net.wan0, 0)
	route("10.9.0.0/16", "", tun, 0)
	add("10.77.0.0/17", "203.0.113.1", &netlink.Route{LinkIndex: h.net.wan0, Table: 77})
	flows[0].mtu, flows[5].mtu, flows[7].mtu = 1500, 1500, 1500
	h.tellRouteMTUs()
	play()
}

// With more routes than there is room, each MTU counts for all that leads the same way: what is too long for it goes up,
// and the stack knows better.
func TestTooManyRouteMTUs(t *testing.T) {
	var all []RouteMTU
	for i := range 10 {
		all = append(all, RouteMTU{Network: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), 16), Ifindex: 1 + i%2, MTU: uint32(1300 + i)})
	}
	if got := routeMTUs(all, 10); len(got) != 10 || got[all[3].entry()] != 1303 {
		t.Errorf("with room: %v", got)
	}
	every := func(ifindex int) tablePrefix {
		return (&RouteMTU{Network: netip.MustParsePrefix("0.0.0.0/0"), Ifindex: ifindex}).entry()
	}
	if got := routeMTUs(all, 9); len(got) != 2 || got[every(1)] != 1300 || got[every(2)] != 1301 {
		t.Errorf("without: %v", got)
	}
}
