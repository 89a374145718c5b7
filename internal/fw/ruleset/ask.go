package ruleset

import "weir/pf/resolve"

// askMore adds the conditions that are no fields.
func (a *Rule) askMore(r *resolve.Rule) {
	a.askRoute(&r.From.Addr, NoRouteBack)
	a.askRoute(&r.To.Addr, NoRoute)
	a.TOS, a.MaxSize, a.Chance = r.TOS, r.MaxPktSize, r.Probability
	if r.DSCP.Asked {
		a.AsksDSCP = r.DSCP.N + 1
	}
	if r.Prio.Asked {
		a.AsksPrio = r.Prio.N + 1
	}
	a.Late = lateOf(r)
	if a.FactsMask != 0 || a.Late&^lateLogUser != 0 || a.TOS != 0 || a.AsksDSCP != 0 || a.AsksPrio != 0 || a.MaxSize != 0 || a.Chance != 0 || a.More&(Once|LogMatches|Rated|Limited) != 0 {
		a.Flags |= AsksMore
	}
}

// askRoute adds a condition on the route of an address. none is the fact that there is no
// route to it.
func (a *Rule) askRoute(of *resolve.Address, none Facts) {
	switch of.Kind {
	case resolve.NoRouteAddress:
	case resolve.URPFFailedAddress:
		none = URPFFailed
	default:
		return
	}
	a.FactsMask |= none
	if !of.Not {
		a.Facts |= none
	}
}

// asksRoute reports whether an address is a condition on its route.
func asksRoute(a *resolve.Address) bool {
	return a.Kind == resolve.NoRouteAddress || a.Kind == resolve.URPFFailedAddress
}
