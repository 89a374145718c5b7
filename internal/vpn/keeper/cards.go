package keeper

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/vpn/tunnel"
)

// cards tells how many receive queues the cards have by which packets to peers leave. However many peers there are, it
// looks once at the interfaces, and once at each card: it is for one moment.
type cards struct {
	links  func() ([]netif.Link, error)
	way    func(netif.Flow) (netif.Way, error)
	queues func(*netif.Link) int

	all    []netif.Link
	asked  bool // for them
	ways   map[netif.Flow]int
	counts map[int]int // of queues, by the index of their card
}

func newCards() *cards {
	return &cards{links: netif.Links, way: netif.WayOf, queues: netif.Queues, ways: map[netif.Flow]int{}, counts: map[int]int{}}
}

// flowTo is the packets to a peer of a tunnel that listens on a port.
func flowTo(s *tunnel.State, port uint16) netif.Flow {
	return netif.Flow{Protocol: unix.IPPROTO_UDP, From: netip.AddrPortFrom(s.Local, port), To: s.Endpoint, Out: s.Interface, Mark: s.Mark}
}

// indexTo returns the index of the interface that packets to a peer of a tunnel with a port leave by; 0: no route leads
// there.
func (c *cards) indexTo(s *tunnel.State, port uint16) int {
	if s.Interface != 0 {
		return s.Interface
	}
	f := flowTo(s, port)
	index, ok := c.ways[f]
	if !ok {
		w, _ := c.way(f) // 0 says enough
		index = w.Link
		c.ways[f] = index
	}
	return index
}

// queuesTo returns how many receive queues there are below the interface that packets to a peer leave by; 0: unknown.
func (c *cards) queuesTo(s *tunnel.State, port uint16) int {
	index := c.indexTo(s, port)
	if !c.asked {
		c.asked = true
		c.all, _ = c.links() // with none, nothing is known
	}
	return c.below(index, len(c.all))
}

// below returns how many receive queues are below an interface: below VLANs, and of the members of a group of links.
// depth is how far down it looks.
func (c *cards) below(index, depth int) (n int) {
	if depth == 0 {
		return 0
	}
	var is *netif.Link
	for i := range c.all {
		if c.all[i].Index == index {
			is = &c.all[i]
		}
	}
	switch {
	case is == nil:
		return 0
	case is.Parent != 0:
		return c.below(is.Parent, depth-1)
	case is.Kind == netif.Bond, is.Kind == netif.Team, is.Kind == netif.Bridge:
		for i := range c.all {
			if c.all[i].Master == index {
				n += c.below(c.all[i].Index, depth-1)
			}
		}
		return n
	}
	n, ok := c.counts[index]
	if !ok {
		n = c.queues(is)
		c.counts[index] = n
	}
	return n
}
