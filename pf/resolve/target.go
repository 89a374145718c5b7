package resolve

import (
	"cmp"
	"slices"

	"go4.org/netipx"

	"weir/pf/ast"
)

// A Translation is the target of nat-to or rdr-to. Addrs are in order; there may
// be none: of a table without an address of the rule's family. A range of rdr-to's
// ports is counted from the start of the rule's range (To.Port): the n-th port
// becomes the n-th; a shorter range repeats.
type Translation struct {
	Addrs      []Address // PrefixAddress (single addresses or networks) or InterfaceAddress
	Choice     Choice
	PortLow    uint16 // rdr-to port, or the nat-to range's start; 0: none given
	PortHigh   uint16 // 0: single port; nat-to without a range: 50001–65535
	StaticPort bool
}

// SourcePorts is the range that nat-to chooses a port from; not ok where the port stays.
func (t *Translation) SourcePorts() (low, high uint16, ok bool) {
	switch {
	case t.StaticPort:
		return 0, 0, false
	case t.PortLow == 0:
		return natLow, natHigh, true
	}
	return t.PortLow, max(t.PortLow, t.PortHigh), true
}

// A Choice says how one of several addresses is chosen. The zero value is
// round-robin.
type Choice struct {
	Type   PoolType
	Sticky bool              // a source keeps what it got while it has states
	Key    [hashKeySize]byte // of SourceHash
}

// PoolType is a way to choose an address.
type PoolType uint8

// Types of pools.
const (
	RoundRobin  PoolType = iota // one after the other
	Bitmask                     // the network's bits, and the others of the address that is replaced
	Random                      // any
	SourceHash                  // by a hash of the source address
	LeastStates                 // the one that the fewest states have
)

// AfTo makes a packet one of the other address family.
type AfTo struct {
	Family ast.Family   // that it becomes one of
	From   *Translation // its source
	To     *Translation // its destination; nil: see pf.conf(5), it is taken out of or put into an IPv6 address
}

// RouteKind is what a Route changes the way of.
type RouteKind uint8

// Kinds of routes.
const (
	RouteTo RouteKind = iota // the packets that match
	ReplyTo                  // the answers to them
	DupTo                    // copies of them
)

// A Route is route-to, reply-to or dup-to of a pass rule.
type Route struct {
	Kind   RouteKind
	Hops   []NextHop
	Choice Choice
}

// A NextHop is who packets are handed to.
type NextHop struct {
	Interface string  // that leads there; empty: as the machine's routes say
	Addr      Address // AnyAddress: the destination itself
}

// lowerPool returns the addresses of a pool, those of a table one by one.
func (r *resolver) lowerPool(p *ast.Pool, family ast.Family) *Translation {
	if p == nil {
		return nil
	}
	out := &Translation{Addrs: r.poolAddrs(p, family), Choice: lowerChoice(p), StaticPort: p.StaticPort}
	if p.MapE != nil { // its ports lie in this range
		shift := 16 - p.MapE.Offset
		out.PortLow, out.PortHigh = 1<<shift|p.MapE.ID<<(shift-p.MapE.Length), 1<<16-1
		return out
	}
	if p.Port == nil {
		return out
	}
	out.PortLow = p.Port.Low.Value
	if p.Port.Range {
		out.PortLow, out.PortHigh = min(p.Port.Low.Value, p.Port.High.Value), max(p.Port.Low.Value, p.Port.High.Value)
	}
	return out
}

func lowerChoice(p *ast.Pool) Choice {
	out := Choice{Sticky: p.Sticky, Key: lowerKey(p.Key)}
	switch p.Type {
	case ast.Bitmask:
		out.Type = Bitmask
	case ast.Random:
		out.Type = Random
	case ast.SourceHash:
		out.Type = SourceHash
	case ast.LeastStates:
		out.Type = LeastStates
	case ast.NoPoolType:
		if p.Binat && p.Hosts[0].Kind == ast.HostPrefix && !fixed(&p.Hosts[0]) {
			out.Type = Bitmask // one network for another
		}
	}
	return out
}

func (r *resolver) lowerAfTo(in *ast.AfTo) *AfTo {
	if in == nil {
		return nil
	}
	return &AfTo{
		Family: in.Family,
		From:   r.lowerPool(in.From, in.Family), To: r.lowerPool(in.To, in.Family),
	}
}

func (r *resolver) lowerRoute(rule *ast.Rule) *Route {
	in, family := rule.Route, rule.Family
	if in == nil || idleRoute(rule) {
		return nil
	}
	kinds := [...]RouteKind{ast.RouteTo: RouteTo, ast.ReplyTo: ReplyTo, ast.DupTo: DupTo}
	out := &Route{Kind: kinds[in.Kind], Choice: lowerChoice(&in.Pool)}
	for i := range in.Hosts {
		h := &in.Hosts[i]
		switch h.Kind {
		case ast.HostTable:
			for _, a := range r.tableAddrs(h, family) {
				out.Hops = append(out.Hops, NextHop{Interface: h.Via, Addr: a})
			}
		case ast.HostAny:
			out.Hops = append(out.Hops, NextHop{Interface: h.Via})
		default:
			for _, a := range hostAddrs(h) {
				out.Hops = append(out.Hops, NextHop{Interface: cmp.Or(h.Via, h.Zone), Addr: a})
			}
		}
	}
	return out
}

// poolAddrs returns the addresses of a pool; those of a table or list are not the
// caller's to change.
func (r *resolver) poolAddrs(p *ast.Pool, family ast.Family) []Address {
	if len(p.Hosts) == 1 && p.Hosts[0].Kind == ast.HostTable {
		return r.tableAddrs(&p.Hosts[0], family)
	}
	if addrs, ok := r.poolLists[&p.Hosts[0]]; ok {
		return addrs
	}
	addrs := make([]Address, 0, len(p.Hosts))
	for i := range p.Hosts {
		addrs = append(addrs, hostAddrs(&p.Hosts[i])...)
	}
	if len(p.Hosts) > 1 {
		r.poolLists[&p.Hosts[0]] = addrs
	}
	return addrs
}

// hostAddrs returns what a host of a pool other than a table stands for.
func hostAddrs(h *ast.Host) []Address {
	if h.Kind != ast.HostRange {
		return []Address{poolAddress(h)}
	}
	var addrs []Address
	for _, p := range netipx.IPRangeFrom(h.Prefix.Addr(), h.Last).Prefixes() {
		addrs = append(addrs, Address{Kind: PrefixAddress, Prefix: p})
	}
	return addrs
}

// poolAddress lowers an address to translate to; a network of length 0 is one
// too.
func poolAddress(h *ast.Host) Address {
	if h.Kind == ast.HostPrefix {
		return Address{Kind: PrefixAddress, Prefix: h.Prefix}
	}
	return lowerHost(h)
}

// lowered names what tableAddrs has given: the tables that a rule's list makes
// for each of its combinations share their addresses.
type lowered struct {
	first  *TableEntry
	count  int
	family ast.Family
}

// tableAddrs returns the addresses of a family in the table of a pool. What the
// table excludes cannot be translated to.
func (r *resolver) tableAddrs(h *ast.Host, family ast.Family) []Address {
	t := r.tableOf(r.scope, h.Name)
	if more := r.host.Tables[h.Name]; t == nil || len(t.Entries) == 0 {
		return r.withoutExcluded(h, more, family)
	} else if more != nil {
		return r.withoutExcluded(h, slices.Concat(t.Entries, more), family)
	}
	key := lowered{&t.Entries[0], len(t.Entries), family}
	addrs, done := r.lowered[key]
	if !done {
		if addrs = weighted(t, family); addrs == nil {
			addrs = r.withoutExcluded(h, t.Entries, family)
		}
		r.lowered[key] = addrs
	}
	return addrs
}

// withoutExcluded returns the addresses of a family in the table of a pool.
func (r *resolver) withoutExcluded(h *ast.Host, entries []TableEntry, family ast.Family) []Address {
	addrs, ok := inFamily(entries, family)
	if !ok {
		r.faults.Unenforced(h.Span, "so much that a table to choose from excludes")
	}
	return addrs
}
