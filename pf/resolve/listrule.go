package resolve

import (
	"net/netip"

	"weir/pf/ast"
)

// A ListRule is one of the rules that FreeBSD's lists become: ether rules, scrub rules, and those
// of the translation lists. They stand
// before the filter rules, and each that matches is followed in order, like a match rule:
// it translates, or ends its list without (no), or leads into an anchor. With pass it is
// a pass rule with quick.
//
// A binat rule, and an anchor of such rules, is one for each direction.
type ListRule struct {
	Rule
	Of *TranslationRule // nil: it only leads past the rules of an anchor, and is not shown, or IsScrub

	// IsScrub says that it is a scrub rule. These stand before the translation rules, and lead
	// past the others.
	IsScrub bool

	// Pieces says that it is a scrub rule with fragment no reassemble.
	Pieces bool

	// IsEther says that it is an ether rule, which frames meet and packets do not. These are
	// the first. IsPast: it only leads past the rules of an ether anchor, and is not shown.
	IsEther, IsPast bool

	// Next is the number in the list of the rule that is evaluated next if this one
	// matches: the first behind its list or its anchor. 0 is the one behind it. The
	// length of the list leads to the filter rules.
	Next int
}

// Sequence returns all rules in the order of their numbers: those of FreeBSD's lists, then the
// filter rules.
func (rs *Ruleset) Sequence() []*Rule {
	all := make([]*Rule, 0, len(rs.First)+len(rs.Rules))
	for _, l := range rs.First {
		all = append(all, &l.Rule)
	}
	return append(all, rs.Rules...)
}

// ListRules returns the rules that translation lists become, and numbers each list's
// rules. As in FreeBSD's kernel, rdr is before binat for incoming packets, and binat is
// before nat for outgoing ones. The first rule that translates ends both.
func ListRules(lists []*TranslationRule) []*ListRule {
	l := &lister{}
	for _, list := range []struct {
		kind      TranslationKind
		direction ast.Direction
	}{{BinatRule, ast.Out}, {NatRule, ast.Out}, {RdrRule, ast.In}, {BinatRule, ast.In}} {
		l.kind, l.direction, l.number, l.first = list.kind, list.direction, 0, len(l.rules)
		l.add(lists)
		l.endList()
	}
	for _, translates := range l.translate {
		translates.Next = len(l.rules)
	}
	return l.rules
}

// A lister makes the rules of the lists, one list after the other.
type lister struct {
	rules     []*ListRule
	translate []*ListRule // those that end all lists

	// Of the present list: for binat, of its present direction.
	kind      TranslationKind
	direction ast.Direction
	number    int
	first     int
	no        []*ListRule
}

// endList makes the rules with no lead behind the list.
func (l *lister) endList() {
	for _, no := range l.no {
		no.Next = len(l.rules)
	}
	l.no = nil
}

// add adds the present kind's rules, and those of anchors.
func (l *lister) add(rules []*TranslationRule) {
	for _, t := range rules {
		if t.Kind != l.kind {
			continue
		}
		t.Nr = l.number
		l.number++
		out := l.rule(t)
		l.rules = append(l.rules, out)
		switch {
		case t.Path != "":
			l.anchor(t, out)
		case t.No:
			l.no = append(l.no, out)
		case !t.Pass:
			l.translate = append(l.translate, out)
		}
	}
}

// anchor adds the rules in an anchor. Packets that do not meet its conditions go past
// them: they meet the rule behind the anchor's own, and the others do not.
func (l *lister) anchor(t *TranslationRule, out *ListRule) {
	var past *ListRule
	if !isNeutral(&t.Rule) { // also if it has no rules: others may be loaded into it
		past = &ListRule{Rule: Rule{Pos: t.Pos, Origin: t.Origin, Stmt: t.Stmt, Action: ast.Match, State: NoState, Direction: l.direction, Interface: Interface{Any: true}}}
		l.rules = append(l.rules, past)
		out.Next = len(l.rules)
	}
	l.add(t.Inside)
	if past != nil {
		past.Next = len(l.rules)
	}
	out.Anchor = &Call{Path: t.Path, End: len(l.rules), Flat: true}
}

// rule returns what a translation rule does in the present direction.
func (l *lister) rule(t *TranslationRule) *ListRule {
	out := &ListRule{Rule: t.Rule, Of: t}
	out.Direction, out.Action, out.State = l.direction, ast.Match, KeepState
	if t.Pass {
		out.Action, out.Quick = ast.Pass, true
	}
	switch {
	case t.Kind != BinatRule || t.No || t.Path != "":
	case l.direction == ast.Out:
		out.Nat = &Translation{Addrs: []Address{t.Binat}, Choice: Choice{Type: Bitmask}, StaticPort: true}
	default:
		out.From, out.To = t.To, Endpoint{Addr: t.Binat}
		out.Rdr = &Translation{Addrs: exchanged(t.From.Addr), Choice: Choice{Type: Bitmask}}
	}
	return out
}

// exchanged returns the addresses of a binat's source. Any address stays as it is.
func exchanged(from Address) []Address {
	if from.Kind != AnyAddress {
		return []Address{from}
	}
	return []Address{
		{Kind: PrefixAddress, Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0)},
		{Kind: PrefixAddress, Prefix: netip.PrefixFrom(netip.IPv6Unspecified(), 0)},
	}
}
