package keeper

import (
	"net/netip"

	"weir/internal/host/netif"
	"weir/internal/vpn/tunnel"
)

// cards tells how many receive queues the cards have by which packets to peers leave. However many peers there are, it
// looks once at the interfaces, and once at each card: it is for one moment.
type cards struct {
	links  func() ([]netif.Link, error)
	way    func(netip.Addr) (int, error) // the interface that packets to an address leave by
	queues func(*netif.Link) int

	all    []netif.Link
	asked  bool // for them
	ways   map[netip.Addr]int
	counts map[int]int // of queues, by the index of their card
}

func newCards() *cards {
	return &cards{links: netif.Links, way: wayTo, queues: netif.Queues, ways: map[netip.Addr]int{}, counts: map[int]int{}}
}

func wayTo(to netip.Addr) (index int, err error) {
	index, _, err = netif.WayTo(to)
	return index, err
}

// indexTo returns the index of the interface that packets to a peer leave by; 0: no route leads there.
func (c *cards) indexTo(s *tunnel.State) int {
	if s.Interface != 0 {
		return s.Interface
	}
	to := s.Endpoint.Addr()
	index, ok := c.ways[to]
	if !ok {
		index, _ = c.way(to) // 0 says enough
		c.ways[to] = index
	}
	return index
}

// queuesTo returns how many receive queues there are below the interface that packets to a peer leave by; 0: unknown.
func (c *cards) queuesTo(s *tunnel.State) int {
	index := c.indexTo(s)
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
