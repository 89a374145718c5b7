package ruleset

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// A place is a rule's condition on the interface and the direction.
type place struct {
	on        resolve.Interface
	direction ast.Direction
}

func placeOf(r *resolve.Rule) place {
	on := r.Interface
	if on.RDomain != nil {
		on.Name, on.Group, on.RDomain = RDomainGroup(*on.RDomain), true, nil
	}
	return place{on, r.Direction}
}

// RDomainGroup is the group of the interfaces of a routing domain. No rule can name it.
func RDomainGroup(number uint32) string { return fmt.Sprintf("rdomain %d", number) }

func (p *place) asksNothing() bool { return p.on.Any && p.direction == ast.AnyDirection }

// spans returns the places that meet the condition, among all possible interface indexes.
func (p *place) spans(s *Snapshot) []span {
	var indices []span
	switch {
	case p.on.Any:
		indices = []span{smallSpan(0, anyIndex)}
	case p.on.Not:
		indices = others(s.indices(p.on.Name))
	default:
		indices = s.indices(p.on.Name)
	}
	var spans []span
	for i, direction := range []ast.Direction{ast.In, ast.Out} {
		if p.direction != ast.AnyDirection && p.direction != direction {
			continue
		}
		for _, s := range indices {
			base := uint64(i) << 31
			spans = append(spans, smallSpan(base|s.first.lo, base|s.last.lo))
		}
	}
	return spans
}

// anyIndex is the largest interface index in a place.
const anyIndex = 1<<31 - 1

// indices returns the indexes of the interface with this name, or of the members of this
// group.
func (s *Snapshot) indices(name string) []span {
	var spans []span
	for _, i := range s.named(name) {
		spans = append(spans, smallSpan(uint64(i.Index), uint64(i.Index)))
	}
	return join(spans)
}

// others returns the indexes between spans.
func others(spans []span) []span {
	var between []span
	next := uint64(0)
	for _, s := range spans {
		if s.first.lo > next {
			between = append(between, smallSpan(next, s.first.lo-1))
		}
		next = s.last.lo + 1
	}
	if next <= anyIndex {
		between = append(between, smallSpan(next, anyIndex))
	}
	return between
}
