package line_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// What routers have advertised is deprecated until they do so again, each time, also if it is valid for ever. What somebody has set stays.
func TestDeprecate(t *testing.T) {
	l, ends := pair(t, 1492)
	if err := l.Do("home", ends[0].AcceptAdvertisements); err != nil {
		t.Fatal(err)
	}
	run(t, l, "home", "ip", "address", "add", "2001:db8:77::1/64", "dev", "ppp0", "nodad")
	networks := []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/64"), netip.MustParsePrefix("2001:db8:2::/64")}
	advertisement := &ndp.RouterAdvertisement{Options: []ndp.Option{
		prefixOption(networks[0], ndp.Infinity), prefixOption(networks[1], time.Hour),
	}}
	var conn *ndp.Conn
	err := l.Do("provider", func() error {
		nic, err := net.InterfaceByName("ppp0")
		if err != nil {
			return err
		}
		conn, _, err = ndp.Listen(nic, ndp.LinkLocal)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// await waits until the address of each network is deprecated, or none is.
	await := func(deprecated bool) {
		t.Helper()
		var all []netlink.Addr
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
			err := l.Do("home", func() error {
				nic, err := netlink.LinkByName("ppp0")
				if err != nil {
					return err
				}
				all, err = netlink.AddrList(nic, netlink.FAMILY_V6)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			so := 0
			for i := range all {
				ip, _ := netip.AddrFromSlice(all[i].IP)
				is := all[i].Flags&unix.IFA_F_DEPRECATED != 0
				if (networks[0].Contains(ip) || networks[1].Contains(ip)) && is == deprecated {
					so++
				}
				if is && all[i].Flags&unix.IFA_F_PERMANENT != 0 {
					t.Fatalf("permanent and deprecated: %+v", all[i])
				}
			}
			if so == len(networks) {
				return
			}
		}
		t.Fatalf("not all are deprecated=%v: %+v", deprecated, all)
	}
	for range 2 {
		if err := conn.WriteTo(advertisement, nil, netip.IPv6LinkLocalAllNodes()); err != nil {
			t.Fatal(err)
		}
		await(false)
		if err := l.Do("home", ends[0].Deprecate); err != nil {
			t.Fatal(err)
		}
		await(true)
	}
}

func prefixOption(p netip.Prefix, valid time.Duration) *ndp.PrefixInformation {
	return &ndp.PrefixInformation{
		PrefixLength: uint8(p.Bits()), OnLink: true, AutonomousAddressConfiguration: true, ValidLifetime: valid, PreferredLifetime: valid, Prefix: p.Addr(),
	}
}

// A default route that an earlier version has let an advertisement make goes. Routes of others, and other advertised ones, stay.
func TestAdvertisedDefault(t *testing.T) {
	l, ends := pair(t, 1492)
	for _, words := range [][]string{
		{"default", "via", "fe80::77", "proto", "ra", "metric", "1024"},
		{"2001:db8:9::/64", "proto", "ra", "metric", "256"},
		{"default", "via", "fe80::78", "proto", "static", "metric", "2048"},
	} {
		run(t, l, "home", append(append([]string{"ip", "-6", "route", "add"}, words...), "dev", "ppp0")...)
	}
	if err := l.Do("home", ends[0].AcceptAdvertisements); err != nil {
		t.Fatal(err)
	}
	out, err := l.Run(t.Context(), "home", "ip", "-6", "route", "show", "dev", "ppp0")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "default via fe80::77") {
		t.Errorf("the advertised default route stays:\n%s", out)
	}
	for _, stays := range []string{"2001:db8:9::/64", "default via fe80::78"} {
		if !strings.Contains(string(out), stays) {
			t.Errorf("%s has gone:\n%s", stays, out)
		}
	}
}
