package model

import (
	"net/netip"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// A Question is what the rules see of a packet at one interface, in one direction.
type Question struct {
	Direction          ast.Direction // In or Out
	Interface          uint32
	Tuple              state.Tuple
	TCPFlags           uint8
	ICMPType, ICMPCode uint8
	Tag                string
	Mark, Keep         uint32 // without weir's own bits; bits that the other crossing has set
}

// An Evaluation is what the rules say.
type Evaluation struct {
	Reason   reason.Reason // Rule, NoRule, Block or NATAddress
	Rule     *resolve.Rule // the deciding rule; nil: none
	Stop     *resolve.Rule // the quick rule that ended the evaluation; nil: none
	Matched  []uint32      // global numbers plus 1 of the rules that count the packet
	Tag      string
	Mark     resolve.Mark // bits of the mark that the rules set
	Scrub    resolve.Scrub
	Listed   resolve.Scrub // of FreeBSD's scrub rules
	Nat, Rdr *Translated
}

// Translated is a translation that applies.
type Translated struct {
	*resolve.Translation
	Addr netip.Addr
	Port uint16 // rdr-to: the destination port after it
}

// Evaluate asks the rules of one crossing, without the rest of the packet's way.
func (m *Model) Evaluate(q *Question) Evaluation {
	i := m.box.byIndex(q.Interface)
	if i == nil {
		i = &Interface{Index: q.Interface}
	}
	c := m.evaluate(ruleInput{
		direction: q.Direction, iface: i, family: familyOf(q.Tuple.Src), tuple: q.Tuple, tcpFlags: q.TCPFlags,
		icmpType: q.ICMPType, icmpCode: q.ICMPCode, tag: q.Tag, mark: q.Mark, keep: q.Keep, owner: nobody,
	})
	e := Evaluation{
		Reason: passReason(&c, &crossing{}), Rule: c.rule, Stop: c.stop, Matched: c.matched,
		Tag: c.tag, Mark: c.mark, Scrub: c.scrub, Listed: c.listed, Nat: c.nat.translated(), Rdr: c.rdr.translated(),
	}
	if why := m.verdict(&c, &packet{}); why != nil {
		e.Reason = *why
	}
	return e
}

func (t *target) translated() *Translated {
	if t == nil || !t.addr.IsValid() {
		return nil
	}
	return &Translated{t.translation, t.addr, t.dport}
}

// SetRules puts other rules in force. Pools of rules that stay go on.
func (m *Model) SetRules(rules *resolve.Ruleset) {
	m.rules = rules
	m.numberRules()
}
