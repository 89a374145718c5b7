package echo

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"weir/internal/host/ping"
)

// Bytes of the headers of an echo request.
const (
	headers4 = 20 + 8
	headers6 = 40 + 8
)

// Headers returns how long the headers of an echo request to an address are.
func Headers(to netip.Addr) int {
	if to.Is4() {
		return headers4
	}
	return headers6
}

// An Asker sends echo requests to an address through an interface.
type Asker struct {
	conn *icmp.PacketConn
	to   netip.Addr
	id   uint16
	seq  uint16
	came chan uint16
}

// Open returns an asker, which has to be closed.
func Open(device string, to netip.Addr) (*Asker, error) {
	conn, err := ping.Listen(to.Is6(), device)
	if err != nil {
		return nil, err
	}
	a := &Asker{conn: conn, to: to, id: uint16(rand.Uint32()), came: make(chan uint16, 16)} //nolint:gosec // to tell answers apart
	if err := a.whole(); err != nil {
		conn.Close()
		return nil, err
	}
	go ping.Receive(conn, func(from *net.IPAddr, body icmp.MessageBody) {
		echo, ok := body.(*icmp.Echo)
		at, _ := netip.AddrFromSlice(from.IP)
		if ok && at.Unmap() == to && echo.ID == int(a.id) {
			select {
			case a.came <- uint16(echo.Seq):
			default: // nobody waits for that many
			}
		}
	})
	return a, nil
}

// Close ends it.
func (a *Asker) Close() error { return a.conn.Close() }

// whole has the kernel send packets whole or not at all, whatever it knows of the path.
func (a *Asker) whole() error {
	var c net.PacketConn
	level, option := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER
	if c4 := a.conn.IPv4PacketConn(); c4 != nil {
		c = c4.PacketConn
	} else if c6 := a.conn.IPv6PacketConn(); c6 != nil {
		c, level, option = c6.PacketConn, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return errors.New("the socket for pings has no options")
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), level, option, unix.IP_PMTUDISC_PROBE) })
	return errors.Join(err, failed)
}

// Ask sends one request of a size, and waits for the answer.
func (a *Asker) Ask(ctx context.Context, size int, patience time.Duration) (took time.Duration, ok bool) {
	a.seq++
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: int(a.id), Seq: int(a.seq), Data: make([]byte, size-Headers(a.to))}}
	if a.to.Is6() {
		m.Type = ipv6.ICMPTypeEchoRequest
	}
	b, err := m.Marshal(nil) // the kernel computes the checksum of ICMPv6
	if err != nil {
		return 0, false
	}
	began := time.Now()
	if _, err := a.conn.WriteTo(b, &net.IPAddr{IP: a.to.AsSlice()}); err != nil {
		return 0, false // too long for the interface, or blocked
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case seq := <-a.came:
			if seq == a.seq {
				return time.Since(began), true
			}
		case <-late.C:
			return 0, false
		case <-ctx.Done():
			return 0, false
		}
	}
}
