package parser

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/token"
)

// owners reads the conditions of user or group, as named by what, from the last to the
// first. As in pf, those of a later clause come before those of an earlier one. The rule
// reverses all of them at its end.
func (p *parser) owners(target *[]ast.Owner, what string) {
	first := len(*target)
	p.list(func() { *target = append(*target, p.owner(what)) })
	slices.Reverse((*target)[first:])
}

func (p *parser) owner(what string) ast.Owner {
	start := p.tok.Span
	op, unary := p.unaryPortOp()
	low := p.name("a " + what)
	o := ast.Owner{Op: op, Low: ast.ID{Word: low}}
	binary, inside := binaryPortOps[p.tok.Kind]
	if from, to, isRange := p.splitRange(low); isRange {
		if o.Op, o.Low.Word, o.High.Word = ast.PortRange, from.Word, to.Word; unary || inside {
			p.fail(low.Span, "a range takes no operator")
		}
	} else if inside && !unary {
		p.advance()
		o.Op, o.High = binary, ast.ID{Word: p.name("a " + what)}
	}
	o.Span = start.To(p.last)
	return o
}

// systems reads the names of operating systems after os.
func (p *parser) systems(e *ast.Endpoint) {
	if !p.acceptWord("os") {
		return
	}
	p.list(func() { e.OS = append(e.OS, p.systemName()) })
}

// systemName reads the name of an operating system: one word, or several in quotes.
func (p *parser) systemName() ast.Word {
	if p.is(token.Word) && p.tok.Text == "any" {
		w := ast.Word{Span: p.tok.Span, Text: p.tok.Text}
		p.advance()
		return w
	}
	return p.name("the name of an operating system")
}
