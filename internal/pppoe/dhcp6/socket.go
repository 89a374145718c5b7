package dhcp6

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ports of DHCPv6 (RFC 8415 7.2).
const (
	ClientPort = 546
	ServerPort = 547
)

// servers is the group of all servers and relays of a link (RFC 8415 7.1).
var servers = netip.MustParseAddr("ff02::1:2")

// Socket sends and receives on an interface.
type Socket struct {
	conn  *net.UDPConn
	index int
}

// Open opens a socket on an interface, in the calling thread's network namespace. From is the
// interface's link-local address, which it has to have.
func Open(name string, from netip.Addr) (*Socket, error) {
	nic, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	bind := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) {
			err = errors.Join(
				unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, name),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
			)
		}), err)
	}}
	conn, err := bind.ListenPacket(context.Background(), "udp6", fmt.Sprintf("[%s%%%s]:%d", from, name, ClientPort))
	if err != nil {
		return nil, fmt.Errorf("open a socket for DHCPv6 on %s: %w", name, err)
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("open a socket for DHCPv6 on %s: not UDP", name), conn.Close())
	}
	return &Socket{udp, nic.Index}, nil
}

// Send sends a message to all servers of the link.
func (s *Socket) Send(b []byte) error {
	_, err := s.conn.WriteToUDPAddrPort(b, netip.AddrPortFrom(servers.WithZone(fmt.Sprint(s.index)), ServerPort))
	return err
}

// Receive waits for a message. The error is net.ErrClosed after Close.
func (s *Socket) Receive() ([]byte, error) {
	b := make([]byte, 1<<16)
	n, _, err := s.conn.ReadFromUDPAddrPort(b)
	return b[:n], err
}

// Close closes the socket.
func (s *Socket) Close() error { return s.conn.Close() }
