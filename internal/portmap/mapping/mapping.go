package mapping

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
)

// Protocol is a number of IP.
type Protocol uint8

// Protocols that can be mapped.
const (
	TCP Protocol = 6
	UDP Protocol = 17
)

func (p Protocol) String() string {
	if p == TCP {
		return "tcp"
	}
	return "udp"
}

// A Maker is a protocol that mappings are asked for by. NAT-PMP and PCP are one: a client
// may change between them (RFC 6887, appendix A).
type Maker uint8

// Makers.
const (
	UPnP Maker = iota
	PCP
	makers
)

// A Lease is what one maker has been granted. It is never changed, only replaced.
type Lease struct {
	Ends        int64    `json:"ends,omitempty"` // second since boot; 0: never
	Nonce       [12]byte `json:"nonce"`          // PCP's, which a renewal must repeat; NAT-PMP has none
	Description string   `json:"description,omitempty"`
}

func (l *Lease) live(now int64) bool { return l != nil && (l.Ends == 0 || l.Ends > now) }

// Left returns the seconds that a lease still has; 0 if it never ends.
func (l *Lease) Left(now int64) uint32 {
	if l.Ends == 0 {
		return 0
	}
	return uint32(max(l.Ends-now, 0))
}

// A Filter says who may come through a mapping.
type Filter struct {
	From netip.Prefix `json:"from"`
	Port uint16       `json:"port,omitempty"` // 0: any
}

// A Mapping is an open port. It lives as long as one of its leases.
type Mapping struct {
	Protocol Protocol       `json:"protocol"`
	External uint16         `json:"external"` // of IPv6: the port of Internal
	Internal netip.AddrPort `json:"internal"`
	Filters  []Filter       `json:"filters,omitempty"` // none: anybody may come
	Peer     bool           `json:"peer,omitempty"`    // its filters are the peers of PCP's PEER
	ID       uint16         `json:"id,omitempty"`      // of a pinhole of UPnP
	Leases   [makers]*Lease `json:"leases"`
}

// Left returns the seconds until its last lease ends.
func (m *Mapping) Left(now int64) (left uint32) {
	for _, l := range m.Leases {
		switch {
		case l == nil:
		case l.Ends == 0:
			return 1<<32 - 1
		default:
			left = max(left, l.Left(now))
		}
	}
	return left
}

// key is what no two mappings share: a port of the external address, or of an IPv6 host.
type key struct {
	protocol Protocol
	host     netip.Addr // not valid for IPv4
	port     uint16
}

func (m *Mapping) key() key {
	if m.Internal.Addr().Is6() {
		return key{m.Protocol, m.Internal.Addr(), m.External}
	}
	return key{m.Protocol, netip.Addr{}, m.External}
}

func (k key) less(other key) int {
	return cmp.Or(k.host.Compare(other.host), cmp.Compare(k.port, other.port), cmp.Compare(k.protocol, other.protocol))
}

// Errors of requests.
var (
	ErrNotAllowed = errors.New("the permissions do not allow it")
	ErrTaken      = errors.New("the external port is taken")
	ErrFull       = errors.New("there are as many mappings as may be")
	ErrQuota      = errors.New("the host has as many mappings as it may")
	ErrOthers     = errors.New("the mapping belongs to another")
	ErrNone       = errors.New("there is no such mapping")
	ErrFilters    = errors.New("too many filters")
)

// MostFilters is how many filters a mapping may have: each is a rule.
const MostFilters = 8

// Limits bound a table.
type Limits struct {
	All  int // mappings
	Host int // mappings of one host
}

// A Table is all mappings. The functions are parameters of the configuration.
type Table struct {
	Limits
	Allowed func(external uint16, internal netip.AddrPort) bool
	Own     func(p Protocol, port uint16) bool // the box uses the port itself, or its rules send it on

	mappings map[key]Mapping
}

// Clone returns a copy, which can be changed alone.
func (t *Table) Clone() *Table {
	c := *t
	c.mappings = make(map[key]Mapping, len(t.mappings))
	for k, m := range t.mappings {
		c.mappings[k] = m
	}
	return &c
}

// All returns the mappings in a fixed order.
func (t *Table) All() []Mapping {
	keys := make([]key, 0, len(t.mappings))
	for k := range t.mappings {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.less)
	all := make([]Mapping, 0, len(keys))
	for _, k := range keys {
		all = append(all, t.mappings[k])
	}
	return all
}

// Restore replaces the mappings by those of a state file. What the configuration no longer
// allows is left out.
func (t *Table) Restore(all []Mapping) (left []Mapping) {
	t.mappings = make(map[key]Mapping, len(all))
	for i := range all {
		m := &all[i]
		if !m.valid() || !t.Allowed(m.External, m.Internal) || t.room(m.Internal.Addr()) != nil {
			left = append(left, *m)
			continue
		}
		t.put(m)
	}
	return left
}

// valid reports whether a mapping can be opened; it is for what comes from a file.
func (m *Mapping) valid() bool {
	a := m.Internal.Addr()
	return (m.Protocol == TCP || m.Protocol == UDP) && m.External != 0 && m.Internal.Port() != 0 && mappable(a) &&
		(a.Is4() || m.External == m.Internal.Port()) && len(m.Filters) <= MostFilters
}

// mappable reports whether an address is one that others can reach a host by.
func mappable(a netip.Addr) bool { return a.IsGlobalUnicast() && !a.Is4In6() && a.Zone() == "" }

func (t *Table) put(m *Mapping) {
	if t.mappings == nil {
		t.mappings = make(map[key]Mapping)
	}
	t.mappings[m.key()] = *m
}

// room returns why a host can have no further mapping.
func (t *Table) room(host netip.Addr) error {
	if len(t.mappings) >= t.Limits.All {
		return ErrFull
	}
	n := 0
	for _, m := range t.mappings {
		if m.Internal.Addr() == host {
			n++
		}
	}
	if n >= t.Host {
		return ErrQuota
	}
	return nil
}
