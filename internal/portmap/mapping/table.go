package mapping

import (
	"math/rand/v2"
	"net/netip"
	"slices"
)

// A Request asks for a mapping, or for more time.
type Request struct {
	By       Maker
	Protocol Protocol
	Internal netip.AddrPort
	External uint16 // that the client would like; 0: any
	Exactly  bool   // no other will do
	Lease    Lease
	Filters  []Filter
	Filtered bool // Filters replace those of an existing mapping
	Peer     bool // it is for the peers in Filters alone, unless the port is open for others already
	Pinhole  bool // it needs a number
}

// Add makes a mapping, or renews it. After an error the table is as before.
func (t *Table) Add(r *Request) (Mapping, error) {
	if len(r.Filters) > MostFilters {
		return Mapping{}, ErrFilters
	}
	if !mappable(r.Internal.Addr()) {
		return Mapping{}, ErrNotAllowed
	}
	m, known := t.find(r)
	if known {
		if l := m.Leases[r.By]; l != nil && l.Nonce != r.Lease.Nonce {
			return Mapping{}, ErrOthers
		}
		if r.Exactly && r.External != 0 && m.External != r.External {
			return Mapping{}, ErrTaken
		}
	} else {
		port, err := t.choose(r)
		if err != nil {
			return Mapping{}, err
		}
		m = Mapping{Protocol: r.Protocol, External: port, Internal: r.Internal}
	}
	if !t.Allowed(m.External, m.Internal) {
		return Mapping{}, ErrNotAllowed
	}
	if !known || r.Filtered {
		m.Filters, m.Peer = slices.Clone(r.Filters), r.Peer
	}
	if r.Pinhole && m.ID == 0 {
		m.ID = t.newID()
	}
	lease := r.Lease
	m.Leases[r.By] = &lease
	t.put(&m)
	return m, nil
}

// find finds the mapping that a request is about. UPnP names it by its external port, the
// others by the internal one.
func (t *Table) find(r *Request) (Mapping, bool) {
	if r.By == UPnP && r.External != 0 || r.Internal.Addr().Is6() {
		asked := Mapping{Protocol: r.Protocol, External: r.External, Internal: r.Internal}
		if r.Internal.Addr().Is6() {
			asked.External = r.Internal.Port()
		}
		m, ok := t.mappings[asked.key()]
		return m, ok && m.Internal == r.Internal
	}
	return t.Of(r.By, r.Protocol, r.Internal)
}

// Of returns a host's mapping for one of its ports: that of a maker if there is one, else
// the first of another.
func (t *Table) Of(by Maker, p Protocol, internal netip.AddrPort) (Mapping, bool) {
	var found Mapping
	ok := false
	for _, m := range t.All() {
		if m.Protocol != p || m.Internal != internal {
			continue
		}
		if m.Leases[by] != nil {
			return m, true
		}
		if !ok {
			found, ok = m, true
		}
	}
	return found, ok
}

// At returns the mapping of a port of the external address.
func (t *Table) At(p Protocol, external uint16) (Mapping, bool) {
	m, ok := t.mappings[key{p, netip.Addr{}, external}]
	return m, ok
}

// Pinhole returns the pinhole with a number.
func (t *Table) Pinhole(id uint16) (Mapping, bool) {
	for _, m := range t.mappings {
		if m.ID == id && id != 0 && m.Leases[UPnP] != nil {
			return m, true
		}
	}
	return Mapping{}, false
}

func (t *Table) newID() uint16 {
	for id := uint16(1); ; id++ { // there are fewer mappings than numbers
		if !slices.ContainsFunc(t.All(), func(m Mapping) bool { return m.ID == id }) {
			return id
		}
	}
}

// choose finds an external port for a new mapping.
func (t *Table) choose(r *Request) (uint16, error) {
	want := r.External
	if r.Internal.Addr().Is6() {
		if r.Exactly && want != 0 && want != r.Internal.Port() {
			return 0, ErrTaken
		}
		want = r.Internal.Port() // nothing is translated
	}
	if want != 0 && r.Exactly && !t.Allowed(want, r.Internal) {
		return 0, ErrNotAllowed
	}
	if err := t.room(r.Internal.Addr()); err != nil {
		return 0, err
	}
	if want != 0 && t.free(r, want) {
		return want, nil
	}
	if r.Exactly && want != 0 || r.Internal.Addr().Is6() {
		return 0, t.unless(want, r.Internal)
	}
	return t.another(r)
}

// unless returns why a port cannot be had.
func (t *Table) unless(port uint16, internal netip.AddrPort) error {
	if !t.Allowed(port, internal) {
		return ErrNotAllowed
	}
	return ErrTaken
}

// free reports whether a request may have a port. A port that another host has with the
// other protocol is not free (RFC 6886, 3.3).
func (t *Table) free(r *Request, port uint16) bool {
	m := Mapping{Protocol: r.Protocol, External: port, Internal: r.Internal}
	k := m.key()
	if _, taken := t.mappings[k]; taken || !t.Allowed(port, r.Internal) {
		return false
	}
	if r.Internal.Addr().Is6() {
		return true
	}
	k.protocol = TCP + UDP - k.protocol
	if other, ok := t.mappings[k]; ok && other.Internal.Addr() != r.Internal.Addr() {
		return false
	}
	return !t.Own(r.Protocol, port)
}

// another finds a free port: the internal one, the client's next ones, then random ones.
func (t *Table) another(r *Request) (uint16, error) {
	allowed := false
	try := func(port uint16) bool {
		if port == 0 || !t.Allowed(port, r.Internal) {
			return false
		}
		allowed = true
		return t.free(r, port)
	}
	if try(r.Internal.Port()) {
		return r.Internal.Port(), nil
	}
	first := uint16(rand.Uint32())
	for n := range 1 << 16 {
		if port := first + uint16(n); try(port) {
			return port, nil
		}
	}
	if !allowed {
		return 0, ErrNotAllowed
	}
	return 0, ErrFull
}

// Release ends the leases of a maker that a function chooses, and the mappings that have no
// other. It returns the mappings that had one.
func (t *Table) Release(by Maker, chosen func(*Mapping) bool) (had []Mapping) {
	for _, m := range t.All() {
		if m.Leases[by] == nil || !chosen(&m) {
			continue
		}
		had = append(had, m)
		m.Leases[by] = nil
		t.keepOrDrop(&m)
	}
	return had
}

func (t *Table) keepOrDrop(m *Mapping) {
	if slices.ContainsFunc(m.Leases[:], func(l *Lease) bool { return l != nil }) {
		t.put(m)
	} else {
		delete(t.mappings, m.key())
	}
}

// Expire ends the leases whose time is over, and returns the mappings that are gone.
func (t *Table) Expire(now int64) (gone []Mapping) {
	for _, m := range t.All() {
		before := m
		for i, l := range m.Leases {
			if !l.live(now) {
				m.Leases[i] = nil
			}
		}
		if m.Leases == before.Leases {
			continue
		}
		t.keepOrDrop(&m)
		if _, left := t.mappings[m.key()]; !left {
			gone = append(gone, before)
		}
	}
	return gone
}

// NextEnd returns when the next lease ends; 0 if none does.
func (t *Table) NextEnd() (next int64) {
	for _, m := range t.mappings {
		for _, l := range m.Leases {
			if l != nil && l.Ends != 0 && (next == 0 || l.Ends < next) {
				next = l.Ends
			}
		}
	}
	return next
}
