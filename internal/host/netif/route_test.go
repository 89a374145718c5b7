package netif_test

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/lab"
)

func TestRoutes(t *testing.T) {
	inLab(t, lab.Options{Name: "routes"}, func(*lab.Lab) error {
		lan, err := netlink.LinkByName("lan0")
		if err != nil {
			return err
		}
		_, sink, _ := net.ParseCIDR("10.9.0.0/16")
		_, near, _ := net.ParseCIDR("10.9.8.0/24")
		_, far, _ := net.ParseCIDR("10.7.0.0/16")
		_, far6, _ := net.ParseCIDR("2001:db8:77::/48")
		for _, r := range []netlink.Route{
			{Dst: sink, Type: unix.RTN_BLACKHOLE},
			{Dst: near, LinkIndex: lan.Attrs().Index, Scope: netlink.SCOPE_LINK},
			{Dst: far, LinkIndex: lan.Attrs().Index, Via: &netlink.Via{AddrFamily: unix.AF_INET6, Addr: net.ParseIP("fe80::9")}},
			{Dst: far6, LinkIndex: lan.Attrs().Index, Gw: net.ParseIP("fe80::9")},
			{Dst: far6, LinkIndex: lan.Attrs().Index, Gw: net.ParseIP("fe80::8"), Priority: 9},
		} {
			if err := netlink.RouteAdd(&r); err != nil {
				return err
			}
		}
		routes, err := netif.Routes()
		if err != nil {
			return err
		}
		for dst, want := range map[string]struct {
			iface, gateway string
			ok             bool
		}{
			"10.9.1.1":       {"", "", false},
			"10.9.8.1":       {"lan0", "", true},
			"10.7.8.1":       {"lan0", "fe80::9", true},
			"2001:db8:77::1": {"lan0", "fe80::8", true},
		} {
			r, ok := routes.To(netip.MustParseAddr(dst))
			gateway := ""
			if r.Gateway.IsValid() {
				gateway = r.Gateway.String()
			}
			if ok != want.ok || ok && (r.Interface != want.iface || gateway != want.gateway) {
				t.Errorf("%s: %+v %t, want %+v", dst, r, ok, want)
			}
		}
		if r, ok := routes.To(netip.MustParseAddr("198.51.100.1")); !ok || r.Interface != "wan0" || r.To.Bits() != 0 {
			t.Errorf("the default route: %+v %t", r, ok)
		}
		return nil
	})
}

// The routes with an MTU that is not locked, of all tables, and each of several ways. Changes of one are told, also if it
// has none any more.
func TestRouteMTUs(t *testing.T) {
	inLab(t, lab.Options{Name: "routemtus"}, func(*lab.Lab) error {
		lan, err := netlink.LinkByName("lan0")
		if err != nil {
			return err
		}
		link := lan.Attrs().Index
		near := lan.Attrs().Name
		w, err := netif.Watch()
		if err != nil {
			return err
		}
		defer w.Close()
		ip := func(words string) {
			if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v: %s", words, err, out)
			}
		}
		marks := 0
		told := func() bool { // until an event that marks the end
			marks++
			ip(fmt.Sprintf("addr add 10.200.0.%d/32 dev %s", marks, near))
			var all netif.Change
			for all&netif.ChangedAddresses == 0 {
				c, err := w.Next()
				if err != nil {
					t.Fatal(err)
				}
				all |= c
			}
			return all&netif.ChangedRouteMTUs != 0
		}
		ip("route add 10.1.0.0/16 dev " + near)
		if told() {
			t.Error("a route without an MTU is told as one with")
		}
		ip("route add 10.2.0.0/16 dev " + near + " mtu 1400")
		if !told() {
			t.Error("a route with an MTU is not told")
		}
		ip("route add 10.3.0.0/16 dev " + near + " mtu lock 1400")
		ip("route add 10.4.0.0/16 via inet6 fe80::9 dev " + near + " mtu 1401 table 77")
		ip("route add 10.5.0.0/16 mtu 1402 nexthop dev " + near + " nexthop via inet6 fe80::8 dev " + near)
		ip("route add unreachable 10.6.0.0/16 mtu 1403")
		ip("-6 route add 2001:db8:7::/48 via fe80::7 dev " + near + " mtu 1404")
		want := []netif.RouteMTU{
			{Network: netip.MustParsePrefix("10.2.0.0/16"), Link: link, MTU: 1400},
			{Network: netip.MustParsePrefix("10.4.0.0/16"), Link: link, Gateway: netip.MustParseAddr("fe80::9"), MTU: 1401},
			{Network: netip.MustParsePrefix("10.5.0.0/16"), Link: link, MTU: 1402},
			{Network: netip.MustParsePrefix("10.5.0.0/16"), Link: link, Gateway: netip.MustParseAddr("fe80::8"), MTU: 1402},
			{Network: netip.MustParsePrefix("2001:db8:7::/48"), Link: link, Gateway: netip.MustParseAddr("fe80::7"), MTU: 1404},
		}
		got, err := netif.RouteMTUs()
		if err != nil {
			return err
		}
		slices.SortFunc(got, func(x, y netif.RouteMTU) int {
			return cmp.Or(cmp.Compare(x.MTU, y.MTU), x.Gateway.Compare(y.Gateway))
		})
		if !slices.Equal(got, want) {
			t.Errorf("routes with an MTU: %v, want %v", got, want)
		}
		if w.WatchRouteMTUs(got) || !w.WatchRouteMTUs(got) {
			t.Error("networks are not watched from the first call on")
		}
		told()
		ip("route del 10.1.0.0/16 dev " + near)
		if told() {
			t.Error("a route that never had an MTU is told")
		}
		ip("route replace 10.2.0.0/16 dev " + near)
		if !told() {
			t.Error("a route that has no MTU any more is not told")
		}
		return nil
	})
}

// Packets of a flow go where the rules for routing say, whichever they are.
func TestWayOf(t *testing.T) {
	inLab(t, lab.Options{Name: "ways"}, func(*lab.Lab) error {
		for _, c := range []string{
			"address add 192.0.2.1/24 dev lan0", "route add default via 192.168.1.10 dev lan0 table 100", "route add 198.51.100.0/24 via 192.168.1.11 dev lan0 mtu 1400 table 101",
			"-4 route add default via inet6 fe80::9 dev lan0 table 102", "-6 route add default via fe80::9 dev lan0 table 100",
			"rule add pref 100 fwmark 7 lookup 100", "rule add pref 101 ipproto udp dport 51820 sport 4000 lookup 101", "rule add pref 102 from 192.0.2.1 lookup 102",
			"-6 rule add pref 100 ipproto udp dport 51820 lookup 100",
		} {
			if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
				return fmt.Errorf("ip %s: %w: %s", c, err, out)
			}
		}
		indexOf := func(name string) int {
			l, err := net.InterfaceByName(name)
			if err != nil {
				t.Fatal(err)
			}
			return l.Index
		}
		lan, wan := indexOf("lan0"), indexOf("wan0")
		to, to6 := netip.MustParseAddrPort("198.51.100.7:51820"), netip.MustParseAddrPort("[2001:db8:77::1]:51820")
		from := func(a string, port uint16) netip.AddrPort {
			if a == "" {
				return netip.AddrPortFrom(netip.Addr{}, port)
			}
			return netip.AddrPortFrom(netip.MustParseAddr(a), port)
		}
		for name, c := range map[string]struct {
			flow netif.Flow
			link int
			via  string
			mtu  int
		}{
			"anything":   {netif.Flow{To: to}, wan, "203.0.113.1", 0},
			"a mark":     {netif.Flow{To: to, Mark: 7}, lan, "192.168.1.10", 0},
			"ports":      {netif.Flow{Protocol: unix.IPPROTO_UDP, From: from("", 4000), To: to}, lan, "192.168.1.11", 1400},
			"other port": {netif.Flow{Protocol: unix.IPPROTO_UDP, From: from("", 4001), To: to}, wan, "203.0.113.1", 0},
			"a source":   {netif.Flow{Protocol: unix.IPPROTO_UDP, From: from("192.0.2.1", 4001), To: to}, lan, "fe80::9", 0},
			"held":       {netif.Flow{Protocol: unix.IPPROTO_UDP, From: from("", 4000), To: to, Out: wan}, wan, "203.0.113.1", 0},
			"IPv6":       {netif.Flow{Protocol: unix.IPPROTO_UDP, From: from("", 4000), To: to6}, lan, "fe80::9", 0},
			"IPv6 TCP":   {netif.Flow{Protocol: unix.IPPROTO_TCP, To: to6}, wan, "2001:db8:113::1", 0},
		} {
			w, err := netif.WayOf(c.flow)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if w.Link != c.link || w.Via.String() != c.via || w.MTU != c.mtu {
				t.Errorf("%s: %+v, want %+v", name, w, c)
			}
		}
		return nil
	})
}
