package parser

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/source"
	"weir/pf/token"
)

// maxTableName is PF_TABLE_NAME_SIZE without the NUL.
const maxTableName = 31

// table reads a table, its lists of addresses and the names of its files.
func (p *parser) table() ast.Stmt {
	t := &ast.Table{Span: p.tok.Span}
	p.advance()
	p.expect(token.Less, "table")
	t.Name = p.tableName()
	for p.tableOption(t) {
	}
	t.Span = t.Span.To(p.last)
	return t
}

var tableOptions = []string{"const", "persist", "counters", "file"}

// tableOption reads an option after a table's name, if there is one.
func (p *parser) tableOption(t *ast.Table) bool {
	at := p.tok.Span
	switch {
	case p.acceptWord("const"):
		t.Flags.Const = true
	case p.acceptWord("persist"):
		t.Flags.Persist = true
	case p.acceptWord("counters"):
		t.Flags.Counters = true
	case p.acceptWord("file"):
		file := p.fileName()
		of := ast.TableSource{Span: at.To(p.last), File: &file}
		if !p.elsewhere(t.Name.Text, file) {
			of.Text = p.open(file, of.Span)
		}
		file.Text = source.From(p.files.first, p.files.set.Position(file.Pos).File, file.Text)
		t.Sources = append(t.Sources, of)
	case p.is(token.LeftBrace):
		list := ast.TableSource{}
		p.braces(true, func() { list.Hosts = append(list.Hosts, p.tableHost()) })
		list.Span = at.To(p.last)
		t.Sources = append(t.Sources, list)
	case p.is(token.Word):
		p.failWith(diag.Diagnostic{
			Span:    at,
			Message: "a table has no option " + strconv.Quote(p.tok.Text),
			Suggest: diag.Nearest(p.tok.Text, tableOptions),
		})
	default:
		return false
	}
	return true
}

// elsewhere warns about a missing file if the table's content is known without it, and
// reports whether it did. A rule file is often checked on another machine than its own.
func (p *parser) elsewhere(table string, name ast.Word) bool {
	if p.files.open == nil || p.files.known == nil || !p.files.known(table) {
		return false
	}
	path := source.Path(p.files.set.Position(name.Pos).File, name.Text)
	if _, err := p.files.open.Open(path, p.files.left); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	p.faults.Add(diag.Diagnostic{
		Severity: diag.Warning, Span: name.Span,
		Message: fmt.Sprintf("%s is missing; table <%s> holds what the host's description says", path, table),
	})
	return true
}

// tableName reads a table's name and the closing >.
func (p *parser) tableName() ast.Word {
	if !p.tok.IsText() || p.tok.Text == "" {
		p.expected("the name of a table")
	}
	name := ast.Word{Span: p.tok.Span, Text: p.tok.Text}
	if len(name.Text) > maxTableName {
		p.fail(name.Span, "the name of a table has at most %d characters", maxTableName)
	}
	p.advance()
	p.expect(token.Greater, "the name of a table")
	return name
}

// tableHost reads an address that is allowed in a table.
func (p *parser) tableHost() ast.Host {
	h := p.host()
	p.weight(&h)
	switch h.Kind {
	case ast.HostTable:
		p.faults.Errorf(h.Span, "a table cannot hold a table")
	case ast.HostDynamic:
		p.faults.Errorf(h.Span, "a table cannot hold the changing addresses of an interface; leave the parentheses out")
	case ast.HostAny:
		p.faults.Errorf(h.Span, "a table cannot hold any; write 0.0.0.0/0 and ::/0")
	}
	return h
}
