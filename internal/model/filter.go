package model

import "weir/pf/resolve"

// defaultPrio is the priority of packets that nothing has given another.
const defaultPrio = 3

// SetChance says who decides whether a rule with a probability matches a packet
// that has all else it asks for. By default all such rules match.
func (m *Model) SetChance(chance func(*resolve.Rule) bool) { m.chance = chance }

// matchesFilter reports whether a packet has what a rule asks for besides its
// addresses. A rule for once, or at a rate, meets each packet as its first.
func (m *Model) matchesFilter(r *resolve.Rule, a *asked) bool {
	return matchesReceivedOn(&r.ReceivedOn, a.received) &&
		(r.TOS == 0 || r.TOS == a.tos) &&
		(!r.Prio.Asked || r.Prio.N == defaultPrio) &&
		(r.MaxPktSize == 0 || a.length <= int(r.MaxPktSize)) &&
		!r.Fragment &&
		(r.Probability == 0 || m.chance == nil || m.chance(r))
}

func matchesReceivedOn(asked *resolve.ReceivedOn, from *Interface) bool {
	return !asked.Asked || (from != nil && matchesInterface(&asked.On, from)) != asked.Not
}

func matchesInterface(on *resolve.Interface, i *Interface) bool {
	switch {
	case on.Any:
		return true
	case on.RDomain != nil:
		return (*on.RDomain == i.RDomain) != on.Not
	}
	return i.is(on.Name) != on.Not
}
