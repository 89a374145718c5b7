package spd

import (
	"fmt"
	"net/netip"
	"slices"

	"weir/internal/fw/limits"
	"weir/internal/host/xfrm"
)

// Verdict says what the policies do with a packet: enum policy_verdict.
type Verdict uint8

// Verdicts.
const (
	Clear  Verdict = iota // it passes as it is
	Stack                 // only the kernel's stack knows
	Secret                // it never leaves in clear
	Held                  // likewise, but the kernel does not know that: the policy has gone
)

// Lists of a table: one for each direction and address family.
const (
	listOut  = 2 // enum policy_direction << 1
	listIPv6 = 1
	Lists    = 4
)

// A Key holds the bits of a packet that a policy tests, or, in a shape, which bits these are.
// Ports are in network order. Portless keys are for packets whose ports are not known: they have
// none, in a shape that tests ports.
type Key struct {
	Src, Dst      [16]byte // IPv4 mapped
	Sport, Dport  [2]byte
	Mark, Ifindex uint32
	Proto         uint8
	List, Shape   uint8
	Portless      bool
}

// An Entry is what a policy says. The least priority wins.
type Entry struct {
	Priority uint32
	Verdict  Verdict
}

// A List holds the forms of the selectors of one direction and family.
type List struct {
	Shapes    []Key
	Otherwise Verdict // of what no policy selects
}

// Empty reports whether nothing has to go up because of the list.
func (l *List) Empty() bool { return len(l.Shapes) == 0 && l.Otherwise == Clear }

// A Table says for each packet what the policies do with it. Its lists are in the order of the
// dataplane.
type Table struct {
	Lists    [Lists]List
	Entries  map[Key]Entry
	Policies int    // that are followed
	Held     int    // of these, those that have just gone
	Blocks   bool   // what no policy selects is blocked, in some direction
	All      string // why nobody knows what they select, so that everything goes up; "": it is known
}

// Unknown returns a table by which everything goes up.
func Unknown(why string) *Table { return &Table{All: why} }

// Idle reports whether the table changes the way of no packet.
func (t *Table) Idle() bool {
	return t.All == "" && !slices.ContainsFunc(t.Lists[:], func(l List) bool { return !l.Empty() })
}

// Follows reports whether forwarded packets depend on a policy. Those of xfrm interfaces are
// looked up where a packet leaves by the interface, or has come in by it. Those of sockets are for what a
// program sends itself.
func Follows(p *xfrm.Policy) bool {
	return (p.Direction == xfrm.Out || p.Direction == xfrm.Forward) && p.IfID == 0
}

// Compile makes the table of the policies and defaults. markMask are the bits of the mark that weir
// sets on what goes up: no policy can be judged by them beforehand. held says which policies have
// gone.
func Compile(policies []xfrm.Policy, held []xfrm.Policy, d xfrm.Defaults, markMask uint32) *Table {
	t := &Table{Entries: make(map[Key]Entry), Blocks: d.BlockForward || d.BlockOut}
	for i := range t.Lists {
		block := d.BlockForward
		if i >= listOut {
			block = d.BlockOut
		}
		if block {
			t.Lists[i].Otherwise = Secret
		}
	}
	for n, some := range [][]xfrm.Policy{policies, held} {
		for i := range some {
			p := &some[i]
			if !Follows(p) {
				continue
			}
			t.Policies++
			v := verdict(p)
			if n > 0 && v == Secret {
				v = Held
			}
			if !t.add(p, v, markMask) {
				all := Unknown(fmt.Sprintf("their selectors have more than %d forms", limits.PolicyShapes))
				all.Policies = len(policies) + len(held)
				return all
			}
		}
	}
	t.Held = len(held)
	if len(t.Entries) > limits.MaxPolicies {
		all := Unknown(fmt.Sprintf("there are more than %d", limits.MaxPolicies))
		all.Policies = t.Policies
		return all
	}
	t.simplify()
	return t
}

// HoldPlainly makes the table one for the programs of an older build as well, which search the same table until those of
// this one replace them: they do not know Held.
func (t *Table) HoldPlainly() {
	for k, e := range t.Entries {
		if e.Verdict == Held {
			e.Verdict = Secret
			t.Entries[k] = e
		}
	}
}

// simplify empties the lists in which every policy lets packets pass as they are.
func (t *Table) simplify() {
	var matters [Lists]bool
	for k, e := range t.Entries {
		matters[k.List] = matters[k.List] || e.Verdict != Clear && !k.Portless
	}
	for i := range t.Lists {
		if !matters[i] && t.Lists[i].Otherwise == Clear {
			t.Lists[i] = List{}
		}
	}
	for k := range t.Entries {
		if t.Lists[k.List].Empty() {
			delete(t.Entries, k)
		}
	}
}

// verdict returns what a policy does with the packets that it selects.
func verdict(p *xfrm.Policy) Verdict {
	switch {
	case p.Sub || p.SecurityContextual: // another policy may decide
		return Stack
	case p.Block:
		return Secret
	case p.Required > 0 && p.Offloaded: // it leaves the stack in clear
		return Stack
	case p.Required > 0:
		return Secret
	case p.Templates > 0: // all are optional
		return Stack
	}
	return Clear
}

// add adds a policy with a verdict. It reports whether there is room for the form of its selector.
func (t *Table) add(p *xfrm.Policy, v Verdict, markMask uint32) bool {
	if p.Mark&^p.MarkMask != 0 {
		return true // it selects nothing
	}
	e := Entry{Priority: p.Priority, Verdict: v}
	if p.Sub { // the kernel searches them first
		e.Priority = 0
	}
	shape := Key{
		Src: maskOf(p.Src), Dst: maskOf(p.Dst),
		Sport: port(p.SportMask), Dport: port(p.DportMask),
		Mark: p.MarkMask &^ markMask, Ifindex: all(p.Ifindex), Proto: uint8(all(uint32(p.Proto))),
	}
	if p.MarkMask&markMask != 0 {
		e.Verdict = Stack
	}
	number := listOf(p)
	l := &t.Lists[number]
	at := slices.Index(l.Shapes, shape)
	if at < 0 {
		if len(l.Shapes) == limits.PolicyShapes {
			return false
		}
		at = len(l.Shapes)
		l.Shapes = append(l.Shapes, shape)
	}
	key := Key{
		Src: p.Src.Masked().Addr().As16(), Dst: p.Dst.Masked().Addr().As16(),
		Sport: port(p.Sport & p.SportMask), Dport: port(p.Dport & p.DportMask),
		Mark: p.Mark & shape.Mark, Ifindex: p.Ifindex, Proto: p.Proto,
		List: number, Shape: uint8(at),
	}
	t.enter(key, e)
	if p.SportMask|p.DportMask != 0 { // it may select what has these ports, for all that is known
		key.Sport, key.Dport, key.Portless = [2]byte{}, [2]byte{}, true
		t.enter(key, Entry{Priority: e.Priority, Verdict: Stack})
	}
	return true
}

// enter adds an entry, or keeps the one that wins.
func (t *Table) enter(key Key, e Entry) {
	if before, known := t.Entries[key]; known {
		e = better(before, e)
	}
	t.Entries[key] = e
}

// better returns the entry that wins. The kernel takes the older of two equal ones, and its lists
// do not say which that is.
func better(a, b Entry) Entry {
	switch {
	case a.Priority < b.Priority || a == b:
		return a
	case a.Priority > b.Priority:
		return b
	case a.Verdict >= Secret && b.Verdict >= Secret:
		return Entry{a.Priority, Secret}
	}
	return Entry{a.Priority, Stack}
}

func listOf(p *xfrm.Policy) uint8 {
	var list uint8
	if p.Direction == xfrm.Out {
		list = listOut
	}
	if p.Dst.Addr().Is6() {
		list |= listIPv6
	}
	return list
}

// all returns a mask of all bits if a selector has a value.
func all(value uint32) uint32 {
	if value == 0 {
		return 0
	}
	return ^uint32(0)
}

func port(p uint16) [2]byte { return [2]byte{byte(p >> 8), byte(p)} }

// maskOf returns the bits that a prefix tests, of an address that is mapped if it is IPv4.
func maskOf(p netip.Prefix) (mask [16]byte) {
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	for i := range bits {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return mask
}
