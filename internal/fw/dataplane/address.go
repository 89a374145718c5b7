package dataplane

import (
	"errors"
	"fmt"
	"net/netip"

	"go4.org/netipx"

	"weir/internal/fw/bpfload"
	"weir/internal/killpoint"
)

// An Address is one of the box's addresses, with its network and the index of its
// interface.
type Address struct {
	netip.Prefix
	Ifindex int
}

// Kinds of addresses that answers come from: enum reject_source_kind of bpf/path/reject.h.
const (
	sourceIP4       = 4
	sourceIP6       = 6
	sourceLinkLocal = 10
)

// SetAddresses replaces the addresses of the box: no frame may come in with one of
// them as its source, and ICMP errors about blocked packets come from the first of
// an interface, or of all.
func (d *Dataplane) SetAddresses(addresses []Address) error {
	owners := make(map[xdpAddr]uint32)
	sources := make(map[xdpRejectSourceKey]xdpAddr)
	broadcasts := make(map[xdpAddr]uint32)
	for _, a := range addresses {
		raw := rawAddr(a.Addr().WithZone(""))
		owners[raw] = uint32(a.Ifindex)
		for _, key := range sourceKeys(a) {
			if _, taken := sources[key]; !taken {
				sources[key] = raw
			}
		}
		if a.Addr().Is4() && a.Bits() < 31 {
			broadcasts[rawAddr(netipx.PrefixLastIP(a.Prefix))] = 1
		}
	}
	return errors.Join(
		replaceAll(d.tables, mapAddresses, owners),
		replaceAll(d.tables, mapRejectSources, sources),
		replaceAll(d.tables, mapBroadcasts, broadcasts),
	)
}

// sourceKeys are the keys under which an address may be an answer's source.
func sourceKeys(a Address) []xdpRejectSourceKey {
	own := xdpRejectSourceKey{Ifindex: uint32(a.Ifindex), Kind: sourceIP6}
	switch {
	case a.Addr().IsLoopback():
		return nil
	case a.Addr().Is4():
		own.Kind = sourceIP4
	case a.Addr().IsLinkLocalUnicast():
		own.Kind = sourceLinkLocal
		return []xdpRejectSourceKey{own} // of use on its link only
	}
	return []xdpRejectSourceKey{own, {Kind: own.Kind}}
}

// replaceAll makes a hash map hold just these entries. What stays is never missing.
func replaceAll[K comparable, V any](t *tables, name string, wanted map[K]V) error {
	m := t.maps[name]
	stale := make(map[K]bool)
	var key K
	var value V
	all := m.Iterate()
	for all.Next(&key, &value) {
		stale[key] = true
	}
	if err := all.Err(); err != nil {
		return fmt.Errorf("list the entries of %s: %w", name, err)
	}
	for key, value := range wanted {
		delete(stale, key)
		if err := m.Put(&key, &value); err != nil {
			return fmt.Errorf("add to %s: %w", name, err)
		}
		killpoint.Done("add to %s", name)
	}
	for key := range stale {
		if err := m.Delete(&key); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
			return fmt.Errorf("remove from %s: %w", name, err)
		}
		killpoint.Done("remove from %s", name)
	}
	return nil
}
