package dataplane

import (
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
)

// addNarrow adds a route with an MTU of its own. The kernel tells programs only of locked ones.
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
