package ruleset

import (
	"weir/pf/ast"
	"weir/pf/fingerprint"
	"weir/pf/resolve"
)

// lateOf returns the late fields that a rule asks for.
func lateOf(r *resolve.Rule) (late Late) {
	for field, asked := range [lateCount]bool{
		lateUser: r.User.Op != ast.AnyPort, lateGroup: r.Group.Op != ast.AnyPort, lateReceived: r.ReceivedOn.Asked,
		lateSystem: r.OS != "",
	} {
		if asked {
			late |= lateFirst << field
		}
	}
	if r.LogUser {
		late |= lateLogUser
	}
	return late
}

// lateFields makes the classes, vectors and trees of the late fields that rules ask for.
func (c *compiler) lateFields() error {
	user := func(r *resolve.Rule) resolve.Owner { return r.User }
	group := func(r *resolve.Rule) resolve.Owner { return r.Group }
	var asked Late
	for i := range c.program.Rules {
		asked |= c.program.Rules[i].Late
	}
	for i, collect := range [lateCount]func() *field{
		lateUser:     func() *field { return c.owners(user) },
		lateGroup:    func() *field { return c.owners(group) },
		lateReceived: c.received,
		lateSystem:   c.senders,
	} {
		if asked&(lateFirst<<i) == 0 {
			continue
		}
		if err := c.field(collect(), treeLate+i, 0); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) owners(of func(*resolve.Rule) resolve.Owner) *field {
	return collect(c.rules, func(r *resolve.Rule) question[resolve.Owner] {
		key := of(r)
		return question[resolve.Owner]{asked: key.Op != ast.AnyPort, key: key}
	}, func(o resolve.Owner) [2][]span { return [2][]span{ownerSpans(o)} })
}

// ownerSpans returns the numbers of users or groups that meet a condition. Nobody meets
// comparisons with = and != alone.
func ownerSpans(o resolve.Owner) []span {
	return spansOf(o.Op, uint64(o.Low), uint64(o.High), resolve.Nobody-1, resolve.Nobody)
}

// senders is the field of os: the position of the SYN's fingerprint, plus 1; 0: it has none.
func (c *compiler) senders() *field {
	for i := range c.systems {
		c.program.Fingerprints = append(c.program.Fingerprints, fingerprintOf(&c.systems[i].Fingerprint))
	}
	return collect(c.rules, func(r *resolve.Rule) question[string] {
		return question[string]{asked: r.OS != "", key: r.OS}
	}, func(name string) [2][]span {
		if name == fingerprint.Unknown {
			return [2][]span{{smallSpan(0, 0)}}
		}
		var all []span
		for _, i := range c.systems.Of(name) {
			all = append(all, smallSpan(uint64(i)+1, uint64(i)+1))
		}
		return [2][]span{join(all)}
	})
}

// received is the field of received-on. A packet that the box sends has the number 0, and
// meets negated conditions alone.
func (c *compiler) received() *field {
	return collect(c.rules, func(r *resolve.Rule) question[resolve.ReceivedOn] {
		key := r.ReceivedOn
		q := question[resolve.ReceivedOn]{asked: key.Asked, contrary: key.Not}
		key.Not = false
		q.key = key
		return q
	}, func(r resolve.ReceivedOn) [2][]span {
		own := []span{smallSpan(0, 0)}
		switch {
		case r.On.Any:
			return [2][]span{others(own)}
		case r.On.Not:
			return [2][]span{others(join(append(own, c.snapshot.indices(r.On.Name)...)))}
		}
		return [2][]span{c.snapshot.indices(r.On.Name)}
	})
}
