package ipsec

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/vpn/tunnel"
)

// kind is what the kernel calls an xfrm interface.
const kind = "xfrm"

// ErrMissing is the error for a kernel without xfrm interfaces.
var ErrMissing = errors.New("this kernel has no xfrm interfaces (CONFIG_XFRM_INTERFACE)")

// Link makes the interface of a tunnel unless it is there. Packets that are sent to it and that no keys
// are for are dropped by the kernel.
func Link(name string, id uint32) error {
	l, err := tunnel.Find(name, kind)
	if err != nil {
		return err
	}
	if is, ok := l.(*netlink.Xfrmi); ok && is.Ifid == id {
		return nil
	}
	if l != nil {
		if err := netlink.LinkDel(l); err != nil {
			return fmt.Errorf("make %s anew: %w", name, err)
		}
	}
	err = netlink.LinkAdd(&netlink.Xfrmi{LinkAttrs: netlink.LinkAttrs{Name: name}, Ifid: id})
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return ErrMissing
	case err != nil:
		return fmt.Errorf("make %s: %w", name, err)
	}
	if err := tunnel.Mark(name); err != nil {
		return errors.Join(err, netlink.LinkDel(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	}
	return nil
}

// ownAddresses returns the addresses of this machine.
func ownAddresses() (all []netip.Addr, err error) {
	networks, err := net.InterfaceAddrs()
	for _, n := range networks {
		if p, err := netip.ParsePrefix(n.String()); err == nil {
			all = append(all, p.Addr())
		}
	}
	return all, err
}
