package route

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
)

// A list during which the kernel's table has changed is asked for again. If that happens each time, it is an error.
func TestListInterrupted(t *testing.T) {
	real := routeList
	t.Cleanup(func() { routeList = real })
	whole := []netlink.Route{{Dst: &net.IPNet{IP: net.IPv4(10, 2, 0, 0).To4(), Mask: net.CIDRMask(16, 32)}}, {Dst: &net.IPNet{IP: net.IPv4(10, 3, 0, 0).To4(), Mask: net.CIDRMask(16, 32)}}}
	asked, interrupted := 0, 2
	routeList = func(family int, _ *netlink.Route, _ uint64) ([]netlink.Route, error) {
		if family != netlink.FAMILY_V4 {
			return nil, nil
		}
		asked++
		if asked <= interrupted {
			return whole[:1], netlink.ErrDumpInterrupted
		}
		return whole, nil
	}
	all, err := list()
	if err != nil || len(all) != 2 || prefixOf(&all[1]) != netip.MustParsePrefix("10.3.0.0/16") {
		t.Errorf("after %d questions there are %v, %v", asked, all, err)
	}
	asked, interrupted = 0, 1000
	if _, err := list(); !errors.Is(err, netlink.ErrDumpInterrupted) || asked > 20 {
		t.Errorf("a list that changes all the time is asked for %d times: %v", asked, err)
	}
}
