// Package ping receives the answers to ICMP probes.
package ping

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// Listen opens a socket that receives answers to echo requests, and of IPv4 those to requests for
// the time (RFC 792). It is bound to a device if there is one.
func Listen(v6 bool, device string) (*icmp.PacketConn, error) {
	network, any := "ip4:icmp", "0.0.0.0"
	if v6 {
		network, any = "ip6:ipv6-icmp", "::"
	}
	c, err := icmp.ListenPacket(network, any)
	if err == nil {
		if err = restrict(c, device); err != nil {
			c.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open a socket for pings: %w", err)
	}
	return c, nil
}

// restrict lets only answers through, and only those that come in by a device.
func restrict(c *icmp.PacketConn, device string) error {
	var raw syscall.Conn
	if c4 := c.IPv4PacketConn(); c4 != nil {
		var only ipv4.ICMPFilter
		only.SetAll(true)
		only.Accept(ipv4.ICMPTypeEchoReply)
		only.Accept(ipv4.ICMPTypeTimestampReply)
		if err := c4.SetICMPFilter(&only); err != nil {
			return err
		}
		raw, _ = c4.PacketConn.(syscall.Conn)
	} else if c6 := c.IPv6PacketConn(); c6 != nil {
		var only ipv6.ICMPFilter
		only.SetAll(true)
		only.Accept(ipv6.ICMPTypeEchoReply)
		if err := c6.SetICMPFilter(&only); err != nil {
			return err
		}
		raw, _ = c6.PacketConn.(syscall.Conn)
	}
	switch {
	case device == "":
		return nil
	case raw == nil:
		return errors.New("it cannot be bound to a device")
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = control.Control(func(fd uintptr) { failed = unix.BindToDevice(int(fd), device) })
	return errors.Join(err, failed)
}

// Receive calls answered with each answer, until the socket is closed. What is no ICMP is left out.
func Receive(c *icmp.PacketConn, answered func(from *net.IPAddr, body icmp.MessageBody)) {
	protocol := unix.IPPROTO_ICMP
	if c.IPv6PacketConn() != nil {
		protocol = unix.IPPROTO_ICMPV6
	}
	buffer := make([]byte, 512)
	for {
		n, from, err := c.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // the network is down for a moment
			continue
		}
		if m, err := icmp.ParseMessage(protocol, buffer[:n]); err == nil {
			if addr, ok := from.(*net.IPAddr); ok {
				answered(addr, m.Body)
			}
		}
	}
}
