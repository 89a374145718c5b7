package ruleset

import (
	"net/netip"
	"slices"
	"strings"

	"weir/pf/resolve"
)

// A Snapshot holds what rules need to know besides their text: the host's present
// interfaces, and which load they belong to.
type Snapshot struct {
	Interfaces []Interface
	Load       uint64            // a rule with once that has matched begins anew in another load
	Loads      map[string]uint64 // likewise for rules of anchors that were loaded at run time, by path
	Down       map[Hop]bool      // gateways that do not answer
}

// A Hop is a gateway as a rule names it.
type Hop struct {
	Interface string     `json:"interface,omitempty"` // "": none is named
	Addr      netip.Addr `json:"addr"`
}

// HopsOf returns the gateways that rules name, each once, in their order. Networks of
// gateways, and interfaces without an address, are not among them.
func HopsOf(rules []*resolve.Rule) []Hop {
	var all []Hop
	for _, r := range rules {
		if r.Route == nil {
			continue
		}
		for _, t := range hopsOf(r.Route).targets {
			if hop, ok := t.hop(); ok && !slices.Contains(all, hop) {
				all = append(all, hop)
			}
		}
	}
	return all
}

// TranslatesTo reports whether rules translate to what an interface's addresses are at the time: to all, or to the first of each family.
func TranslatesTo(rules []*resolve.Rule, i *Interface) (first, all bool) {
	for _, r := range rules {
		translations := []*resolve.Translation{r.Nat, r.Rdr}
		if r.AfTo != nil {
			translations = append(translations, r.AfTo.From, r.AfTo.To)
		}
		for _, t := range translations {
			if t == nil {
				continue
			}
			for j := range t.Addrs {
				a := &t.Addrs[j]
				if a.Kind != resolve.InterfaceAddress || a.Modifier != resolve.NoModifier || a.Interface != resolve.Self && !i.is(a.Interface) {
					continue
				}
				first, all = first || a.NoAlias, all || !a.NoAlias
			}
		}
	}
	return first, all
}

// LoadOf returns which load a rule belongs to: that of the innermost anchor around it which
// was loaded at run time, or that of all rules.
func (s *Snapshot) LoadOf(r *resolve.Rule) uint64 {
	for path := r.Scope; path != ""; {
		if load, ok := s.Loads[path]; ok {
			return load
		}
		path = path[:max(0, strings.LastIndexByte(path, '/'))]
	}
	return s.Load
}

// An Interface is one of the host's interfaces.
type Interface struct {
	Name      string
	Index     uint32
	Groups    []string
	Addresses []Address // in the interface's order, without tentative ones
}

// An Address is an address of an interface, with the prefix length of its network.
type Address struct {
	Prefix     netip.Prefix
	Peer       netip.Addr // the other end of a point-to-point link; else not valid
	Deprecated bool       // not for new connections: no translation uses it
}

// usable reports whether a translation may use the address. Replies to a link-local
// address cannot come from beyond the link.
func (a Address) usable() bool {
	return !a.Deprecated && !a.Prefix.Addr().IsLinkLocalUnicast()
}

// named returns the interface with that name and the members of that group.
func (s *Snapshot) named(name string) []*Interface {
	var found []*Interface
	for i := range s.Interfaces {
		if name == resolve.Self || s.Interfaces[i].is(name) {
			found = append(found, &s.Interfaces[i])
		}
	}
	return found
}

// loopback reports whether the interface is a loopback device.
func (i *Interface) loopback() bool { return i.is("lo") }

func (i *Interface) is(name string) bool {
	return i.Name == name || slices.Contains(i.Groups, name)
}
