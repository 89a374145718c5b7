package tunnel

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Find returns the interface of a tunnel, or nil if there is none. One of weir's that is of another
// kind than an engine needs is removed: the tunnel has changed its engine.
func Find(name, kind string) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	if !ours(l) {
		return nil, fmt.Errorf("open %s: %w: ip link del %s, or another name", name, ErrForeign, name)
	}
	if l.Type() == kind {
		return l, nil
	}
	if err := netlink.LinkDel(l); err != nil {
		return nil, fmt.Errorf("remove %s: %w", name, err)
	}
	return nil, nil
}

// Ours reports whether an interface of that name is there and weir's.
func Ours(name string) bool {
	l, err := netlink.LinkByName(name)
	return err == nil && ours(l)
}

func ours(l netlink.Link) bool { return l.Attrs().Alias == alias || l.Attrs().Alias == ipsecAlias }

// Mark says that an interface is weir's.
func Mark(name string) error {
	l, err := netlink.LinkByName(name)
	if err == nil {
		is := alias
		if l.Type() == "xfrm" {
			is = ipsecAlias
		}
		err = netlink.LinkSetAlias(l, is)
	}
	if err != nil {
		return fmt.Errorf("mark %s: %w", name, err)
	}
	return nil
}

// Remove removes all interfaces of tunnels but those that are kept.
func Remove(keep func(name string) bool) error {
	all, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	var errs []error
	for _, l := range all {
		if ours(l) && !keep(l.Attrs().Name) {
			errs = append(errs, netlink.LinkDel(l))
		}
	}
	return errors.Join(errs...)
}
