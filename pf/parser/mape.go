package parser

import (
	"strconv"

	"weir/pf/ast"
	"weir/pf/token"
)

// Limits of map-e-portset, which divides the 16 bits of a port.
const (
	maxMapEOffset = 15
	portBits      = 16
)

// mapE reads the three numbers after map-e-portset: how many bits of a port come before
// the owner's number, the length of that number, and the number.
func (p *parser) mapE(pool *ast.Pool, at token.Span) {
	m := &ast.MapE{}
	for i, target := range []*uint16{&m.Offset, &m.Length, &m.ID} {
		if i > 0 {
			p.expect(token.Slash, "a number of map-e-portset")
		}
		w := p.name("a number of map-e-portset")
		n, err := strconv.ParseUint(w.Text, 0, portBits)
		if err != nil {
			p.fail(w.Span, "map-e-portset takes numbers up to 65535, not %q", w.Text)
		}
		*target = uint16(n)
	}
	m.Span = at.To(p.last)
	switch {
	case pool.MapE != nil:
		p.givenTwice(at, pool.MapE.Span, "map-e-portset")
	case m.Offset < 1 || m.Offset > maxMapEOffset:
		p.faults.Errorf(m.Span, "the first number of map-e-portset must be 1 to %d", maxMapEOffset)
	case m.Length < 1 || m.Length > portBits-m.Offset:
		p.faults.Errorf(m.Span, "the second number of map-e-portset must be 1 to %d", portBits-m.Offset)
	case int(m.ID) >= 1<<m.Length:
		p.faults.Errorf(m.Span, "the third number of map-e-portset has more than %d bits", m.Length)
	default:
		pool.MapE = m
	}
}
