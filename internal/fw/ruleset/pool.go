package ruleset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"weir/pf/resolve"
)

// A Row is a run of consecutive addresses, which a pool hands out in turn. Turn is the
// number of the pool's addresses before it. The one row of a Bitmask pool is a network:
// Turn and Count are the two halves of the mask of the bits that an address keeps.
//
// Rows of next hops have the interface that the rule names. An unspecified address is the
// packet's own destination.
type Row struct {
	First       netip.Addr
	Turn, Count uint64
	Interface   uint32 // 0: none is named
	Weight      uint32 // of Least: how many states weigh as one; 0 is 1
}

// missingInterface is the index of an interface that does not exist: no packet leaves by it.
const missingInterface = ^uint32(0)

// A target is one element of what a pool chooses from.
type target struct {
	resolve.Address
	via string // of a next hop: its interface
}

// A choice is what a pool chooses from, and how.
type choice struct {
	targets []target
	hops    bool // next hops
	prefer  bool // IPv4 packets take next hops of IPv6, too
	how     *resolve.Choice
}

// targetsOf returns what a translation chooses from; nil if there is none.
func targetsOf(t *resolve.Translation) *choice {
	if t == nil {
		return nil
	}
	c := &choice{how: &t.Choice, targets: make([]target, 0, len(t.Addrs))}
	for i := range t.Addrs {
		c.targets = append(c.targets, target{Address: t.Addrs[i]})
	}
	return c
}

// hopsOf returns what route-to and the like choose from.
func hopsOf(r *resolve.Route) *choice {
	c := &choice{how: &r.Choice, hops: true, prefer: r.PreferIPv6, targets: make([]target, 0, len(r.Hops))}
	for i := range r.Hops {
		c.targets = append(c.targets, target{r.Hops[i].Addr, r.Hops[i].Interface})
	}
	return c
}

// A Run is the position in Program.Rows of a pool's rows of one family.
type Run struct {
	First, Count uint32
}

// A Pool holds the addresses that a translation chooses from.
type Pool struct {
	Kind         PoolKind
	Sticky       bool      // a source keeps the address that it was given
	Key          [2]uint64 // of Hash; of Least the first is the number under which states count
	Rows4, Rows6 Run
	// Interface is the index of the interface in parentheses if the pool consists of
	// that alone, else 0. Without a daemon, packets ask the kernel for its address
	// (bpf/route/nat_source.h).
	Interface uint32
}

// A PoolKind is how an address of a pool is chosen: enum pool_kind.
type PoolKind uint32

// Kinds of pools.
const (
	InTurn  PoolKind = iota // one after the other
	Bitmask                 // the network's bits, and the other bits of the address that it replaces
	Random                  // any
	Hash                    // the same for the same source
	Least                   // that with the fewest states
)

// kind returns how a pool chooses. If there is only one address, any kind will do.
func (t *choice) kind() PoolKind {
	switch t.how.Type {
	case resolve.Bitmask:
		return Bitmask
	case resolve.Random:
		return Random
	case resolve.SourceHash:
		return Hash
	case resolve.LeastStates:
		return Least
	}
	return InTurn
}

// maxPoolRows is POOL_MAX_ROWS of bpf/rules/pool.h. maxRows is 32 MiB.
const (
	maxPoolRows = 65536
	maxRows     = 1 << 20
)

// ErrPoolFull is returned (wrapped) by Refill if an interface has more addresses than its
// pool has room for. The rules must be compiled again.
var ErrPoolFull = errors.New("more addresses than the pool has places for")

// A poolLayout says where a pool's rows may go.
type poolLayout struct {
	from    *choice
	dynamic bool // depends on interfaces, or on which gateways are up: has room for two sets of rows
	places  [2]Run
}

// pool appends a pool and returns its number, from 1. It returns 0 if there is none.
func (c *compiler) pool(t *choice) (uint32, error) {
	if t == nil {
		return 0, nil
	}
	p := c.program
	l := poolLayout{from: t, dynamic: slices.ContainsFunc(t.targets, target.isDynamic) || t.hops && len(t.targets) > 1}
	pool := Pool{Kind: t.kind(), Sticky: t.how.Sticky, Interface: c.snapshot.onlyInterface(t)}
	for i := range pool.Key {
		pool.Key[i] = binary.BigEndian.Uint64(t.how.Key[8*i:])
	}
	if pool.Kind == Least {
		pool.Key = [2]uint64{uint64(t.how.Counts)}
		p.CountsStates = true
	}
	for family, run := range []*Run{&pool.Rows4, &pool.Rows6} {
		rows := c.snapshot.rows(t, family == 0)
		if len(rows) > maxPoolRows || len(p.Rows)+len(rows) > maxRows {
			return 0, fmt.Errorf("its translation's targets are more than %d, or all translations' more than %d", maxPoolRows, maxRows)
		}
		places := len(rows)
		if l.dynamic {
			places += sparePlaces
		}
		l.places[family] = Run{uint32(len(p.Rows)), uint32(places)}
		*run = Run{uint32(len(p.Rows)), uint32(len(rows))}
		p.Rows = append(p.Rows, rows...)
		p.Rows = append(p.Rows, make([]Row, places-len(rows))...)
		if l.dynamic {
			p.Rows = append(p.Rows, make([]Row, places)...)
		}
	}
	p.Pools = append(p.Pools, pool)
	p.layouts = append(p.layouts, l)
	return uint32(len(p.Pools)), nil
}

// onlyInterface returns the index of an interface if a translation chooses from all of
// its addresses and from nothing else. Otherwise it returns 0.
func (s *Snapshot) onlyInterface(t *choice) uint32 {
	only := uint32(0)
	if t.hops {
		return 0
	}
	for i := range t.targets {
		a := &t.targets[i]
		if !a.isDynamic() || a.Modifier != resolve.NoModifier || a.Bits > 0 {
			return 0
		}
		for _, named := range s.named(a.Interface) {
			if only != 0 && only != named.Index {
				return 0
			}
			only = named.Index
		}
	}
	return only
}

// sparePlaces is room for addresses that an interface may get later.
const sparePlaces = 8

// isDynamic reports whether a target changes with the machine's interfaces.
func (t target) isDynamic() bool { return t.Kind == resolve.InterfaceAddress || t.via != "" }

// rows returns the addresses that a pool chooses from for packets of a family, in order.
func (s *Snapshot) rows(t *choice, is4 bool) []Row {
	families := func(a netip.Addr) bool { return a.Is4() == is4 }
	if is4 && t.prefer {
		families = func(netip.Addr) bool { return true }
		if t.kind() == Random || t.kind() == Hash {
			families = netip.Addr.Is6
			if !s.someUp(t, families) && s.someUp(t, netip.Addr.Is4) || !slices.ContainsFunc(t.targets, target.is6) {
				families = netip.Addr.Is4
			}
		}
	}
	return s.rowsOf(t, is4, families)
}

// is6 reports whether a target has addresses of IPv6, as far as the rules say.
func (t target) is6() bool { return t.Kind != resolve.PrefixAddress || t.Prefix.Addr().Is6() }

// rowsOf returns the addresses that a pool chooses from, in order, of some families.
func (s *Snapshot) rowsOf(t *choice, is4 bool, families func(netip.Addr) bool) []Row {
	var rows []Row
	turn := uint64(0)
	skips := t.hops && len(s.Down) > 0 && s.someUp(t, families)
	for i := range t.targets {
		if skips && s.isDown(&t.targets[i]) {
			continue
		}
		via := s.via(t.targets[i].via)
		for _, p := range s.targets(&t.targets[i].Address, is4) {
			if !families(p.Addr()) || turn == ^uint64(0) {
				continue
			}
			if t.kind() == Bitmask {
				row := maskRow(p)
				row.Interface = via
				return []Row{row}
			}
			count := uint64(1) << min(p.Addr().BitLen()-p.Bits(), 63)
			sum, carry := bits.Add64(turn, count, 0)
			if carry != 0 {
				sum, count = ^uint64(0), ^uint64(0)-turn
			}
			rows = append(rows, Row{p.Masked().Addr(), turn, count, via, uint32(t.targets[i].Weight)})
			turn = sum
		}
	}
	return rows
}

// hop returns the gateway that the target is; false: it is no single address.
func (t *target) hop() (Hop, bool) {
	p := t.Prefix
	return Hop{t.via, p.Addr()}, t.Kind == resolve.PrefixAddress && p.IsValid() && p.IsSingleIP() && !p.Addr().IsUnspecified()
}

func (s *Snapshot) isDown(t *target) bool {
	hop, ok := t.hop()
	return ok && s.Down[hop]
}

// someUp reports whether a pool of next hops has one of some families that is not known to be
// down. If there is none, all are used: a gateway that does not answer may forward all the
// same.
func (s *Snapshot) someUp(t *choice, families func(netip.Addr) bool) bool {
	for i := range t.targets {
		a := t.targets[i].Prefix.Addr()
		if (!a.IsValid() || families(a)) && !s.isDown(&t.targets[i]) {
			return true
		}
	}
	return false
}

// maskRow returns the row of a network whose bits replace those of other addresses.
func maskRow(p netip.Prefix) Row {
	kept := p.Addr().BitLen() - p.Bits()
	ones := func(n int) uint64 { return 1<<max(0, min(n, 64)) - 1 }
	return Row{First: p.Masked().Addr(), Turn: ones(kept - 64), Count: ones(kept)}
}

// targets returns what an address to choose means now. A next hop without an address is
// the packet's own destination, in either family.
func (s *Snapshot) targets(a *resolve.Address, is4 bool) []netip.Prefix {
	switch {
	case a.Kind == resolve.InterfaceAddress:
		return s.dynamic(a, Address.usable)
	case a.Kind == resolve.AnyAddress && is4:
		return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 32)}
	case a.Kind == resolve.AnyAddress:
		return []netip.Prefix{netip.PrefixFrom(netip.IPv6Unspecified(), 128)}
	}
	return []netip.Prefix{a.Prefix}
}

// via returns the index of the interface that a next hop names, or 0 if it names none. Of
// a group it is the first.
func (s *Snapshot) via(name string) uint32 {
	if name == "" {
		return 0
	}
	for _, named := range s.named(name) {
		return named.Index
	}
	return missingInterface
}

// A PoolChange says what to write after an interface's addresses have changed. Write the
// rows first, none of which is in use, then the pool.
type PoolChange struct {
	Index int // of the pool
	Pool  Pool
	Rows  map[uint32]Row // by index
}

// Refill updates the pools to the present host. It returns what must be written into the
// maps of a dataplane that runs the program.
func (p *Program) Refill(s Snapshot) ([]PoolChange, error) {
	var changes []PoolChange
	for i := range p.layouts {
		if !p.layouts[i].dynamic {
			continue
		}
		change, err := p.refill(i, &s)
		if err != nil {
			return nil, fmt.Errorf("refill pool %d: %w", i, err)
		}
		if change.Pool != p.Pools[i] {
			changes = append(changes, change)
		}
	}
	for _, c := range changes {
		p.Pools[c.Index] = c.Pool
		for at, row := range c.Rows {
			p.Rows[at] = row
		}
	}
	return changes, nil
}

func (p *Program) refill(index int, s *Snapshot) (PoolChange, error) {
	change := PoolChange{Index: index, Pool: p.Pools[index], Rows: map[uint32]Row{}}
	l := &p.layouts[index]
	change.Pool.Interface = s.onlyInterface(l.from)
	for family, run := range []*Run{&change.Pool.Rows4, &change.Pool.Rows6} {
		rows, places := s.rows(l.from, family == 0), l.places[family]
		if slices.Equal(rows, p.Rows[run.First:run.First+run.Count]) {
			continue
		}
		if len(rows) > int(places.Count) {
			return change, ErrPoolFull
		}
		first := places.First
		if run.First == first {
			first += places.Count
		}
		*run = Run{first, uint32(len(rows))}
		for i, row := range rows {
			change.Rows[first+uint32(i)] = row
		}
	}
	return change, nil
}

// EqualRules reports whether two programs from the same rules differ only in what their
// pools hold and in later changes of tables. Then Refill can turn one into the other.
func (p *Program) EqualRules(q *Program) bool {
	set, other := p.Set, q.Set
	set.SrcTablesAt, other.SrcTablesAt = 0, 0
	sameActions := slices.EqualFunc(p.Order, q.Order, func(a, b uint32) bool { return equalActions(p.Rules[a], q.Rules[b]) })
	return set == other && sameActions && slices.Equal(p.Next, q.Next) && slices.Equal(p.Trees, q.Trees) &&
		slices.Equal(p.Lines, q.Lines) &&
		slices.Equal(p.Classes[:p.tables.classesAt], q.Classes[:q.tables.classesAt]) &&
		slices.Equal(p.Vectors[:p.tables.vectorsAt], q.Vectors[:q.tables.vectorsAt]) &&
		p.tables.hash == q.tables.hash
}
