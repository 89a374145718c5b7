package lint

import (
	"net/netip"
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
)

// maxSources bounds how many rules of nat and binat each filter rule is compared with. Beyond,
// nothing is found.
const maxSources = 64

// A source is a rule of FreeBSD's lists for packets on their way out.
type source struct {
	*resolve.TranslationRule
	rule *resolve.Rule // as a filter rule that takes its packets
	only *index        // of it; nil: it translates nothing, or not all of its packets
}

// replacedSources warns about filter rules that ask for a source which no packet has any more:
// FreeBSD's nat and binat replace it before the filter rules.
func replacedSources(rules *resolve.Ruleset, list *diag.List) {
	sources := sourcesOf(rules.Translations)
	if len(sources) == 0 || len(sources) > maxSources {
		return
	}
	by := func(r *resolve.Rule) *resolve.Rule {
		if r.Direction != ast.Out || r.Action == ast.Pass && r.State == resolve.NoState || r.Anchor != nil || r.Scope != "" {
			return nil
		}
		return replacing(rules, sources, r)
	}
	f := newFates()
	for _, r := range rules.Rules {
		if r.Action == ast.Match && r.Nat != nil {
			break // later rules meet what this one makes
		}
		f.add(r, by(r))
	}
	f.warn(list, "nat translates the source first")
}

// sourcesOf returns the rules in the order in which packets meet them.
func sourcesOf(translations []*resolve.TranslationRule) (all []source) {
	for _, kind := range []resolve.TranslationKind{resolve.BinatRule, resolve.NatRule} {
		var add func(of []*resolve.TranslationRule, anchored bool)
		add = func(of []*resolve.TranslationRule, anchored bool) {
			for _, t := range of {
				if t.Kind != kind {
					continue
				}
				if t.Path != "" {
					add(t.Inside, true)
					continue
				}
				r := t.Rule
				r.Quick, r.Direction = true, ast.Out
				s := source{TranslationRule: t, rule: &r}
				if !t.No && !anchored && takesAll(&r) {
					s.only = newIndex()
					s.only.add(&r)
				}
				all = append(all, s)
			}
		}
		add(translations, false)
	}
	return all
}

// replacing returns the rule that replaces the source of all packets that a filter rule asks for. It is
// nil if some keep it, or get one that the rule asks for, too.
func replacing(rules *resolve.Ruleset, sources []source, r *resolve.Rule) (by *resolve.Rule) {
	for _, family := range familiesOf(rules, r) {
		narrow := *r
		narrow.Family = family
		var found *resolve.Rule
		for i := range sources {
			s := &sources[i]
			if !sameWay(s.rule, &narrow) {
				continue
			}
			if s.No {
				if found == nil && mayMeet(&s.rule.From.Addr, &r.From.Addr) && mayMeet(&s.rule.To.Addr, &r.To.Addr) {
					return nil
				}
				continue
			}
			if !s.leadsOutside(rules, &r.From.Addr) {
				return nil
			}
			if found == nil && s.only != nil && namesHosts(s.rule) {
				found = s.only.find(&narrow)
			}
		}
		if found == nil {
			return nil
		}
		by = found
	}
	return by
}

// familiesOf returns the families of packets that a rule can match. A table with entries of one family
// stands for that one.
func familiesOf(rules *resolve.Ruleset, r *resolve.Rule) []ast.Family {
	if r.Family != ast.AnyFamily {
		return []ast.Family{r.Family}
	}
	a := &r.From.Addr
	if a.Kind == resolve.PrefixAddress {
		return []ast.Family{familyOf(a.Prefix.Addr().Is4())}
	}
	has := map[ast.Family]bool{}
	for _, t := range rules.Tables {
		if a.Kind == resolve.TableAddress && t.Name == a.Table {
			for _, e := range t.Entries {
				has[familyOf(e.Prefix.Addr().Is4())] = true
			}
		}
	}
	if len(has) == 1 {
		for family := range has {
			return []ast.Family{family}
		}
	}
	return []ast.Family{ast.Inet, ast.Inet6}
}

func familyOf(is4 bool) ast.Family {
	if is4 {
		return ast.Inet
	}
	return ast.Inet6
}

// sameWay reports whether a packet may meet both rules, by interface, family and protocol.
func sameWay(t, r *resolve.Rule) bool {
	named := func(i *resolve.Interface) bool { return !i.Any && !i.Not && !i.Group && i.RDomain == nil }
	if named(&t.Interface) && named(&r.Interface) && t.Interface.Name != r.Interface.Name {
		return false
	}
	return (t.Family == ast.AnyFamily || t.Family == r.Family) && (t.Proto == 0 || r.Proto == 0 || t.Proto == r.Proto)
}

// mayMeet reports whether an address may be in both.
func mayMeet(a, b *resolve.Address) bool {
	plain := func(x *resolve.Address) bool { return x.Kind == resolve.PrefixAddress && !x.Not }
	return !plain(a) || !plain(b) || a.Prefix.Overlaps(b.Prefix)
}

// leadsOutside reports whether no new source is among the hosts of from. That an interface has none of their
// addresses is known if the rules translate them to it: namesHosts.
func (s *source) leadsOutside(rules *resolve.Ruleset, from *resolve.Address) bool {
	pool := []resolve.Address{s.Binat}
	if s.Nat != nil {
		pool = s.Nat.Addrs
	}
	for i := range pool {
		p := &pool[i]
		switch from.Kind {
		case resolve.PrefixAddress:
			if p.Kind == resolve.PrefixAddress && from.Prefix.Overlaps(p.Prefix) {
				return false
			}
		case resolve.TableAddress:
			if p.Kind == resolve.PrefixAddress && tableMeets(rules, from.Table, p.Prefix) {
				return false
			}
		case resolve.InterfaceAddress:
			if p.Kind == resolve.PrefixAddress || from.Interface == resolve.Self || from.Interface == p.Interface || from.Interface == s.rule.Interface.Name {
				return false
			}
		default:
			return false
		}
	}
	return !from.Not && len(pool) > 0
}

// tableMeets reports whether an entry of a table overlaps a network.
func tableMeets(rules *resolve.Ruleset, name string, p netip.Prefix) bool {
	for _, t := range rules.Tables {
		if t.Name == name && slices.ContainsFunc(t.Entries, func(e resolve.TableEntry) bool { return !e.Not && e.Prefix.Overlaps(p) }) {
			return true
		}
	}
	return false
}

// namesHosts reports whether a rule translates named hosts, and not all.
func namesHosts(r *resolve.Rule) bool {
	return r.From.Addr.Kind != resolve.AnyAddress && !r.From.Addr.Not
}
