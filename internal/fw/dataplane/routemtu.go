package dataplane

import (
	"errors"
	"fmt"
	"net/netip"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/killpoint"
)

// routeMTUsAt is ROUTE_MTUS of bpf/rules/prefix_map.h: where in table_changes their map is.
const routeMTUsAt = 2

// A RouteMTU is the MTU of a route that is not locked, so that the kernel's look-up does not tell it.
type RouteMTU struct {
	Network netip.Prefix
	Ifindex int
	Gateway netip.Addr // not valid: hosts of the network are on the link
	MTU     uint32
}

// entry returns the route as the programs look for it (route_mtu_own in bpf/route/route.h).
func (r *RouteMTU) entry() tablePrefix {
	key := rawPrefix(&ruleset.Override{Prefix: r.Network})
	var gateway xdpAddr
	if r.Gateway.IsValid() {
		gateway = rawAddr(r.Gateway)
	}
	key.Family = 0
	for _, w := range gateway.Word {
		key.Family = (key.Family + w) * 31
	}
	key.Family += uint32(r.Ifindex)
	key.Family *= 31
	if r.Network.Addr().Is4() {
		key.Family += 4
	} else {
		key.Family += 6
	}
	return key
}

// routeMTUs returns what the map has. Of routes that the programs cannot tell apart, in several tables, the least
// counts. If there are more than room, each counts for all that leads the same way.
func routeMTUs(all []RouteMTU, room uint32) map[tablePrefix]uint32 {
	entries := make(map[tablePrefix]uint32)
	enter := func(key tablePrefix, mtu uint32) {
		if is, ok := entries[key]; !ok || mtu < is {
			entries[key] = mtu
		}
	}
	for i := range all {
		enter(all[i].entry(), all[i].MTU)
	}
	if len(entries) > int(room) {
		clear(entries)
		for i := range all {
			every := all[i]
			every.Network = netip.PrefixFrom(every.Network.Addr(), 0).Masked()
			enter(every.entry(), every.MTU)
		}
	}
	return entries
}

// SetRouteMTUs tells which routes have an MTU of their own. Packets that are longer go to the stack, which answers or cuts
// them. Without any the programs look for none.
func (d *Dataplane) SetRouteMTUs(all []RouteMTU) error {
	return d.place.Do(func() error {
		defer d.BumpRoutes()
		outer := d.objects.Maps[mapTableChanges]
		if len(all) == 0 {
			if err := outer.Delete(uint32(routeMTUsAt)); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
				return fmt.Errorf("forget the MTUs of routes: %w", err)
			}
			return nil
		}
		m, err := d.objects.NewInner(mapTableChanges)
		if err != nil {
			return err
		}
		defer m.Close()
		for key, mtu := range routeMTUs(all, m.MaxEntries()) {
			if err := m.Put(key, mtu); err != nil {
				return fmt.Errorf("enter the MTU of a route: %w", err)
			}
		}
		if err := outer.Put(uint32(routeMTUsAt), m); err != nil {
			return fmt.Errorf("put the MTUs of routes in force: %w", err)
		}
		killpoint.Done("set the MTUs of routes")
		return nil
	})
}
