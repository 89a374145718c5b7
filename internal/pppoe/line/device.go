package line

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
)

// MaxName is the most characters of a device's name: that of its line has to fit, too.
const MaxName = unix.IFNAMSIZ - 1 - len(netif.LineSuffix)

// lineMTU is that of a line. No packet of its device is too long for it.
const lineMTU = 9000

// Device is a session's device, and its line.
type Device struct {
	Name        string
	Index, Line int // indexes of the two
}

// Devices returns weir's own devices of the namespace.
func Devices() ([]Device, error) {
	links, err := netif.Dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	lines := map[string]int{}
	for _, l := range links {
		if netif.IsLine(l) {
			lines[strings.TrimSuffix(l.Attrs().Name, netif.LineSuffix)] = l.Attrs().Index
		}
	}
	var all []Device
	for _, l := range links {
		if line := lines[l.Attrs().Name]; line != 0 && l.Type() == "veth" {
			all = append(all, Device{l.Attrs().Name, l.Attrs().Index, line})
		}
	}
	return all, nil
}

// Add returns the device of a name. It makes what is missing.
func Add(name string) (Device, error) {
	all, err := Devices()
	if err != nil {
		return Device{}, err
	}
	at := slices.IndexFunc(all, func(d Device) bool { return d.Name == name })
	if at < 0 {
		if len(name) > MaxName {
			return Device{}, fmt.Errorf("the name of a PPPoE interface has at most %d characters", MaxName)
		}
		d, err := add(name)
		if err != nil {
			return Device{}, fmt.Errorf("make %s: %w", name, err)
		}
		all, at = []Device{d}, 0
	}
	if err := all[at].prepare(); err != nil {
		return Device{}, fmt.Errorf("prepare %s: %w", name, err)
	}
	return all[at], nil
}

// add makes a pair, and marks its line as weir's.
func add(name string) (d Device, err error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	pair := &netlink.Veth{LinkAttrs: attributes, PeerName: name + netif.LineSuffix}
	if err := netlink.LinkAdd(pair); err != nil {
		return d, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, netlink.LinkDel(pair))
		}
	}()
	device, err := netlink.LinkByName(name)
	if err != nil {
		return d, err
	}
	line, err := netlink.LinkByName(pair.PeerName)
	if err != nil {
		return d, err
	}
	return Device{name, device.Attrs().Index, line.Attrs().Index}, netlink.LinkSetAlias(line, netif.LineAlias+name)
}

// prepare sets what never changes.
func (d Device) prepare() error {
	device, err := netlink.LinkByIndex(d.Index)
	if err != nil {
		return err
	}
	line, err := netlink.LinkByIndex(d.Line)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return noIPv6(line) },
		func() error { return noIPv6Address(device) },
		func() error { return d.sendWhole() },
		func() error { return netlink.LinkSetARPOff(device) },
		func() error { return netlink.LinkSetARPOff(line) },
		func() error { return netlink.LinkSetMTU(line, lineMTU) },
		func() error { return netlink.LinkSetUp(device) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// sendWhole switches offloads off, so that the kernel cuts packets and completes their checksums
// before they reach the line.
func (d Device) sendWhole() error {
	has, err := netif.FeaturesOf(d.Name)
	if err != nil {
		return err
	}
	off := netif.Features{}
	for feature, on := range has {
		if on && (strings.HasPrefix(feature, "tx-checksum") || strings.HasPrefix(feature, "tx-") && strings.HasSuffix(feature, "segmentation") ||
			feature == "tx-scatter-gather-fraglist" || feature == "tx-gso-list") {
			off[feature] = false
		}
	}
	return netif.SetFeatures(d.Name, off)
}

// noIPv6 keeps the kernel from sending on a line.
func noIPv6(l netlink.Link) error {
	err := os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", l.Attrs().Name, "disable_ipv6"), []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // no IPv6 here
	}
	return err
}

// noIPv6Address leaves the link-local address to IPV6CP.
func noIPv6Address(l netlink.Link) error {
	const none = 1 // IN6_ADDR_GEN_MODE_NONE
	err := netlink.LinkSetIP6AddrGenMode(l, none)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil
	}
	return err
}

// Remove removes a device and its line.
func (d Device) Remove() error {
	err := netlink.LinkDel(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: d.Index, Name: d.Name}})
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s: %w", d.Name, err)
	}
	return nil
}

// SetCarrier says whether the device has a session: without one the kernel sees no carrier.
func (d Device) SetCarrier(up bool) error {
	line := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: d.Line}}
	set := netlink.LinkSetDown
	if up {
		set = netlink.LinkSetUp
	}
	if err := set(line); err != nil {
		return fmt.Errorf("set the carrier of %s: %w", d.Name, err)
	}
	return nil
}

// Describe gives the device the Ethernet address of its carrier, which a session's frames
// have, and the session's MTU.
func (d Device) Describe(mac net.HardwareAddr, mtu int) error {
	l, err := netlink.LinkByIndex(d.Index)
	if err == nil && l.Attrs().HardwareAddr.String() != mac.String() {
		err = netlink.LinkSetHardwareAddr(l, mac)
	}
	if err == nil && l.Attrs().MTU != mtu {
		err = netlink.LinkSetMTU(l, mtu)
	}
	if err != nil {
		return fmt.Errorf("set the Ethernet address and the MTU of %s: %w", d.Name, err)
	}
	return nil
}
