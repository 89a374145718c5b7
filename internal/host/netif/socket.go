package netif

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Connection is a TCP connection of the machine, as its socket here has it.
type Connection struct {
	Local, Remote netip.AddrPort // IPv4-mapped addresses are IPv4
	Link          int            // index that the socket is bound to, as with link-local addresses; 0: none
	Accepted      bool           // a socket here listens on the local port: the remote end opened it
	Scaled        bool           // both ends scale their windows
	LocalScale    uint8          // of the windows that the local end announces
	RemoteScale   uint8
	LocalWindow   uint32 // about what the local end lets the other send, in bytes
	RemoteWindow  uint32 // what the remote end announced last, in bytes
	LocalClosed   bool   // the local end has sent its FIN
	RemoteClosed  bool   // the remote end has, and it was acknowledged
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

// Connections lists the TCP connections of the calling thread's network
// namespace over which data may still come or go.
func Connections() ([]Connection, error) {
	var all []Connection
	listening := make(map[uint16]bool)
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := dump(func() ([]*netlink.InetDiagTCPInfoResp, error) { return netlink.SocketDiagTCPInfo(family) })
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

// connectionOf is a socket's connection; not ok if it has none, or is done.
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
		// The library takes the two halves of the byte for each other.
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
