package ruleset

import (
	"cmp"
	"fmt"
	"slices"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// A question is a rule's condition on a field.
type question[K comparable] struct {
	asked    bool // false: no condition
	contrary bool // the condition is negated
	key      K    // conditions with the same key are the same
}

// collect gathers the rules' conditions on a field. spans returns the numbers that meet a
// condition.
func collect[K comparable](rules []*resolve.Rule, ask func(*resolve.Rule) question[K], spans func(K) [2][]span) *field {
	f := &field{common: newVector(len(rules))}
	known := map[K]*condition{}
	for i, r := range rules {
		q := ask(r)
		if !q.asked || q.contrary {
			f.common[i/64] |= 1 << (i % 64)
		}
		if !q.asked {
			continue
		}
		c := known[q.key]
		if c == nil {
			c = &condition{spans: spans(q.key)}
			known[q.key] = c
			f.conditions = append(f.conditions, c)
		}
		c.rules = append(c.rules, i)
	}
	return f
}

// fields makes the classes, vectors and trees of all fields.
func (c *compiler) fields() error {
	to := func(r *resolve.Rule) *resolve.Endpoint { return &r.To }
	from := func(r *resolve.Rule) *resolve.Endpoint { return &r.From }
	for _, f := range []struct {
		*field
		small, large int // numbers of trees
	}{
		{c.addresses(to), fieldDst, treeDst6},
		{c.addresses(from), fieldSrc, treeSrc6},
		{c.ports(to), fieldDport, 0},
		{c.ports(from), fieldSport, 0},
		{c.protocols(), fieldProtocol, 0},
		{c.places(), fieldInterface, 0},
	} {
		if err := c.field(f.field, f.small, f.large); err != nil {
			return err
		}
	}
	return c.lateFields()
}

// field makes one field's classes and trees. large is the number of the tree for 128-bit
// numbers, or 0 if the field has none.
func (c *compiler) field(f *field, small, large int) error {
	p := c.program
	classifier := newClassifier(p, f)
	stretches, err := classifier.stretches(0)
	if err != nil {
		return err
	}
	p.Trees[small] = p.addSmall(stretches)
	if large != 0 {
		if stretches, err = classifier.stretches(1); err != nil {
			return err
		}
		p.Trees[large] = p.addLarge(stretches)
	}
	if len(p.Lines) > maxLines {
		return &Error{Rule: f.widest(), What: fmt.Sprintf("its addresses, with those of other rules, make more than %d lines of trees", maxLines)}
	}
	return nil
}

// widest returns the first rule of the condition with the most spans.
func (f *field) widest() int {
	size := func(c *condition) int { return len(c.spans[0]) + len(c.spans[1]) }
	widest := slices.MaxFunc(f.conditions, func(a, b *condition) int { return cmp.Compare(size(a), size(b)) })
	return widest.rules[0]
}

func (c *compiler) addresses(side func(*resolve.Rule) *resolve.Endpoint) *field {
	return collect(c.rules, func(r *resolve.Rule) question[resolve.Address] {
		key := side(r).Addr
		q := question[resolve.Address]{asked: key.Kind != resolve.AnyAddress && !isTable(&key) && !asksRoute(&key), contrary: key.Not}
		key.Not = false
		q.key = key
		return q
	}, func(a resolve.Address) [2][]span { return c.spans(&a) })
}

func (c *compiler) ports(side func(*resolve.Rule) *resolve.Endpoint) *field {
	return collect(c.rules, func(r *resolve.Rule) question[resolve.PortRange] {
		key := side(r).Port
		return question[resolve.PortRange]{asked: key.Op != ast.AnyPort, key: key}
	}, func(r resolve.PortRange) [2][]span {
		return [2][]span{portSpans(r)}
	})
}

func (c *compiler) protocols() *field {
	return collect(c.rules, func(r *resolve.Rule) question[protocol] {
		p := c.protocolOf(r)
		p.fragments = c.fragments
		return question[protocol]{asked: !p.asksNothing(), key: p}
	}, func(p protocol) [2][]span {
		return [2][]span{p.spans()}
	})
}

func (c *compiler) places() *field {
	return collect(c.rules, func(r *resolve.Rule) question[place] {
		p := placeOf(r)
		return question[place]{asked: !p.asksNothing(), key: p}
	}, func(p place) [2][]span {
		return [2][]span{p.spans(&c.snapshot)}
	})
}
