package keeper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/vpn/route"
)

// setAddresses gives an interface its addresses. Others go, except for those that IPv6 makes by itself.
func setAddresses(l netlink.Link, addresses []netip.Prefix) error {
	name := l.Attrs().Name
	has, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", name, err)
	}
	there := map[netip.Prefix]bool{}
	var errs []error
	for i := range has {
		ip, _ := netip.AddrFromSlice(has[i].IP)
		bits, _ := has[i].Mask.Size()
		p := netip.PrefixFrom(ip.Unmap(), bits)
		there[p] = true
		if !slices.Contains(addresses, p) && !(ip.Is6() && ip.IsLinkLocalUnicast()) {
			errs = append(errs, netlink.AddrDel(l, &has[i]))
		}
	}
	for _, a := range addresses {
		if there[a] {
			continue
		}
		add := &netlink.Addr{IPNet: route.Net(a)}
		if a.Addr().Is6() {
			add.Flags = unix.IFA_F_NODAD
		}
		errs = append(errs, netlink.AddrReplace(l, add))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set the addresses of %s: %w", name, err)
	}
	return nil
}
