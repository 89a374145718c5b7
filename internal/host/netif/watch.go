package netif

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Change says what changed in the namespace. For details, list it again.
type Change uint8

// Changes, as bits.
const (
	ChangedLinks Change = 1 << iota
	ChangedAddresses
	ChangedRoutes     // a route, or a rule of ip rule that chooses one
	ChangedDefault    // a default route, so perhaps the group egress
	ChangedNeighbours // a new link-layer address, or none any more
	ChangedQueues     // a qdisc, or a class or a filter of one
	ChangedRouteMTUs  // a route that has an MTU of its own, or had one (WatchRouteMTUs)

	ChangedAll = ChangedLinks | ChangedAddresses | ChangedRoutes | ChangedDefault | ChangedNeighbours | ChangedQueues | ChangedRouteMTUs
)

// watchBuffer is the size of the socket's buffer in bytes. A flap of a full table is 200
// MB of messages. If some are lost, everything is listed again.
const watchBuffer = 1 << 20

// Watcher receives the kernel's events of links, addresses, routes, routing rules,
// neighbours and qdiscs.
type Watcher struct {
	socket     *nl.NetlinkSocket
	neighbours map[Neighbour]string

	mu       sync.Mutex
	networks map[netip.Prefix]bool // of the routes that have an MTU of their own
}

// Watch starts to listen. No later event is lost: if the kernel could not deliver some,
// everything is reported as changed.
func Watch() (*Watcher, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
		unix.RTNLGRP_NEIGH, unix.RTNLGRP_TC)
	if err != nil {
		return nil, fmt.Errorf("listen to the kernel's network events: %w", err)
	}
	if err := s.SetReceiveBufferSize(watchBuffer, true); err != nil {
		s.Close()
		return nil, fmt.Errorf("size the buffer of network events: %w", err)
	}
	return &Watcher{socket: s, neighbours: make(map[Neighbour]string)}, nil
}

// Close ends a waiting Next.
func (w *Watcher) Close() { w.socket.Close() }

// Next waits for events and returns what changed; 0 for events that change nothing here.
// It fails only if the watcher is closed or the socket breaks.
func (w *Watcher) Next() (Change, error) {
	messages, _, err := w.socket.Receive()
	if errors.Is(err, unix.ENOBUFS) {
		clear(w.neighbours)
		return ChangedAll, nil
	}
	if err != nil {
		return 0, fmt.Errorf("hear network events: %w", err)
	}
	var c Change
	for _, m := range messages {
		c |= w.change(&m)
	}
	return c, nil
}

func (w *Watcher) change(m *syscall.NetlinkMessage) Change {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return ChangedLinks
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return ChangedAddresses
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		c := ChangedRoutes
		if len(m.Data) > 1 && m.Data[1] == 0 { // rtmsg.rtm_dst_len
			c |= ChangedDefault
		}
		if w.changesMTU(m.Data) {
			c |= ChangedRouteMTUs
		}
		return c
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return ChangedRoutes
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC, unix.RTM_DELTCLASS, unix.RTM_DELTFILTER:
		return ChangedQueues
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return w.neighbourChange(m)
	}
	return 0
}

// neighbourChange finds new link-layer addresses among the many events that only move a
// neighbour between reachable and stale.
func (w *Watcher) neighbourChange(m *syscall.NetlinkMessage) Change {
	n, err := netlink.NeighDeserialize(m.Data)
	if err != nil {
		return ChangedNeighbours
	}
	ip, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return 0 // a bridge's forwarding entry
	}
	key := Neighbour{n.LinkIndex, ip.Unmap()}
	before, known := w.neighbours[key]
	if m.Header.Type == unix.RTM_DELNEIGH || n.State&(unix.NUD_FAILED|unix.NUD_INCOMPLETE) != 0 {
		delete(w.neighbours, key)
		if known {
			return ChangedNeighbours
		}
		return 0
	}
	w.neighbours[key] = string(n.HardwareAddr)
	if known && before == string(n.HardwareAddr) {
		return 0
	}
	return ChangedNeighbours
}
