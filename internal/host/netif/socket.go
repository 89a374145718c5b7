package netif

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Connection is a TCP connection of the machine, with the state of its local socket.
type Connection struct {
	Local, Remote netip.AddrPort // IPv4-mapped addresses are IPv4
	Link          int            // index that the socket is bound to, as for link-local addresses; 0: none
	Accepted      bool           // a local socket listens on the local port: the remote end opened the connection
	Scaled        bool           // both ends scale their windows
	LocalScale    uint8          // scale of the local end's windows
	RemoteScale   uint8
	LocalWindow   uint32 // approximate window that the local end grants, in bytes
	RemoteWindow  uint32 // window that the remote end announced last, in bytes
	LocalClosed   bool   // the local end has sent its FIN
	RemoteClosed  bool   // the remote end has sent its FIN, and it was acknowledged
}

// States of a TCP socket (include/net/tcp_states.h).
const (
	tcpEstablished = 1
	tcpFinWait1    = 4
	tcpFinWait2    = 5
	tcpCloseWait   = 8
	tcpListen      = 10
)

// tcpiOptScale is TCPI_OPT_WSCALE of linux/tcp.h.
const tcpiOptScale = 4

// Connections lists the TCP connections of the calling thread's network namespace that
// may still carry data.
func Connections() ([]Connection, error) {
	var all []Connection
	listening := make(map[uint16]bool)
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := Dump(func() ([]*netlink.InetDiagTCPInfoResp, error) { return netlink.SocketDiagTCPInfo(family) })
		if errors.Is(err, unix.ENOENT) {
			return nil, fmt.Errorf("list TCP sockets: %w: the kernel has no CONFIG_INET_TCP_DIAG, or its module tcp_diag is missing", err)
		}
		if err != nil {
			return nil, fmt.Errorf("list TCP sockets: %w", err)
		}
		for _, s := range sockets {
			if s.InetDiagMsg.State == tcpListen {
				listening[s.InetDiagMsg.ID.SourcePort] = true
			}
			if c, ok := connectionOf(s); ok {
				all = append(all, c)
			}
		}
	}
	for i := range all {
		all[i].Accepted = listening[all[i].Local.Port()]
	}
	return all, nil
}

// connectionOf returns a socket's connection. ok is false if it has none, or the
// connection is finished.
func connectionOf(s *netlink.InetDiagTCPInfoResp) (Connection, bool) {
	id := &s.InetDiagMsg.ID
	local, ok := netip.AddrFromSlice(id.Source)
	remote, ok2 := netip.AddrFromSlice(id.Destination)
	if !ok || !ok2 || s.TCPInfo == nil {
		return Connection{}, false
	}
	c := Connection{
		Local: netip.AddrPortFrom(local.Unmap(), id.SourcePort), Remote: netip.AddrPortFrom(remote.Unmap(), id.DestinationPort),
		Link:   int(id.Interface),
		Scaled: s.TCPInfo.Options&tcpiOptScale != 0,
		// The library swaps the two halves of the byte.
		LocalScale: s.TCPInfo.Snd_wscale, RemoteScale: s.TCPInfo.Rcv_wscale,
		LocalWindow: s.TCPInfo.Rcv_ssthresh, RemoteWindow: s.TCPInfo.Snd_wnd,
	}
	switch s.InetDiagMsg.State {
	case tcpEstablished:
	case tcpFinWait1, tcpFinWait2:
		c.LocalClosed = true
	case tcpCloseWait:
		c.RemoteClosed = true
	default:
		return Connection{}, false
	}
	return c, true
}
