package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
)

// watchBuffer is the size of the socket's buffer in bytes. If events of a full table are lost, all routes are listed once more.
const watchBuffer = 1 << 20

// A Watch hears which routes change, so that those of tunnels need not be looked for among a million of others again and again. The zero
// Watch hears nothing: everything may have changed.
type Watch struct {
	socket *nl.NetlinkSocket

	mu      sync.Mutex
	deaf    bool                // Run has ended
	tunnels map[string]*watched // by the name of the interface
}

// watched is what is heard of a tunnel.
type watched struct {
	index    int
	networks []netip.Prefix
	changed  bool
}

// OpenWatch begins to hear.
func OpenWatch() (*Watch, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("listen to the kernel's events of routes: %w", err)
	}
	if err := s.SetReceiveBufferSize(watchBuffer, true); err != nil {
		s.Close()
		return nil, fmt.Errorf("size the buffer of events of routes: %w", err)
	}
	return &Watch{socket: s}, nil
}

// Close ends Run.
func (w *Watch) Close() { w.socket.Close() }

// Run hears until Close. If that fails, everything may have changed from then on.
func (w *Watch) Run() error {
	lossy := false // events are lost until the buffer has been emptied once, and the kernel says so once only
	for {
		messages, _, err := w.socket.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			w.all()
			lossy = true
			continue
		}
		if err != nil {
			w.mu.Lock()
			w.deaf = true
			w.mu.Unlock()
			return fmt.Errorf("hear events of routes: %w", err)
		}
		for i := range messages {
			w.hear(&messages[i])
		}
		if lossy && w.isEmpty() {
			w.all()
			lossy = false
		}
	}
}

// isEmpty reports whether no event waits.
func (w *Watch) isEmpty() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.socket.GetFd()), Events: unix.POLLIN}}, 0) //nolint:gosec // G115: it is a descriptor
	return n == 0 && err == nil
}

// all has everything be changed.
func (w *Watch) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tunnels {
		t.changed = true
	}
}

// Changed reports whether routes or blackholes of a tunnel may not be as they were when it was asked last. index is that of its interface.
func (w *Watch) Changed(tunnel string, index int, through Through) bool {
	if w == nil || w.socket == nil {
		return true
	}
	networks := slices.Clone(through.Networks)
	for _, h := range Blackholes(through) {
		networks = append(networks, h.To)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf {
		return true
	}
	if w.tunnels == nil {
		w.tunnels = map[string]*watched{}
	}
	t := w.tunnels[tunnel]
	if t != nil && !t.changed && t.index == index && slices.Equal(t.networks, networks) {
		return false
	}
	w.tunnels[tunnel] = &watched{index: index, networks: networks}
	return true
}

// Forget ends hearing of a tunnel.
func (w *Watch) Forget(tunnel string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tunnels, tunnel)
}

// hear notes which tunnels an event is about. The kernel tells of no route over IPv4 that it removes with its interface's addresses, or when
// that is set down.
func (w *Watch) hear(m *syscall.NetlinkMessage) {
	about := func(*watched) bool { return false }
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR: // struct ifinfomsg, struct ifaddrmsg
		if len(m.Data) < 8 {
			return
		}
		index := int(binary.NativeEndian.Uint32(m.Data[4:]))
		about = func(t *watched) bool { return t.index == index }
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		to, ok := networkOf(m.Data)
		if !ok {
			return
		}
		about = func(t *watched) bool { return slices.Contains(t.networks, to) }
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tunnels {
		if !t.changed && about(t) {
			t.changed = true
		}
	}
}

// networkOf returns the network of a message about a route.
func networkOf(m []byte) (netip.Prefix, bool) {
	if len(m) < unix.SizeofRtMsg {
		return netip.Prefix{}, false
	}
	for _, attribute := range netif.Pieces(m[unix.SizeofRtMsg:], unix.SizeofRtAttr) {
		if binary.NativeEndian.Uint16(attribute[2:]) == unix.RTA_DST {
			a, ok := netip.AddrFromSlice(attribute[unix.SizeofRtAttr:])
			return netip.PrefixFrom(a, int(m[1])), ok
		}
	}
	a := netip.IPv4Unspecified()
	if m[0] == unix.AF_INET6 {
		a = netip.IPv6Unspecified()
	}
	return netip.PrefixFrom(a, 0), m[1] == 0
}
