package inquiry

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/vpn/echo"
)

// How many small requests are sent, how many of each size, and how long each may be under way.
const (
	smallRequests = 3
	largeRequests = 2
	patience      = time.Second
	largePatience = 300 * time.Millisecond // at least: it is ten times what small ones took, if that is more
)

// Ask asks an address behind a tunnel for echoes: small ones, and if they come, packets of the
// interface's MTU and less. It leaves out what the engine counts.
func Ask(ctx context.Context, device string, to netip.Addr, mtu uint16) (p Probe, err error) {
	a, err := echo.Open(device, to)
	if err != nil {
		return p, err
	}
	defer a.Close()
	p.To, p.From = to, sourceOf(device, to)
	for range smallRequests {
		took, ok := a.Ask(ctx, leastPacket(to), patience)
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
			if _, ok := a.Ask(ctx, size, wait); ok {
				return true
			}
		}
		return false
	})
	return p, ctx.Err()
}

// sourceOf returns the address that packets to another one have when they leave by a device.
func sourceOf(device string, to netip.Addr) (from netip.Addr) {
	var failed error
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) { failed = unix.BindToDevice(int(fd), device) }), failed)
	}}
	c, err := d.Dial("udp", netip.AddrPortFrom(to, discard).String()) // nothing is sent
	if err != nil {
		return from
	}
	defer c.Close()
	if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
		from = a.AddrPort().Addr().Unmap().WithZone("")
	}
	return from
}

// discard is a port.
const discard = 9

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

func leastPacket(to netip.Addr) int { return echo.Headers(to) + 56 }

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
		all = append(all, Route{n, through(n)})
	}
	return all
}

// mostOwn is how many of the first addresses of a network may be this box's own.
const mostOwn = 4

// through returns the interface that packets to a network leave by; "": none. The first addresses may be those of the box itself:
// on a link of its own it has one, and a router that of the network as well (RFC 4291 2.6.1).
func through(n netip.Prefix) (name string) {
	for i, a := 0, n.Masked().Addr(); i < mostOwn && n.Contains(a); i, a = i+1, a.Next() {
		index, _, err := netif.WayTo(a)
		if err != nil { // none leads there, or a blackhole
			return ""
		}
		on, err := net.InterfaceByIndex(index)
		if err != nil {
			return ""
		}
		if name = on.Name; on.Flags&net.FlagLoopback == 0 {
			return name
		}
	}
	return name
}
