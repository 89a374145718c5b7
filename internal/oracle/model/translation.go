package model

import (
	"net/netip"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// listsOf are FreeBSD's lists of translation rules for each direction, in the order of
// its kernel. For incoming packets this differs from pf.conf(5), which has binat first.
var listsOf = map[ast.Direction][]resolve.TranslationKind{
	ast.In:  {resolve.RdrRule, resolve.BinatRule},
	ast.Out: {resolve.BinatRule, resolve.NatRule},
}

// translateFirst evaluates FreeBSD's translation rules, which come before the filter
// rules: the first that matches translates. With pass it decides, and the packet skips the
// filter rules.
func (m *Model) translateFirst(c *crossing, a *ruleInput) {
	if a.fragment {
		return // it is not translated
	}
	for _, kind := range listsOf[a.direction] {
		t, _ := m.firstOf(m.rules.Translations, kind, c, a)
		if t == nil {
			continue
		}
		c.translation, c.seen = t, a.tuple
		c.takeTable(&t.Rule)
		if t.Pass {
			c.rule = m.listed[listed{t, a.direction}]
			c.stop = c.rule
		}
		if kind == resolve.BinatRule {
			m.exchange(c, t, a)
		} else {
			m.translate(c, &t.Rule, a)
		}
		return
	}
}

// A listed is a translation rule in one direction.
type listed struct {
	rule      *resolve.TranslationRule
	direction ast.Direction
}

// numberRules numbers all rules: those of the translation lists stand before the filter
// rules.
func (m *Model) numberRules() {
	m.sequence = m.rules.Sequence()
	m.ruleCounters = make([]RuleCounter, len(m.sequence))
	m.numbers, m.listed = make(map[*resolve.Rule]int), make(map[listed]*resolve.Rule)
	for i, r := range m.sequence {
		m.numbers[r] = i
	}
	for _, l := range m.rules.First {
		m.listed[listed{l.Of, l.Direction}] = &l.Rule
	}
}

// Number returns the position of a rule among all of them.
func (m *Model) Number(r *resolve.Rule) int { return m.numbers[r] }

// countLists counts that a crossing has evaluated the lists, up to the rule that ended it.
// Which of their rules were compared is not counted.
func (m *Model) countLists(stop *resolve.Rule) {
	for i, l := range m.rules.First {
		if l.IsEther {
			continue // frames meet these
		}
		m.ruleCounters[i].Evaluations++
		if &l.Rule == stop {
			return
		}
	}
}

// firstOf returns the first rule of a list that matches. It returns nil if none does, or
// if that rule says that nothing is translated. Ended: a rule of either kind was found.
func (m *Model) firstOf(rules []*resolve.TranslationRule, kind resolve.TranslationKind, c *crossing, a *ruleInput) (first *resolve.TranslationRule, ended bool) {
	for _, t := range rules {
		if t.Kind != kind || !m.matchesTranslationRule(t, a) {
			continue
		}
		if t.Tag != "" {
			a.tag, c.tag = t.Tag, t.Tag
		}
		if !t.Pass {
			c.logged(&t.Rule)
			c.counts(m.ruleBase + uint32(m.numbers[m.listed[listed{t, a.direction}]]) + 1)
		}
		switch {
		case t.No:
			return nil, true
		case t.Path == "":
			return t, true
		}
		if first, ended := m.firstOf(t.Inside, kind, c, a); ended {
			return first, true
		}
	}
	return nil, false
}

// matchesTranslationRule tests an incoming packet against a binat rule's addresses in
// reverse: the packet goes from To to the translation of From.
func (m *Model) matchesTranslationRule(t *resolve.TranslationRule, a *ruleInput) bool {
	if t.Kind != resolve.BinatRule || t.No || t.Path != "" || a.direction == ast.Out {
		return m.matches(&t.Rule, a)
	}
	back := t.Rule
	back.From, back.To = t.To, resolve.Endpoint{Addr: t.Binat}
	return m.matches(&back, a)
}

// exchange applies a binat rule: the packet keeps its ports, and the part of its address
// behind the network.
func (m *Model) exchange(c *crossing, t *resolve.TranslationRule, a *ruleInput) {
	if a.direction == ast.Out {
		addr := m.moved(&t.Binat, a.tuple.Src, a.family)
		c.nat = &target{&resolve.Translation{Addrs: oneAddress(addr), StaticPort: true}, addr, 0}
		if addr.IsValid() {
			a.tuple.Src = addr
		}
		return
	}
	addr := m.moved(&t.From.Addr, a.tuple.Dst, a.family)
	c.rdr = &target{&resolve.Translation{Addrs: oneAddress(addr)}, addr, a.tuple.DPort}
	if addr.IsValid() {
		a.tuple.Dst = addr
	}
}

func oneAddress(addr netip.Addr) []resolve.Address {
	if !addr.IsValid() {
		return nil
	}
	return []resolve.Address{{Kind: resolve.PrefixAddress, Prefix: netip.PrefixFrom(addr, addr.BitLen())}}
}

// moved returns addr with the network of to. Of an interface's addresses the first
// counts; the address is invalid if there is none of the family. If to is any, addr does
// not change.
func (m *Model) moved(to *resolve.Address, addr netip.Addr, family int) netip.Addr {
	if to.Kind == resolve.AnyAddress {
		return addr
	}
	networks := m.pool(to, family)
	if len(networks) == 0 {
		return netip.Addr{}
	}
	first, host := networks[0].Addr().AsSlice(), addr.AsSlice()
	for bit := networks[0].Bits(); bit < len(host)*8; bit++ {
		mask := byte(0x80 >> (bit % 8))
		first[bit/8] = first[bit/8]&^mask | host[bit/8]&mask
	}
	moved, _ := netip.AddrFromSlice(first)
	return moved
}
