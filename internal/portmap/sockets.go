package portmap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// mostDatagram is longer than every message that is taken.
const mostDatagram = 2048

// bound returns a configuration of sockets that only get what comes by an interface.
func bound(device string, reuse bool) *net.ListenConfig {
	return &net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		failed := raw.Control(func(fd uintptr) {
			err = os.NewSyscallError("setsockopt SO_BINDTODEVICE", unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, device))
			if err == nil && reuse {
				err = os.NewSyscallError("setsockopt SO_REUSEADDR", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
			}
		})
		return errors.Join(failed, err)
	}}
}

// A datagram has come from a host to an address of the box, or to a group.
type datagram struct {
	data []byte
	from netip.AddrPort
	to   netip.Addr
}

// An endpoint is a UDP socket of one family on one interface.
type endpoint struct {
	is4    bool
	device *net.Interface
	conn   *net.UDPConn
	v4     *ipv4.PacketConn
	v6     *ipv6.PacketConn
}

// listenUDP opens a socket. It shares the port with others if it has to: that of SSDP is
// used by programs that look for devices.
func listenUDP(ctx context.Context, device string, is4 bool, port uint16, reuse bool, groups ...netip.Addr) (*endpoint, error) {
	network := "udp6"
	if is4 {
		network = "udp4"
	}
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", device, err)
	}
	conn, err := bound(device, reuse).ListenPacket(ctx, network, fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", device, err)
	}
	e := &endpoint{is4: is4, device: i, conn: conn.(*net.UDPConn)}
	if is4 {
		err = e.prepare4(groups)
	} else {
		err = e.prepare6(groups)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: %w", device, err)
	}
	return e, nil
}

// multicastTTL lets announcements of SSDP pass a router within a site (UDA 1.1, 1.2.2).
const multicastTTL = 2

func (e *endpoint) prepare4(groups []netip.Addr) error {
	e.v4 = ipv4.NewPacketConn(e.conn)
	err := errors.Join(e.v4.SetControlMessage(ipv4.FlagDst, true), e.v4.SetMulticastInterface(e.device),
		e.v4.SetMulticastTTL(multicastTTL), e.v4.SetMulticastLoopback(false))
	for _, g := range groups {
		err = errors.Join(err, e.v4.JoinGroup(e.device, net.UDPAddrFromAddrPort(netip.AddrPortFrom(g, 0))))
	}
	return err
}

func (e *endpoint) prepare6(groups []netip.Addr) error {
	e.v6 = ipv6.NewPacketConn(e.conn)
	err := errors.Join(e.v6.SetControlMessage(ipv6.FlagDst, true), e.v6.SetMulticastInterface(e.device),
		e.v6.SetMulticastHopLimit(multicastTTL), e.v6.SetMulticastLoopback(false))
	for _, g := range groups {
		err = errors.Join(err, e.v6.JoinGroup(e.device, net.UDPAddrFromAddrPort(netip.AddrPortFrom(g, 0))))
	}
	return err
}

// read waits for a datagram.
func (e *endpoint) read() (d datagram, err error) {
	b := make([]byte, mostDatagram)
	var n int
	var from net.Addr
	var to net.IP
	if e.is4 {
		var m *ipv4.ControlMessage
		if n, m, from, err = e.v4.ReadFrom(b); m != nil {
			to = m.Dst
		}
	} else {
		var m *ipv6.ControlMessage
		if n, m, from, err = e.v6.ReadFrom(b); m != nil {
			to = m.Dst
		}
	}
	if err != nil {
		return d, err
	}
	at := from.(*net.UDPAddr).AddrPort()
	d.data, d.from = b[:n], netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	d.to, _ = netip.AddrFromSlice(to)
	d.to = d.to.Unmap()
	return d, nil
}

// send sends from one of the box's addresses; if it is not valid, the kernel chooses.
func (e *endpoint) send(data []byte, from netip.Addr, to netip.AddrPort) error {
	var source net.IP
	if from.IsValid() {
		source = from.WithZone("").AsSlice()
	}
	if to.Addr().Is6() && to.Addr().Zone() == "" && (to.Addr().IsLinkLocalUnicast() || to.Addr().IsMulticast()) {
		to = netip.AddrPortFrom(to.Addr().WithZone(e.device.Name), to.Port())
	}
	var err error
	if e.is4 {
		_, err = e.v4.WriteTo(data, &ipv4.ControlMessage{Src: source}, net.UDPAddrFromAddrPort(to))
	} else {
		_, err = e.v6.WriteTo(data, &ipv6.ControlMessage{Src: source}, net.UDPAddrFromAddrPort(to))
	}
	return err
}

// serve handles datagrams until ctx ends, several at once. Those beyond are dropped: hosts
// ask again.
func (e *endpoint) serve(ctx context.Context, atOnce int, handle func(*datagram)) error {
	slots := make(chan struct{}, atOnce)
	for {
		d, err := e.read()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // an ICMP error, or the interface is down
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				handle(&d)
			}()
		default:
		}
	}
}
