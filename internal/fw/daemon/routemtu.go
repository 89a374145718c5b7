package daemon

import (
	"errors"
	"slices"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
)

const (
	// routeMTURounds is how often routes are read until none has changed meanwhile.
	routeMTURounds = 3
	// A full table has a million routes. If reading takes long, the rest afterwards is routeMTUShare times longer.
	routeMTULong  = 10 * time.Millisecond
	routeMTUShare = 10
)

// errLater says that a change is followed later.
var errLater = errors.New("routes change faster than they can be read")

// routeMTUs are the MTUs of routes, and who watches them.
type routeMTUs struct {
	watch   func([]netif.RouteMTU) (known bool) // nil in tests without any
	known   []netif.RouteMTU
	read    bool // known is
	inForce bool // known is, in the live dataplane
	rest    time.Time
}

// look reads the MTUs of routes. A change while they are read is an event, or they are read again.
func (r *routeMTUs) look() error {
	began := time.Now()
	if began.Before(r.rest) {
		return errLater
	}
	defer func() {
		if took := time.Since(began); took >= routeMTULong {
			r.rest = time.Now().Add(routeMTUShare * took)
		}
	}()
	for range routeMTURounds {
		all, err := netif.RouteMTUs()
		if err != nil {
			return err
		}
		r.inForce = r.inForce && slices.Equal(r.known, all)
		r.known, r.read = all, true
		if r.watch == nil || r.watch(all) {
			return nil
		}
	}
	return errLater
}

// followRouteMTUs tells a dataplane the MTUs of routes. With errLater it has to be called again.
func (b *box) followRouteMTUs(dp *dataplane.Dataplane, again bool) error {
	r := &b.routeMTUs
	var later error
	if again || !r.read {
		later = r.look()
		if later != nil && !errors.Is(later, errLater) {
			return later
		}
	}
	if dp == b.dp && r.inForce {
		return later
	}
	var all []dataplane.RouteMTU
	for _, r := range r.known {
		all = append(all, dataplane.RouteMTU{Network: r.Network, Ifindex: r.Link, Gateway: r.Gateway, MTU: r.MTU})
	}
	if err := dp.SetRouteMTUs(all); err != nil {
		return err
	}
	r.inForce = dp == b.dp
	return later
}
