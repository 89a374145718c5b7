package ruleset

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// Protocols with details that rules have conditions on.
const (
	icmp   = 1
	tcp    = 6
	icmpv6 = 58
	sctp   = 132
)

// A protocol is a rule's condition on family, protocol and its details.
type protocol struct {
	families families
	proto    uint8 // 0: any
	flags    resolve.TCPFlags
	icmp     resolve.ICMPType
	asking   bool // no replies of ICMP: they never make a state
	seen     visible
	// fragments says that fragments meet the rules each for itself.
	fragments bool
	etherType uint16 // an ether rule's; 0: any
}

// visible says which parts of packets meet a rule. Fragments have no L4 header: a rule that asks
// for something in it sees whole packets alone.
type visible uint8

const (
	anyPart visible = iota
	wholePart
	fragmentPart
	noPart // as in pf, a rule for fragments that asks for something in their L4 header
)

func visibleOf(r *resolve.Rule) visible {
	asks := r.From.Port.Op != ast.AnyPort || r.To.Port.Op != ast.AnyPort || r.ICMP.Asked || r.OS != "" ||
		r.User != resolve.Owner{} || r.Group != resolve.Owner{}
	switch {
	case r.Fragment && asks:
		return noPart
	case r.Fragment:
		return fragmentPart
	case asks:
		return wholePart
	}
	return anyPart
}

// fragmentBit is what numbers of fragments have, and no details: tree_protocol_key() of bpf/rules/tree.h.
const fragmentBit = 1 << 25

// etherBit is what EtherTypes of frames have, likewise.
const etherBit = 1 << 26

// A families is a set of address families.
type families uint8

const (
	family4 families = 1 << iota
	family6
	familyAny = family4 | family6
)

func familiesOf(f ast.Family) families {
	switch f {
	case ast.Inet:
		return family4
	case ast.Inet6:
		return family6
	}
	return familyAny
}

// protocolOf returns the rule's condition.
func (c *compiler) protocolOf(r *resolve.Rule) protocol {
	if c.ethers[r] {
		return protocol{families: familyAny, etherType: r.Frame.Type}
	}
	p := protocol{families: familiesOf(r.Family), proto: r.Proto, flags: r.Flags, icmp: r.ICMP, seen: visibleOf(r), asking: r.Action != ast.Block && r.State == resolve.KeepState && !r.Limits.Sloppy}
	if c.translates[r] {
		p.seen = wholePart
	}
	for _, t := range []*resolve.Translation{r.Nat, r.Rdr} {
		if t != nil {
			p.families &= translated(t)
		}
	}
	return p
}

// translated returns the families that a translation has, or may have, addresses of. The
// rule matches no packets of another family.
func translated(t *resolve.Translation) families {
	var f families
	for _, a := range t.Addrs {
		switch {
		case a.Kind == resolve.InterfaceAddress:
			return familyAny
		case a.Prefix.Addr().Is4():
			f |= family4
		default:
			f |= family6
		}
	}
	return f
}

func (p *protocol) asksNothing() bool {
	return p.etherType == 0 && p.families == familyAny && p.proto == 0 && p.flags.Mask == 0 && p.flags.Set == 0 && !p.icmp.Asked &&
		!p.asking && (p.seen == anyPart || p.seen == wholePart && !p.fragments)
}

// spans returns the numbers that meet the condition: see enum field.
func (p *protocol) spans() []span {
	if p.etherType != 0 {
		return []span{smallSpan(etherBit|uint64(p.etherType), etherBit|uint64(p.etherType))}
	}
	var spans []span
	for i, family := range []families{family4, family6} {
		if p.families&family == 0 {
			continue
		}
		for proto := range uint64(256) {
			if (p.proto == 0 || uint64(p.proto) == proto) && (p.seen == anyPart || p.seen == wholePart) {
				spans = p.appendDetails(spans, uint64(i)<<24|proto<<16)
			}
		}
	}
	if p.fragments && (p.seen == anyPart || p.seen == fragmentPart) {
		spans = p.appendFragments(spans)
	}
	return spans
}

// appendFragments adds the numbers of fragments. A condition on flags is one on TCP's header.
func (p *protocol) appendFragments(spans []span) []span {
	for i, family := range []families{family4, family6} {
		if p.families&family == 0 {
			continue
		}
		for proto := range uint64(256) {
			if p.proto != 0 && uint64(p.proto) != proto || proto == tcp && p.flags != (resolve.TCPFlags{}) {
				continue
			}
			base := fragmentBit | uint64(i)<<24 | proto<<16
			spans = appendSpan(spans, smallSpan(base, base|0xffff))
		}
	}
	return spans
}

// appendDetails adds the numbers of one family and protocol, which begin with base.
func (p *protocol) appendDetails(spans []span, base uint64) []span {
	isICMP := base>>16 == icmp || base>>16 == 1<<8|icmpv6
	if isICMP && p.asking {
		return p.appendAsking(spans, base)
	}
	switch {
	case p.icmp.Asked && !isICMP:
		return spans
	case p.icmp.Asked && p.icmp.HasCode:
		base |= uint64(p.icmp.Type)<<8 | uint64(p.icmp.Code)
		return appendSpan(spans, smallSpan(base, base))
	case p.icmp.Asked:
		base |= uint64(p.icmp.Type) << 8
		return appendSpan(spans, smallSpan(base, base|0xff))
	case base>>16&0xff == tcp && p.flags != (resolve.TCPFlags{}):
		return p.appendFlags(spans, base)
	}
	return appendSpan(spans, smallSpan(base, base|0xffff))
}

// appendAsking adds the ICMP messages that are no replies to queries.
func (p *protocol) appendAsking(spans []span, base uint64) []span {
	replies := repliesOf(base>>24 != 0)
	for t := range uint64(256) {
		if p.icmp.Asked && uint64(p.icmp.Type) != t || slices.Contains(replies, uint8(t)) {
			continue
		}
		first, last := base|t<<8, base|t<<8|0xff
		if p.icmp.HasCode {
			first |= uint64(p.icmp.Code)
			last = first
		}
		spans = appendSpan(spans, smallSpan(first, last))
	}
	return spans
}

// repliesOf returns the types of ICMP's replies to queries: of echo, timestamp, information
// and address mask.
func repliesOf(ipv6 bool) []uint8 {
	if ipv6 {
		return []uint8{129}
	}
	return []uint8{0, 14, 16, 18}
}

func (p *protocol) appendFlags(spans []span, base uint64) []span {
	for key := range uint64(256) {
		if flagsOf(uint8(key))&p.flags.Mask == p.flags.Set {
			spans = appendSpan(spans, smallSpan(base|key, base|key))
		}
	}
	return spans
}

// flagsOf returns the TCP flags for which tree_flags_key() returns key.
func flagsOf(key uint8) uint8 {
	syn, ack, rst, fin := key>>6&0x02, key>>2&0x10, key>>3&0x04, key>>4&0x01
	return syn | ack | rst | fin | key&0x08 | key<<5&0xe0
}
