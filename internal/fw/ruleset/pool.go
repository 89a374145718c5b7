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
type Row struct {
	First       netip.Addr
	Turn, Count uint64
}

// A Run is the position in Program.Rows of a pool's rows of one family.
type Run struct {
	First, Count uint32
}

// A Pool holds the addresses that a translation chooses from.
type Pool struct {
	Kind         PoolKind
	Sticky       bool      // a source keeps the address that it was given
	Key          [2]uint64 // of Hash
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
)

// kindOf returns how a translation chooses. If there is only one address, any kind will
// do.
func kindOf(t *resolve.Translation) PoolKind {
	switch t.Choice.Type {
	case resolve.Bitmask:
		return Bitmask
	case resolve.Random:
		return Random
	case resolve.SourceHash:
		return Hash
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
	translation *resolve.Translation
	dynamic     bool // holds an interface in parentheses: has room for two sets of rows
	places      [2]Run
}

// pool appends the pool of a translation and returns its number, from 1. It returns 0 if
// there is none.
func (c *compiler) pool(t *resolve.Translation) (uint32, error) {
	if t == nil {
		return 0, nil
	}
	p := c.program
	l := poolLayout{translation: t, dynamic: slices.ContainsFunc(t.Addrs, isDynamic)}
	pool := Pool{Kind: kindOf(t), Sticky: t.Choice.Sticky, Interface: c.snapshot.onlyInterface(t)}
	for i := range pool.Key {
		pool.Key[i] = binary.BigEndian.Uint64(t.Choice.Key[8*i:])
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
func (s *Snapshot) onlyInterface(t *resolve.Translation) uint32 {
	only := uint32(0)
	for i := range t.Addrs {
		a := &t.Addrs[i]
		if !isDynamic(*a) || a.Modifier != resolve.NoModifier || a.Bits > 0 {
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

func isDynamic(a resolve.Address) bool { return a.Kind == resolve.InterfaceAddress }

// rows returns the addresses of a family that a translation chooses from, in order.
func (s *Snapshot) rows(t *resolve.Translation, is4 bool) []Row {
	var rows []Row
	turn := uint64(0)
	for i := range t.Addrs {
		for _, p := range s.targets(&t.Addrs[i]) {
			if p.Addr().Is4() != is4 || turn == ^uint64(0) {
				continue
			}
			if kindOf(t) == Bitmask {
				return []Row{maskRow(p)}
			}
			count := uint64(1) << min(p.Addr().BitLen()-p.Bits(), 63)
			sum, carry := bits.Add64(turn, count, 0)
			if carry != 0 {
				sum, count = ^uint64(0), ^uint64(0)-turn
			}
			rows = append(rows, Row{p.Masked().Addr(), turn, count})
			turn = sum
		}
	}
	return rows
}

// maskRow returns the row of a network whose bits replace those of other addresses.
func maskRow(p netip.Prefix) Row {
	kept := p.Addr().BitLen() - p.Bits()
	ones := func(n int) uint64 { return 1<<max(0, min(n, 64)) - 1 }
	return Row{First: p.Masked().Addr(), Turn: ones(kept - 64), Count: ones(kept)}
}

// targets returns what an address in a translation means now.
func (s *Snapshot) targets(a *resolve.Address) []netip.Prefix {
	if isDynamic(*a) {
		return s.dynamic(a, Address.usable)
	}
	return []netip.Prefix{a.Prefix}
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
	change.Pool.Interface = s.onlyInterface(l.translation)
	for family, run := range []*Run{&change.Pool.Rows4, &change.Pool.Rows6} {
		rows, places := s.rows(l.translation, family == 0), l.places[family]
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
