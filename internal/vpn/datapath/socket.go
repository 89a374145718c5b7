package datapath

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// Sizes of buffers.
const (
	maxDatagram = 0xffff // of one family with another
	roomControl = 128
	roomSocket  = 7 << 20 // of a socket's own buffers
)

// A socket is that of one family.
type socket struct {
	fd  int
	six bool

	fault atomic.Pointer[fault] // in tests
}

// A fault is asked before each datagram is sent.
type fault func(messages []byte, segment int, to *device.Endpoint) unix.Errno

// openSocket opens the socket of a family on a port.
func openSocket(six bool, port uint16) (*socket, error) {
	family := unix.AF_INET
	if six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &socket{fd: fd, six: six}
	if err = s.set(); err == nil {
		err = s.bind(port)
	}
	if err != nil {
		unix.Close(fd) //nolint:errcheck // it has failed already
		return nil, err
	}
	return s, nil
}

func (s *socket) set() error {
	for _, o := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o[0], roomSocket)
		if err == unix.EPERM { // as much as everybody may have
			err = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o[1], roomSocket)
		}
		if err != nil {
			return fmt.Errorf("set option %d of a socket: %w", o[0], err)
		}
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
		return fmt.Errorf("have the kernel put datagrams together: %w", err)
	}
	level, options := unix.IPPROTO_IP, []int{unix.IP_PKTINFO, unix.IP_RECVTOS}
	if s.six {
		level, options = unix.IPPROTO_IPV6, []int{unix.IPV6_V6ONLY, unix.IPV6_RECVPKTINFO, unix.IPV6_RECVTCLASS}
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(s.fd, level, o, 1); err != nil {
			return fmt.Errorf("set option %d of a socket: %w", o, err)
		}
	}
	return nil
}

func (s *socket) bind(port uint16) error {
	if s.six {
		return unix.Bind(s.fd, &unix.SockaddrInet6{Port: int(port)})
	}
	return unix.Bind(s.fd, &unix.SockaddrInet4{Port: int(port)})
}

// port returns the port that the socket listens on.
func (s *socket) port() (uint16, error) {
	at, err := unix.Getsockname(s.fd)
	if err != nil {
		return 0, err
	}
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return uint16(at.Port), nil
	case *unix.SockaddrInet6:
		return uint16(at.Port), nil
	}
	return 0, unix.EAFNOSUPPORT
}

// A datagram is what is given to the kernel, and taken from it, with a message. It lies on the heap: the kernel
// writes to where it is.
type datagram struct {
	header  unix.Msghdr
	part    unix.Iovec
	name    [unix.SizeofSockaddrInet6]byte
	control [roomControl]byte
}

// Offsets in struct sockaddr_in and sockaddr_in6, struct in_pktinfo and in6_pktinfo.
const (
	namePort     = 2
	nameAddress4 = 4
	nameAddress6 = 8
	nameScope    = 24
	infoLocal4   = 4 // ipi_spec_dst
	infoLocal6   = 0
	infoIndex4   = 0
	infoIndex6   = 16
	loopback     = 1 // the index of lo
)

// receive reads what has come to the socket: as many messages of the same size as segment says, the last of
// which may be shorter, with the ECN they came with.
func (d *datagram) receive(s *socket, buffer []byte, from *device.Endpoint) (n, segment int, class byte, e unix.Errno) {
	d.part.Base = &buffer[0]
	d.part.SetLen(len(buffer))
	d.header = unix.Msghdr{Name: &d.name[0], Namelen: uint32(len(d.name)), Iov: &d.part, Iovlen: 1, Control: &d.control[0]}
	d.header.SetControllen(len(d.control))
	r, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&d.header)), 0)
	if e != 0 {
		return 0, 0, 0, e
	}
	n, segment = int(r), int(r)
	port := binary.BigEndian.Uint16(d.name[namePort:])
	*from = device.Endpoint{}
	if s.six {
		address := netip.AddrFrom16([16]byte(d.name[nameAddress6:nameScope]))
		from.Remote = netip.AddrPortFrom(address, port)
		if address.IsLinkLocalUnicast() {
			from.Scope = binary.NativeEndian.Uint32(d.name[nameScope:])
		}
	} else {
		from.Remote = netip.AddrPortFrom(netip.AddrFrom4([4]byte(d.name[nameAddress4:nameAddress6])), port)
	}
	for rest := d.control[:min(int(d.header.Controllen), len(d.control))]; len(rest) >= unix.SizeofCmsghdr; {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&rest[0]))
		if int(h.Len) < unix.SizeofCmsghdr || int(h.Len) > len(rest) {
			break
		}
		data := rest[unix.CmsgLen(0):h.Len]
		switch {
		case h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			segment = int(binary.NativeEndian.Uint32(data))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			from.Local = netip.AddrFrom4([4]byte(data[infoLocal4 : infoLocal4+4]))
			from.Interface = binary.NativeEndian.Uint32(data[infoIndex4:])
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			from.Local = netip.AddrFrom16([16]byte(data[infoLocal6 : infoLocal6+16]))
			from.Interface = binary.NativeEndian.Uint32(data[infoIndex6:])
		case (h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS || h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS) && len(data) >= 1:
			class = data[0]
		}
		rest = rest[min(unix.CmsgSpace(len(data)), len(rest)):]
	}
	if from.Interface == loopback { // what comes by lo may go to an address of another interface
		from.Interface = 0
	}
	return n, max(segment, 1), class, 0
}

// send gives the kernel messages of the same size, segment, the last of which may be shorter.
func (d *datagram) send(s *socket, messages []byte, segment int, class byte, to *device.Endpoint) unix.Errno {
	if f := s.fault.Load(); f != nil {
		if e := (*f)(messages, segment, to); e != 0 {
			return e
		}
	}
	d.part.Base = &messages[0]
	d.part.SetLen(len(messages))
	d.header = unix.Msghdr{Name: &d.name[0], Namelen: d.address(s, to), Iov: &d.part, Iovlen: 1}
	control := 0
	if len(messages) > segment {
		binary.NativeEndian.PutUint16(d.put(&control, unix.SOL_UDP, unix.UDP_SEGMENT, 2), uint16(segment))
	}
	d.leave(s, &control, to)
	if class != 0 {
		level, name := int32(unix.IPPROTO_IP), int32(unix.IP_TOS)
		if s.six {
			level, name = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		binary.NativeEndian.PutUint32(d.put(&control, level, name, 4), uint32(class))
	}
	if control > 0 {
		d.header.Control = &d.control[0]
		d.header.SetControllen(control)
	}
	_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&d.header)), 0)
	return e
}

// leave says which address messages come from, and which interface they leave by.
func (d *datagram) leave(s *socket, control *int, to *device.Endpoint) {
	switch {
	case !to.Local.IsValid() && to.Interface == 0:
	case s.six:
		info := d.put(control, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
		if to.Local.IsValid() {
			local := to.Local.As16()
			copy(info[infoLocal6:], local[:])
		}
		index := to.Interface
		if to.Scope != 0 {
			index = to.Scope
		}
		binary.NativeEndian.PutUint32(info[infoIndex6:], index)
	default:
		info := d.put(control, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		if to.Local.IsValid() {
			local := to.Local.As4()
			copy(info[infoLocal4:], local[:])
		}
		binary.NativeEndian.PutUint32(info[infoIndex4:], to.Interface)
	}
}

// address writes where messages go, and returns how long that is.
func (d *datagram) address(s *socket, to *device.Endpoint) uint32 {
	clear(d.name[:])
	binary.BigEndian.PutUint16(d.name[namePort:], to.Remote.Port())
	if !s.six {
		binary.NativeEndian.PutUint16(d.name[:], unix.AF_INET)
		a := to.Remote.Addr().As4()
		copy(d.name[nameAddress4:], a[:])
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(d.name[:], unix.AF_INET6)
	a := to.Remote.Addr().As16()
	copy(d.name[nameAddress6:], a[:])
	binary.NativeEndian.PutUint32(d.name[nameScope:], to.Scope)
	return unix.SizeofSockaddrInet6
}

// put adds a control message, and returns where its data goes.
func (d *datagram) put(at *int, level, kind int32, size int) []byte {
	b := d.control[*at : *at+unix.CmsgSpace(size)]
	clear(b)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	*at += len(b)
	return b[unix.CmsgLen(0) : unix.CmsgLen(0)+size]
}
