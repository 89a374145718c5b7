package netif_test

import (
	"net"
	"net/netip"
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
