package model

import (
	"net/netip"

	"weir/pf/resolve"
)

// listsOf are FreeBSD's lists of translation rules that are asked in a
// direction, in this order.
var listsOf = map[resolve.Direction][]resolve.TranslationKind{
	resolve.In:  {resolve.BinatRule, resolve.RdrRule},
	resolve.Out: {resolve.BinatRule, resolve.NatRule},
}

// translateFirst asks the translation rules of FreeBSD, which stand before the
// filter rules: the first that matches translates. It reports whether that rule
// passes the packet by the filter rules.
func (m *Model) translateFirst(c *crossing, a *asked) bool {
	if len(m.rules.Translations) == 0 {
		return false
	}
	for _, kind := range listsOf[a.direction] {
		t := m.firstOf(kind, c, a)
		if t == nil {
			continue
		}
		c.translation, c.log = t, c.log || t.Log
		if kind == resolve.BinatRule {
			m.exchange(c, t, a)
		} else {
			m.translate(c, &t.Rule, a)
		}
		return t.Pass
	}
	return false
}

// firstOf returns the first rule of a list that matches; nil if none does, or
// if it says that nothing is translated.
func (m *Model) firstOf(kind resolve.TranslationKind, c *crossing, a *asked) *resolve.TranslationRule {
	for _, t := range m.rules.Translations {
		if t.Kind != kind || t.Anchor != "" || !m.matchesTranslationRule(t, a) {
			continue
		}
		if t.Tag != "" {
			a.tag, c.tag = t.Tag, t.Tag
		}
		if t.No {
			return nil
		}
		return t
	}
	return nil
}

// matchesTranslationRule asks a packet that comes in for a binat rule's
// addresses the other way round: it goes from To to what From is translated to.
func (m *Model) matchesTranslationRule(t *resolve.TranslationRule, a *asked) bool {
	if t.Kind != resolve.BinatRule || t.No || a.direction == resolve.Out {
		return m.matches(&t.Rule, a)
	}
	back := t.Rule
	back.From, back.To = t.To, resolve.Endpoint{Addr: t.Binat}
	return m.matches(&back, a)
}

// exchange applies a binat rule: the packet keeps its ports, and of its address
// the part behind the network.
func (m *Model) exchange(c *crossing, t *resolve.TranslationRule, a *asked) {
	if a.direction == resolve.Out {
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

// moved returns addr with the network of to. Of an interface's addresses the
// first counts; the address is invalid if there is none of the family. Any
// network leaves it as it is.
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
