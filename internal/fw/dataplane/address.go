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

// Kinds of source addresses of rejects: enum reject_source_kind of bpf/path/reject.h.
const (
	sourceIP4       = 4
	sourceIP6       = 6
	sourceLinkLocal = 10
)

// SetAddresses replaces the addresses of the box. A frame with one of them as its source
// is dropped. ICMP errors about blocked packets come from the interface's first address,
// or from the first of all.
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

// sourceKeys returns the keys under which an address may be the source of a reject.
func sourceKeys(a Address) []xdpRejectSourceKey {
	own := xdpRejectSourceKey{Ifindex: uint32(a.Ifindex), Kind: sourceIP6}
	switch {
	case a.Addr().IsLoopback():
		return nil
	case a.Addr().Is4():
		own.Kind = sourceIP4
	case a.Addr().IsLinkLocalUnicast():
		own.Kind = sourceLinkLocal
		return []xdpRejectSourceKey{own} // usable only on its own link
	}
	return []xdpRejectSourceKey{own, {Kind: own.Kind}}
}

// replaceAll makes a hash map hold exactly these entries. An entry that stays is never
// missing in between.
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
