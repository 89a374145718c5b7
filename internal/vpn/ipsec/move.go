package ipsec

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"weir/internal/host/netif"
)

// A way is by which link packets to a host leave, and with which address.
type way struct {
	link   int
	source netip.Addr
}

func wayTo(host netip.Addr) (w way, err error) {
	w.link, w.source, err = netif.SourceTo(host)
	return w, err
}

// endStranded ends what is up from an address that this machine has no more, as after a new address from
// the provider: without MOBIKE it cannot move, and the peer would be silent until somebody asks.
func (c *Charon) endStranded(ctx context.Context, s *State) error {
	if len(s.SAs) == 0 {
		return nil
	}
	own, err := c.own()
	if err != nil {
		return nil // the next look has them, or the peer's silence tells
	}
	return c.endThose(ctx, s, func(local, _ netip.Addr) bool { return !slices.Contains(own, local) })
}

// endMoved ends what is up from an address of another link than the routes to the peer have now, as after a change to
// another uplink. It may be that the packets leave there from the wrong address, or not at all. It ends nothing that the
// routes did not lead by before: rules for addresses may lead it, or the peer has chosen the address. A tunnel
// that this end does not begin, and one with an address of its own (local), stay.
func (c *Charon) endMoved(ctx context.Context, t *memory, s *State) error {
	before := t.links
	t.links = map[netip.Addr]int{}
	if t.of.Peer == "" || t.of.Passive || t.of.Local != "" {
		return nil
	}
	return c.endThose(ctx, s, func(local, remote netip.Addr) bool {
		link, known := before[local]
		now, err := c.way(remote)
		switch {
		case err == nil && now.source == local:
			t.links[local] = now.link
		case err == nil && known && now.link != link && now.source.IsValid():
			return true
		case known: // without a route it comes back, perhaps
			t.links[local] = link
		}
		return false
	})
}

// endThose ends IKE_SAs by where their ends are.
func (c *Charon) endThose(ctx context.Context, s *State, ends func(local, remote netip.Addr) bool) error {
	var errs []error
	s.SAs = slices.DeleteFunc(s.SAs, func(i IKE) bool {
		local, err := netip.ParseAddrPort(i.Local)
		remote, err2 := netip.ParseAddrPort(i.Remote)
		if err != nil || err2 != nil || local.Addr().IsUnspecified() || !ends(local.Addr().WithZone(""), remote.Addr()) {
			return false
		}
		_, err = c.client.call(ctx, "terminate", section{{"ike-id", i.ID}, {"force", "yes"}, {"timeout", "-1"}})
		if r := (*refusal)(nil); !errors.As(err, &r) {
			errs = append(errs, err)
		}
		return true
	})
	return errors.Join(errs...)
}
