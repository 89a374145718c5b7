package model

import (
	"weir/pf/ast"
	"weir/pf/resolve"
)

// matchesFilter reports whether a packet meets a rule's conditions other than its
// addresses. The rate is the last: it counts the packets that meet all others.
func (m *Model) matchesFilter(r *resolve.Rule, a *ruleInput) bool {
	return matchesReceivedOn(&r.ReceivedOn, a.received) &&
		(r.TOS == 0 || r.TOS == a.tos) &&
		(!r.DSCP.Asked || r.DSCP.N == a.tos>>2) &&
		(!r.Prio.Asked || r.Prio.N == a.prio) &&
		(r.MaxPktSize == 0 || a.length <= int(r.MaxPktSize)) &&
		(!r.Fragment || a.fragment) && !m.used[r] &&
		(r.Probability == 0 || m.chance == nil || m.chance()) && m.admits(r, a) && !m.exceeds(r)
}

func matchesReceivedOn(asked *resolve.ReceivedOn, from *Interface) bool {
	return !asked.Asked || (from != nil && matchesInterface(&asked.On, from)) != asked.Not
}

func matchesInterface(on *resolve.Interface, i *Interface) bool {
	switch {
	case on.RDomain != nil:
		return (*on.RDomain == i.RDomain) != on.Not
	case on.Any:
		return true
	}
	return i.is(on.Name) != on.Not
}

// diverted reports whether a packet goes to a socket of the box, whatever its
// destination.
func (c *crossing) diverted() bool {
	return c.rule != nil && c.rule.Action == ast.Pass && c.rule.Divert.Kind == resolve.DivertTo
}

// mostChances is the number of rules with a probability that may match or not for one
// packet. Further ones match. Each doubles the results.
const mostChances = 8

// chances goes through all combinations of rules with a probability for a packet,
// beginning with all of them matching.
type chances struct {
	decided []bool // in the order of the rules
	asked   int
}

func (c *chances) draw() bool {
	if c.asked == len(c.decided) {
		if len(c.decided) == mostChances {
			return true
		}
		c.decided = append(c.decided, true)
	}
	c.asked++
	return c.decided[c.asked-1]
}

// next goes to the next combination; false if there is none.
func (c *chances) next() bool {
	c.decided, c.asked = c.decided[:c.asked], 0
	for n := len(c.decided); n > 0; n-- {
		if c.decided[n-1] {
			c.decided[n-1] = false
			c.decided = c.decided[:n]
			return true
		}
	}
	return false
}
