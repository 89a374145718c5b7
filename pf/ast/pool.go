package ast

import "weir/pf/token"

// Pool is the addresses from which nat-to, rdr-to and similar clauses choose.
type Pool struct {
	token.Span // from the keyword on
	Hosts      []Host
	Port       *PoolPort
	Type       PoolType
	Key        *Word // with source-hash: 0x and 32 digits, or any text; nil: a random key
	Sticky     bool  // sticky-address
	StaticPort bool
	MapE       *MapE // FreeBSD's map-e-portset

	EndpointIndependent bool // FreeBSD's: a source keeps its port for all destinations
	PreferIPv6NextHop   bool // FreeBSD's: if next hops have both families, use those of IPv6

	Binat bool // in an expanded rule: one half of binat-to
}

// MapE is a set of ports as RFC 7597 divides them: skip the first Offset bits of a port;
// the next Length bits have to be ID.
type MapE struct {
	token.Span
	Offset, Length, ID uint16
}

// PoolType is how an address is chosen.
type PoolType uint8

// Types of pools.
const (
	NoPoolType PoolType = iota // not given
	Bitmask
	Random
	SourceHash
	RoundRobin
	LeastStates
)

var poolTypes = [...]string{
	Bitmask: "bitmask", Random: "random", SourceHash: "source-hash", RoundRobin: "round-robin", LeastStates: "least-states",
}

// String returns the type's word in a rule, or "".
func (t PoolType) String() string { return poolTypes[t] }

// PoolPort is the port, or range of ports, of a Pool.
type PoolPort struct {
	token.Span
	Low, High Number
	Range     bool // Low:High
	Star      bool // Low:*
}

// AfTo is af-to: packets are translated to the other address family.
type AfTo struct {
	token.Span
	Family Family // new family
	From   *Pool
	To     *Pool // nil: the address is taken from the IPv6 address, or embedded in the rule's IPv6 network
}

// RouteKind is which packets a route affects.
type RouteKind uint8

// Kinds of routes.
const (
	RouteTo RouteKind = iota
	ReplyTo
	DupTo
)

// String returns the kind's word in a rule.
func (k RouteKind) String() string {
	return [...]string{RouteTo: "route-to", ReplyTo: "reply-to", DupTo: "dup-to"}[k]
}

// Route is route-to, reply-to or dup-to. Its pool holds next hops and has no
// ports.
type Route struct {
	Pool
	Kind RouteKind
}

// Pairs reports whether the next hops are written as in FreeBSD, with their interfaces.
func (r *Route) Pairs() bool {
	for i := range r.Hosts {
		if r.Hosts[i].Via != "" {
			return true
		}
	}
	return false
}
