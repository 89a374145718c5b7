package lib

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Options of the kernel's multicast routing (linux/mroute.h, mroute6.h); they are
// the same numbers for both families.
const (
	mrtInit   = 200
	mrtAddVIF = 202
	mrtAddMFC = 204

	vifUseIfindex = 0x8
)

// RouteMulticast makes the kernel of a host route packets from source to the groups, from
// one device to another, until the story ends. A routing daemon could not be told to do
// that.
func (b *Box) RouteMulticast(host string, source, from, to string, groups ...string) {
	b.Helper()
	sender, socket := netip.MustParseAddr(source), -1
	err := b.Do(host, func() error {
		family, proto, level := unix.AF_INET, unix.IPPROTO_IGMP, unix.IPPROTO_IP
		if sender.Is6() {
			family, proto, level = unix.AF_INET6, unix.IPPROTO_ICMPV6, unix.IPPROTO_IPV6
		}
		var err error
		if socket, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(socket, level, mrtInit, 1); err != nil {
			return err
		}
		for i, name := range []string{from, to} {
			device, err := net.InterfaceByName(name)
			if err != nil {
				return err
			}
			if err := unix.SetsockoptString(socket, level, mrtAddVIF, multicastDevice(uint16(i), device.Index, sender.Is6())); err != nil {
				return err
			}
		}
		for _, group := range groups {
			route := multicastRoute(sender, netip.MustParseAddr(group))
			if err := unix.SetsockoptString(socket, level, mrtAddMFC, route); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatalf("route multicast from %s to %s: %v", source, groups, err)
	}
	b.Cleanup(func() { syscall.Close(socket) }) //nolint:errcheck // its routes end with it
}

// multicastDevice is a vifctl or mif6ctl.
func multicastDevice(number uint16, ifindex int, v6 bool) string {
	d := binary.NativeEndian.AppendUint16(nil, number)
	if v6 {
		d = append(d, 0, 1)
		d = binary.NativeEndian.AppendUint16(d, uint16(ifindex))
		return string(append(d, make([]byte, 6)...))
	}
	d = append(d, vifUseIfindex, 1)
	d = binary.NativeEndian.AppendUint32(d, 0)
	d = binary.NativeEndian.AppendUint32(d, uint32(ifindex))
	return string(append(d, make([]byte, 4)...))
}

// multicastRoute is an mfcctl or mf6cctl, from the first device to the second.
func multicastRoute(source, group netip.Addr) string {
	if group.Is6() {
		var r [92]byte
		for at, a := range map[int]netip.Addr{0: source, 28: group} {
			binary.NativeEndian.PutUint16(r[at:], unix.AF_INET6)
			copy(r[at+8:], a.AsSlice())
		}
		binary.NativeEndian.PutUint32(r[60:], 1<<1)
		return string(r[:])
	}
	var r [60]byte
	copy(r[:], source.AsSlice())
	copy(r[4:], group.AsSlice())
	r[10+1] = 1 // TTL that a packet must exceed there
	return string(r[:])
}
