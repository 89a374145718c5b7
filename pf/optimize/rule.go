package optimize

import (
	"net/netip"
	"strings"

	"weir/pf/ast"
	"weir/pf/printer"
)

// rule is the part of a rule that is compared.
type rule struct {
	ast  *ast.Rule
	like int32 // the same for rules that may share a superblock
	conditions
	from, to address
	numbers  numbers // of question, from and to; set by newIndex
}

// conditions is what a rule asks of a packet, without addresses. A zero field asks nothing.
type conditions struct {
	rest             int32 // the same for rules that agree in all other fields
	on               on
	direction        ast.Direction
	family           ast.Family
	proto            uint8
	flags            flags
	fromNot, toNot   bool // the addresses are negated
	fromPort, toPort port
}

type on struct {
	name   string
	domain int64 // of on rdomain: its number plus 1; 0: none
	not    bool
}

type flags struct{ set, mask uint8 }

type port struct {
	asked     bool
	op        ast.PortOp
	low, high uint16
}

// address is an address without negation. The zero value is any.
type address struct {
	kind addressKind
	bits uint8    // of a prefix
	addr [16]byte // of a prefix; IPv4 in the first four bytes, as in pf
	text string   // printed form, except for prefixes; for a prefix: its link
}

type addressKind uint8

const (
	prefix addressKind = iota // any is the prefix of length 0
	other
)

func conditionsOf(r *ast.Rule, rest int32) conditions {
	q := conditions{
		rest: rest, direction: r.Direction, family: r.Family,
		fromNot: negated(&r.From), toNot: negated(&r.To),
		fromPort: portOf(&r.From), toPort: portOf(&r.To),
	}
	if len(r.On) > 0 {
		q.on = onOf(&r.On[0])
	}
	if len(r.Protos) > 0 {
		q.proto = r.Protos[0].Number
	}
	if r.Flags != nil {
		q.flags = flags{r.Flags.Set, r.Flags.Mask}
	}
	return q
}

func onOf(i *ast.Interface) on {
	if i.RDomain != nil {
		return on{domain: int64(i.RDomain.N) + 1, not: i.Not}
	}
	return on{name: i.Name, not: i.Not}
}

func negated(e *ast.Endpoint) bool { return len(e.Hosts) > 0 && e.Hosts[0].Not }

func portOf(e *ast.Endpoint) port {
	if len(e.Ports) == 0 {
		return port{}
	}
	p := &e.Ports[0]
	out := port{asked: true, op: p.Op, low: p.Low.Value}
	switch p.Op {
	case ast.PortRange, ast.PortInside, ast.PortOutside:
		out.high = p.High.Value
	}
	return out
}

func addressOf(e *ast.Endpoint) address {
	if len(e.Hosts) == 0 {
		return address{}
	}
	switch h := e.Hosts[0]; h.Kind {
	case ast.HostAny:
		return address{}
	case ast.HostPrefix:
		return prefixOf(h.Prefix, h.Zone)
	default:
		h.Not = false
		return address{kind: other, text: printer.Host(&h)}
	}
}

func prefixOf(p netip.Prefix, zone string) address {
	a := address{bits: uint8(max(p.Bits(), 0)), text: zone}
	if p.Addr().Is4() {
		four := p.Addr().As4()
		copy(a.addr[:], four[:])
	} else {
		a.addr = p.Addr().As16()
	}
	return a
}

func (a *address) any() bool { return a.kind == prefix && a.bits == 0 }

// short returns the prefix of this length that contains the prefix a.
func (a *address) short(bits uint8) address {
	out := address{bits: bits, text: a.text}
	whole := bits / 8
	copy(out.addr[:whole], a.addr[:whole])
	if bits%8 != 0 {
		out.addr[whole] = a.addr[whole] &^ (0xff >> (bits % 8))
	}
	if bits == 0 {
		out.text = ""
	}
	return out
}

// group reports whether a name may be a group's. A group's name does not end in a digit.
func group(name string) bool {
	return name != "" && !strings.ContainsRune("0123456789", rune(name[len(name)-1]))
}

func equalFold(a, b string) bool { return strings.EqualFold(a, b) }
