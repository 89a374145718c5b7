package parser

import (
	"slices"

	"weir/pf/ast"
	"weir/pf/fingerprint"
	"weir/pf/source"
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
	p.asksSystem = true
}

// fingerprints opens the file of set fingerprints, or the usual one, which need not be there.
// It returns nil if no rule asks for an operating system. If only rules of anchors ask that
// were loaded at run time, the usual file came with them.
func (p *parser) fingerprints(anchors source.Anchors) *token.File {
	switch {
	case p.systemFile != nil && p.asksSystem:
		return p.open(p.systemFile.Value, p.systemFile.Span)
	case p.systemFile != nil: // for rules that an anchor may have later
		p.tryOpen(p.files.open, source.Path(p.files.set.Position(p.systemFile.Value.Pos).File, p.systemFile.Value.Text))
		return nil
	case !p.asksSystem:
		return nil
	}
	if file := p.tryOpen(p.files.open, fingerprint.File); file != nil {
		return file
	}
	for i := range anchors {
		if file := p.tryOpen(anchors[i].Files, fingerprint.File); file != nil {
			return file
		}
	}
	return nil
}

// tryOpen opens a file that need not be there.
func (p *parser) tryOpen(from source.Opener, path string) *token.File {
	if from == nil {
		return nil
	}
	text, err := from.Open(path, p.files.left)
	if err != nil || len(text) > p.files.left {
		return nil
	}
	return p.files.set.AddFile(path, text)
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
