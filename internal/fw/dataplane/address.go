package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"
	"golang.org/x/sys/unix"

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
// or from the first of all. The error wraps an *AddressesError if there are too many. The
// others are in force then.
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
	return noRoom(
		replaceAll(d.tables, mapAddresses, owners),
		replaceAll(d.tables, mapRejectSources, sources),
		replaceAll(d.tables, mapBroadcasts, broadcasts),
	)
}

// An AddressesError says that a table of addresses is full. Everything else is as if the
// rest of the addresses did not exist.
type AddressesError struct {
	Table string
	Room  uint32 // how many it holds
	Left  int    // how many more there are
}

func (e *AddressesError) Error() string {
	return fmt.Sprintf("the table of %s has room for %d, %d are left out", e.Table, e.Room, e.Left)
}

// noRoom returns the first error that is no AddressesError. If there is none, it returns an
// AddressesError, or nil.
func noRoom(errs ...error) error {
	var full *AddressesError
	for _, err := range errs {
		if err != nil && !errors.As(err, &full) {
			return err
		}
	}
	if full != nil {
		return full
	}
	return nil
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
// missing in between. The error is an *AddressesError if not all of them fit. Those that
// the map had before come first.
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
	left := make(map[K]V)
	for key, value := range wanted {
		delete(stale, key)
		err := m.Put(&key, &value)
		if errors.Is(err, unix.E2BIG) {
			left[key] = value // stale entries may take its place
			continue
		}
		if err != nil {
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
	return addLeft(m, name, left)
}

// addLeft adds entries that had no room before.
func addLeft[K comparable, V any](m *bpfload.Map, name string, left map[K]V) error {
	count := len(left)
	for key, value := range left {
		err := m.Put(&key, &value)
		if errors.Is(err, unix.E2BIG) {
			return &AddressesError{Table: strings.ReplaceAll(name, "_", " "), Room: m.MaxEntries(), Left: count}
		}
		if err != nil {
			return fmt.Errorf("add to %s: %w", name, err)
		}
		killpoint.Done("add to %s", name)
		count--
	}
	return nil
}
