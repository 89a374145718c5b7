package daemon

import (
	"slices"

	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
)

// routeMTUs are the MTUs of routes, and who watches them.
type routeMTUs struct {
	watch func([]netif.RouteMTU) (known bool) // nil in tests without any
	known []netif.RouteMTU
	read  bool // known is
}

// look reads the MTUs of routes. A change while they are read is an event, or they are read again.
func (r *routeMTUs) look() error {
	for {
		all, err := netif.RouteMTUs()
		if err != nil {
			return err
		}
		r.known, r.read = all, true
		if r.watch == nil || r.watch(all) {
			return nil
		}
	}
}

// followRouteMTUs tells a dataplane the MTUs of routes.
func (b *box) followRouteMTUs(dp *dataplane.Dataplane, again bool) error {
	before := slices.Clone(b.routeMTUs.known)
	if again || !b.routeMTUs.read {
		if err := b.routeMTUs.look(); err != nil {
			return err
		}
		if dp == b.dp && slices.Equal(before, b.routeMTUs.known) {
			return nil
		}
	}
	var all []dataplane.RouteMTU
	for _, r := range b.routeMTUs.known {
		all = append(all, dataplane.RouteMTU{Network: r.Network, Ifindex: r.Link, Gateway: r.Gateway, MTU: r.MTU})
	}
	return dp.SetRouteMTUs(all)
}
