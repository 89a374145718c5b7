package htb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
)

// alias begins the alias of weir's own devices, which tells them from those of others.
const alias = "weir: "

// A WaitingDevice is a device of weir's own, at whose qdisc packets wait that have come in by
// another one: an intermediate functional block (IFB). TCX ingress sends them there; the kernel takes
// them back to where they came in and on to the stack.
type WaitingDevice struct {
	Device
	In int // index of the interface by which they come in
}

// waitingName returns the name of the device for an interface.
func waitingName(ifindex int) string { return fmt.Sprintf("%s%d", netif.WaitingPrefix, ifindex) }

// WaitingDevices returns weir's own devices of the namespace.
func WaitingDevices() ([]WaitingDevice, error) {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var all []WaitingDevice
	for _, l := range links {
		if isWaiting(l) {
			d := WaitingDevice{Device: Device{l.Attrs().Index, l.Attrs().Name}}
			if _, err := fmt.Sscanf(d.Name, netif.WaitingPrefix+"%d", &d.In); err == nil {
				all = append(all, d)
			}
		}
	}
	return all, nil
}

func isWaiting(l netlink.Link) bool {
	return l.Type() == "ifb" && strings.HasPrefix(l.Attrs().Alias, alias)
}

// ForeignIn returns an error if somebody else handles what comes in by a device, behind weir, or has
// a device of the name that weir's would have.
func (m *Machine) ForeignIn(d Device) error {
	for i := range m.qdiscs {
		q := &m.qdiscs[i]
		if q.ifindex == d.Index && q.parent == netlink.HANDLE_INGRESS {
			return &ForeignError{Device: d.Name, Qdisc: fmt.Sprintf("%s %x:", q.kind, q.handle>>16), at: q.kind}
		}
	}
	l, err := netlink.LinkByName(waitingName(d.Index))
	if err == nil && !isWaiting(l) {
		return fmt.Errorf("there is a device %s, which is not weir's; rename it, or write `engine phantom`", l.Attrs().Name)
	}
	return nil
}

// AddWaiting returns the device where packets wait that come in by d. It makes it if there is none.
func AddWaiting(d Device) (Device, error) {
	name := waitingName(d.Index)
	l, err := netlink.LinkByName(name)
	if err == nil && !isWaiting(l) {
		return Device{}, fmt.Errorf("make %s: %w", name, unix.EEXIST)
	}
	if err != nil {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		l = &netlink.Ifb{LinkAttrs: attributes}
		err = netlink.LinkAdd(l)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
			return Device{}, errors.New("this kernel has no ifb (CONFIG_IFB)")
		}
		if err == nil {
			err = setUpWaiting(name, d.Name)
		}
		if err == nil {
			l, err = netlink.LinkByName(name)
		}
	}
	if err == nil {
		err = netlink.LinkSetUp(l)
	}
	if err != nil {
		return Device{}, fmt.Errorf("make %s: %w", name, err)
	}
	return Device{l.Attrs().Index, name}, nil
}

// setUpWaiting says whose a new device is. It gets no address of IPv6 of its own.
func setUpWaiting(name, of string) error {
	const none = 1 // IN6_ADDR_GEN_MODE_NONE
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetIP6AddrGenMode(l, none); err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EAFNOSUPPORT) {
		return errors.Join(err, netlink.LinkDel(l))
	}
	if err := netlink.LinkSetAlias(l, alias+"what comes in by "+of+" waits here"); err != nil {
		return errors.Join(err, netlink.LinkDel(l))
	}
	return nil
}

// RemoveWaiting removes one of weir's own devices, and its qdiscs with it.
func RemoveWaiting(d WaitingDevice) error {
	err := netlink.LinkDel(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Index: d.Index, Name: d.Name}})
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s: %w", d.Name, err)
	}
	return nil
}
