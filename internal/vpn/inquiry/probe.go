package inquiry

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

	"weir/internal/host/netif"
	"weir/internal/host/ping"
)

// How many small requests are sent, how many of each size, and how long each may be under way.
const (
	smallRequests = 3
	largeRequests = 2
	patience      = time.Second
	largePatience = 300 * time.Millisecond // at least: it is ten times what small ones took, if that is more
)

// A prober sends echo requests through an interface, which no router may cut into pieces.
type prober struct {
	conn *icmp.PacketConn
	to   netip.Addr
	id   uint16
	seq  uint16
	came chan uint16
}

// Ask asks an address behind a tunnel for echoes: small ones, and if they come, packets of the
// interface's MTU and less. It leaves out what the engine counts.
func Ask(ctx context.Context, device string, to netip.Addr, mtu uint16) (p Probe, err error) {
	a, err := open(device, to)
	if err != nil {
		return p, err
	}
	defer a.conn.Close()
	p.To = to
	for range smallRequests {
		took, ok := a.ask(ctx, leastPacket(to), patience)
		p.Sent++
		if ok {
			p.Answered++
			if p.RTT == 0 || took < p.RTT {
				p.RTT = took
			}
		}
	}
	if p.Answered == 0 {
		return p, ctx.Err()
	}
	wait := min(max(largePatience, 10*p.RTT), patience)
	p.Largest = largest(int(mtu), leastPacket(to), func(size int) bool {
		for range largeRequests {
			if _, ok := a.ask(ctx, size, wait); ok {
				return true
			}
		}
		return false
	})
	return p, ctx.Err()
}

// largest returns the largest size up to most that goes, where least does.
func largest(most, least int, goes func(size int) bool) int {
	if goes(most) {
		return most
	}
	for most-least > 1 {
		if middle := (most + least) / 2; goes(middle) {
			least = middle
		} else {
			most = middle
		}
	}
	return least
}

// Bytes of the headers of an echo request.
const (
	echoHeaders4 = 20 + 8
	echoHeaders6 = 40 + 8
)

func headers(to netip.Addr) int {
	if to.Is4() {
		return echoHeaders4
	}
	return echoHeaders6
}

func leastPacket(to netip.Addr) int { return headers(to) + 56 }

func open(device string, to netip.Addr) (*prober, error) {
	conn, err := ping.Listen(to.Is6(), device)
	if err != nil {
		return nil, err
	}
	a := &prober{conn: conn, to: to, id: uint16(rand.Uint32()), came: make(chan uint16, 16)} //nolint:gosec // to tell answers apart
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

// whole has the kernel send packets whole or not at all, whatever it knows of the path.
func (a *prober) whole() error {
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

// ask sends one request of a size, and waits for the answer.
func (a *prober) ask(ctx context.Context, size int, patience time.Duration) (took time.Duration, ok bool) {
	a.seq++
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: int(a.id), Seq: int(a.seq), Data: make([]byte, size-headers(a.to))}}
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

// Targets returns the addresses behind a peer that are known: hosts among its networks.
func Targets(allowed []netip.Prefix) (all []netip.Addr) {
	for _, a := range allowed {
		if a.IsSingleIP() {
			all = append(all, a.Addr())
		}
	}
	return all
}

// Through returns where the routes to networks lead.
func Through(networks []netip.Prefix) (all []Route) {
	for _, n := range networks {
		r := Route{Network: n}
		if index, _, err := netif.WayTo(n.Addr()); err == nil { // otherwise none leads there, or a blackhole
			if i, err := net.InterfaceByIndex(index); err == nil {
				r.Through = i.Name
			}
		}
		all = append(all, r)
	}
	return all
}
