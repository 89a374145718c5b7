package resolve

import (
	"cmp"
	"slices"

	"go4.org/netipx"

	"weir/pf/ast"
)

// A Translation is the target of nat-to or rdr-to. Addrs are in order. There are none if
// a table has no address of the rule's family. A range of rdr-to's ports maps the rule's
// range (To.Port) port by port: the n-th port becomes the n-th. A shorter range repeats.
type Translation struct {
	Addrs      []Address // PrefixAddress (single addresses or networks) or InterfaceAddress
	Choice     Choice
	PortLow    uint16 // rdr-to port, or the nat-to range's start; 0: none given
	PortHigh   uint16 // 0: single port; nat-to without a range: 50001–65535
	StaticPort bool
	// EndpointIndependent: a UDP source's address and port become the same for all destinations.
	EndpointIndependent bool
	// Stride and Block are map-e-portset: of the ports from PortLow to PortHigh only blocks
	// of 2^Block ports, 2^Stride apart. Stride 0: all.
	Stride, Block uint8
}

// SourcePorts returns the range from which nat-to chooses a port. ok is false if the port
// is not changed, or the ports are those of map-e-portset.
func (t *Translation) SourcePorts() (low, high uint16, ok bool) {
	switch {
	case t.StaticPort, t.Stride != 0:
		return 0, 0, false
	case t.PortLow == 0:
		return natLow, natHigh, true
	}
	return t.PortLow, max(t.PortLow, t.PortHigh), true
}

// A Choice is how one of several addresses is chosen. The zero value is round-robin.
type Choice struct {
	Type   PoolType
	Sticky bool              // a source keeps its address while it has states
	Key    [hashKeySize]byte // of SourceHash
	Counts uint32            // of LeastStates, never 0: pools with the same number count states together
}

// PoolType is a way to choose an address.
type PoolType uint8

// Types of pools.
const (
	RoundRobin  PoolType = iota // one after the other
	Bitmask                     // the network's bits plus the other bits of the replaced address
	Random                      // any
	SourceHash                  // by a hash of the source address
	LeastStates                 // the address with the fewest states
)

// AfTo translates a packet to the other address family.
type AfTo struct {
	Family ast.Family   // new family
	From   *Translation // its source
	To     *Translation // destination; nil: taken from or embedded in an IPv6 address, see pf.conf(5)
}

// RouteKind is which packets a Route affects.
type RouteKind uint8

// Kinds of routes.
const (
	RouteTo RouteKind = iota // matching packets
	ReplyTo                  // replies to them
	DupTo                    // copies of them
)

// A Route is route-to, reply-to or dup-to of a pass rule.
type Route struct {
	Kind   RouteKind
	Hops   []NextHop
	Choice Choice
	// PreferIPv6: IPv4 packets take next hops of both families. Round-robin takes them in their
	// order; other types take IPv4's only if there are none of IPv6.
	PreferIPv6 bool
}

// A NextHop is where packets are sent.
type NextHop struct {
	Interface string  // interface to it; empty: as in the routing table
	Addr      Address // AnyAddress: the destination itself
}

// lowerPool returns the addresses of a pool. Those of a table are listed one by one.
func (r *resolver) lowerPool(p *ast.Pool, family ast.Family) *Translation {
	if p == nil {
		return nil
	}
	out := &Translation{Addrs: r.poolAddrs(p, family), Choice: r.lowerChoice(p), StaticPort: p.StaticPort, EndpointIndependent: p.EndpointIndependent}
	if m := p.MapE; m != nil { // RFC 7597, 5.1: the first bits of a port are not all 0
		stride := 16 - m.Offset
		out.Stride, out.Block = uint8(stride), uint8(stride-m.Length)
		out.PortLow, out.PortHigh = 1<<stride|m.ID<<out.Block, 1<<16-1
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

func (r *resolver) lowerChoice(p *ast.Pool) Choice {
	out := Choice{Sticky: p.Sticky, Key: lowerKey(p.Key)}
	switch p.Type {
	case ast.Bitmask:
		out.Type = Bitmask
	case ast.Random:
		out.Type = Random
	case ast.SourceHash:
		out.Type = SourceHash
	case ast.LeastStates:
		out.Type, out.Counts = LeastStates, r.countsUnder(p)
	case ast.NoPoolType:
		if p.Binat && p.Hosts[0].Kind == ast.HostPrefix && !fixed(&p.Hosts[0]) {
			out.Type = Bitmask // replaces one network by another
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
	if rule.AfTo != nil && in.Kind == ast.RouteTo {
		family = rule.AfTo.Family // as which packets leave
	}
	out := &Route{Kind: kinds[in.Kind], Choice: r.lowerChoice(&in.Pool), PreferIPv6: in.PreferIPv6NextHop}
	if out.PreferIPv6 && family == ast.Inet {
		family = ast.AnyFamily
	}
	for _, i := range turns(&in.Pool) {
		h := &in.Hosts[i]
		switch h.Kind {
		case ast.HostTable:
			addrs := r.tableAddrs(h, family, weighingOf(&in.Pool))
			if out.PreferIPv6 { // of a table, IPv6 comes first
				addrs = slices.Clone(addrs)
				slices.SortStableFunc(addrs, func(a, b Address) int { return b.Prefix.Addr().BitLen() - a.Prefix.Addr().BitLen() })
			}
			for _, a := range addrs {
				out.Hops = append(out.Hops, NextHop{Interface: h.Via, Addr: a})
			}
		case ast.HostAny:
			out.Hops = append(out.Hops, NextHop{Interface: h.Via})
		default:
			for _, a := range noted(hostAddrs(h), h, &in.Pool) {
				out.Hops = append(out.Hops, NextHop{Interface: cmp.Or(h.Via, h.Zone), Addr: a})
			}
		}
	}
	return out
}

// poolAddrs returns the addresses of a pool. Callers must not change the addresses of a
// table or list.
func (r *resolver) poolAddrs(p *ast.Pool, family ast.Family) []Address {
	if len(p.Hosts) == 1 && p.Hosts[0].Kind == ast.HostTable {
		return r.tableAddrs(&p.Hosts[0], family, weighingOf(p))
	}
	if addrs, ok := r.poolLists[&p.Hosts[0]]; ok {
		return addrs
	}
	addrs := make([]Address, 0, len(p.Hosts))
	for _, at := range turns(p) {
		addrs = append(addrs, noted(hostAddrs(&p.Hosts[at]), &p.Hosts[at], p)...)
	}
	if len(p.Hosts) > 1 {
		r.poolLists[&p.Hosts[0]] = addrs
	}
	return addrs
}

// hostAddrs returns the addresses of a pool's host that is not a table.
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

// poolAddress lowers an address to translate to. A network of length 0 is also possible.
func poolAddress(h *ast.Host) Address {
	if h.Kind == ast.HostPrefix {
		return Address{Kind: PrefixAddress, Prefix: h.Prefix}
	}
	return lowerHost(h)
}

// lowered is the key for results of tableAddrs. The tables that a list makes for each
// combination share their addresses.
type lowered struct {
	first  *TableEntry
	count  int
	family ast.Family
	weighs weighing
}

// tableAddrs returns the addresses of a family in a pool's table. Excluded addresses are
// not used for translation.
func (r *resolver) tableAddrs(h *ast.Host, family ast.Family, weighs weighing) []Address {
	t := r.tableOf(r.scope, h.Name)
	if more := r.host.Tables[h.Name]; t == nil || len(t.Entries) == 0 {
		return r.withoutExcluded(h, more, family)
	} else if more != nil {
		return r.withoutExcluded(h, slices.Concat(t.Entries, more), family)
	}
	key := lowered{&t.Entries[0], len(t.Entries), family, weighs}
	addrs, done := r.lowered[key]
	if !done {
		if weighs != noWeights {
			addrs = weighted(t, family, weighs)
		}
		if addrs == nil {
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
		r.faults.Unenforced(h.Span, "so many exclusions in the table of a pool")
	}
	return addrs
}
