package parser

import (
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// unsupportedStatements start statements of OpenBSD's pf, or of FreeBSD's,
// that are not read yet.
var unsupportedStatements = []string{
	"anchor", "include", "load", "queue", "state", "source",
	"scrub",
	"altq", "ether", "dnpipe", "dnqueue",
}

func (p *parser) statement() ast.Stmt {
	if p.is(token.RightBrace) && p.blocks > 0 {
		p.blocks--
		p.advance()
		return nil
	}
	if !p.tok.IsText() {
		p.expected("a statement")
	}
	if p.peek().Kind == token.Equal {
		return p.macro()
	}
	if p.is(token.Word) {
		switch word := p.tok.Text; {
		case word == "pass", word == "block", word == "match":
			return p.rule()
		case word == "nat", word == "rdr", word == "binat", word == "no" && p.startsNo("nat", "rdr", "binat"):
			return p.translation()
		case word == "nat-anchor", word == "rdr-anchor", word == "binat-anchor":
			return p.translationAnchor()
		case word == "antispoof":
			return p.antispoof()
		case word == "table":
			return p.table()
		case word == "set":
			return p.set()
		case startsStatement[word]:
			return p.unsupportedStatement()
		}
	}
	p.failWith(diag.Diagnostic{
		Span:    p.tok.Span,
		Message: "no statement starts with " + p.describe(),
		Suggest: diag.Nearest(p.tok.Text, statementWords),
	})
	return nil
}

// unsupportedStatement reports the statement and goes to the end of its line.
// The statements of a block that it opens are read as usual.
func (p *parser) unsupportedStatement() ast.Stmt {
	name, at := p.tok.Text, p.tok.Span
	if next := p.peek(); next.Kind == token.Word && (name == "no" || name == "load" || name == "state" || name == "source") {
		p.advance()
		name, at = name+" "+next.Text, at.To(next.Span)
	}
	p.faults.Errorf(at, "%s is not supported yet", name)
	for !p.is(token.Newline) && !p.is(token.EOF) {
		switch p.tok.Kind {
		case token.LeftBrace:
			p.blocks++
		case token.RightBrace:
			p.blocks = max(0, p.blocks-1)
		}
		p.advance()
	}
	return nil
}

// macro reads name = value, where the value is a row of words and strings.
func (p *parser) macro() ast.Stmt {
	name := p.tok
	if !isMacroName(name.Text) {
		p.fail(name.Span, "%q cannot name a macro: letters, digits and _ can", name.Text)
	}
	p.advance()
	p.advance()
	var values []token.Token
	for ; p.tok.IsText(); p.advance() { // no token behind the line is read before the macro is there
		if values = append(values, p.tok); len(values) > maxItems {
			p.fail(p.tok.Span, "the value of a macro has more than %d words", maxItems)
		}
	}
	switch {
	case p.tok.Kind != token.Newline && p.tok.Kind != token.EOF:
		p.fail(p.tok.Span, "%s must be quoted in the value of a macro", p.describe())
	case len(values) == 0:
		p.expected("a value after " + name.Text + " =")
	}
	return &ast.Macro{
		Span:  name.Span.To(p.last),
		Name:  ast.Word{Span: name.Span, Text: name.Text},
		Value: p.stream.Define(name.Text, values),
	}
}

func isMacroName(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

// set reads an option.
func (p *parser) set() ast.Stmt {
	start := p.tok.Span
	p.advance()
	name := p.tok
	if method := options[name.Text]; method != nil && p.is(token.Word) {
		p.advance()
		return method(p, start)
	}
	if !p.tok.IsText() {
		p.expected("the name of an option after set")
	}
	for _, word := range unsupportedOptions {
		if p.isWord(word) {
			p.fail(start.To(name.Span), "set %s is not supported yet", word)
		}
	}
	p.failWith(diag.Diagnostic{
		Span:    name.Span,
		Message: "there is no option " + p.describe(),
		Suggest: diag.Nearest(name.Text, optionWords),
	})
	return nil
}

var options = map[string]func(*parser, token.Span) ast.Stmt{
	"timeout":       (*parser).setTimeout,
	"limit":         (*parser).setLimit,
	"skip":          (*parser).setSkip,
	"block-policy":  (*parser).setBlockPolicy,
	"implicit-pass": (*parser).setImplicitPass,
}

var unsupportedOptions = []string{
	"debug", "fingerprints", "hostid", "interface-group", "keepcounters", "loginterface", "optimization",
	"reassemble", "require-order", "ruleset-optimization", "state-defaults", "state-policy", "syncookies",
}

func (p *parser) setTimeout(start token.Span) ast.Stmt {
	s := &ast.Timeout{}
	p.list(func() { s.Items = append(s.Items, p.setting(timeoutNames, "timeout")) })
	s.Span = start.To(p.last)
	return s
}

func (p *parser) setLimit(start token.Span) ast.Stmt {
	s := &ast.Limit{}
	p.list(func() {
		for _, word := range unsupportedLimits {
			if p.isWord(word) {
				p.faults.Errorf(p.tok.Span, "set limit %s is not supported yet", word)
				p.advance()
				p.number("the limit of "+word, 1<<32-1)
				return
			}
		}
		s.Items = append(s.Items, p.setting([]string{"states"}, "limit"))
	})
	s.Span = start.To(p.last)
	return s
}

var unsupportedLimits = []string{"anchors", "frags", "pktdelay-pkts", "src-nodes", "table-entries", "tables"}

// setting reads one of names and a number.
func (p *parser) setting(names []string, kind string) ast.Setting {
	name := p.word("the name of a " + kind)
	known := false
	for _, n := range names {
		known = known || n == name.Text
	}
	if !known {
		p.failWith(diag.Diagnostic{
			Span:    name.Span,
			Message: "there is no " + kind + " " + strconv.Quote(name.Text),
			Suggest: diag.Nearest(name.Text, names),
		})
	}
	value, n := p.number("the value of "+name.Text, 1<<32-1)
	return ast.Setting{Name: name, Value: value, Count: uint32(n)}
}

// number reads a number that is not greater than limit.
func (p *parser) number(what string, limit uint64) (ast.Word, uint64) {
	if p.tok.Kind != token.Number {
		p.expected("a number for " + what)
	}
	n, err := strconv.ParseUint(p.tok.Text, 10, 64)
	if err != nil || n > limit {
		p.fail(p.tok.Span, "%s is too large: at most %d", what, limit)
	}
	return p.word(what), n
}

func (p *parser) setSkip(start token.Span) ast.Stmt {
	p.expectWord("on", "set skip")
	s := &ast.Skip{}
	p.list(func() {
		i := p.interfaceName()
		if i.Not {
			p.faults.Errorf(i.Span, "set skip on takes no !")
		}
		s.Interfaces = append(s.Interfaces, i)
	})
	s.Span = start.To(p.last)
	return s
}

func (p *parser) setBlockPolicy(start token.Span) ast.Stmt {
	policy := p.tok
	if !p.acceptWord("drop") && !p.acceptWord("return") {
		p.expected(`"drop" or "return" after set block-policy`)
	}
	return &ast.BlockPolicy{Span: start.To(p.last), Policy: ast.Word{Span: policy.Span, Text: policy.Text}}
}

func (p *parser) setImplicitPass(start token.Span) ast.Stmt {
	yes := p.isWord("yes")
	if !yes && !p.isWord("no") {
		p.expected(`"yes" or "no" after set implicit-pass`)
	}
	p.advance()
	return &ast.ImplicitPass{Span: start.To(p.last), Yes: yes}
}

// table reads a table and its lists of addresses.
func (p *parser) table() ast.Stmt {
	t := &ast.Table{Span: p.tok.Span}
	p.advance()
	p.expect(token.Less, "table")
	t.Name = p.tableName()
	for {
		switch {
		case p.acceptWord("const"):
			t.Const = true
		case p.acceptWord("persist"):
			t.Persist = true
		case p.isWord("counters"):
			p.faults.Errorf(p.tok.Span, "counters of tables are not supported yet")
			p.advance()
		case p.isWord("file"):
			p.faults.Errorf(p.tok.Span, "tables from files are not supported yet")
			p.advance()
			p.word("a file name")
		case p.is(token.LeftBrace):
			t.Listed = true
			p.braces(true, func() { t.Hosts = append(t.Hosts, p.tableHost()) })
		default:
			t.Span = t.Span.To(p.last)
			return t
		}
	}
}

// tableName reads a table's name and the > behind it.
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

// maxTableName is PF_TABLE_NAME_SIZE without the NUL.
const maxTableName = 31

// tableHost reads an address that can stand in a table.
func (p *parser) tableHost() ast.Host {
	h := p.host()
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

func (p *parser) antispoof() ast.Stmt {
	a := &ast.Antispoof{Span: p.tok.Span}
	p.advance()
	p.logQuick(&a.Log, &a.Quick)
	p.expectWord("for", "antispoof")
	p.list(func() {
		start := p.tok.Span
		dynamic := p.accept(token.LeftParen)
		i := p.interfaceName()
		if dynamic {
			p.expect(token.RightParen, "the name of an interface")
			i.Span = start.To(p.last)
		}
		if i.Not {
			p.faults.Errorf(i.Span, "antispoof takes no !")
		}
		a.Interfaces = append(a.Interfaces, ast.AntispoofInterface{Interface: i, Dynamic: dynamic})
	})
	a.Family, _ = p.family()
	for p.unsupportedClause() || p.isWord("label") || p.isIdentifier() {
		switch at := p.tok.Span; {
		case p.acceptWord("label"):
			p.label(&a.Label, &a.MoreLabels)
		case p.isIdentifier():
			p.identifier(&a.Identifier, at)
		}
	}
	a.Span = a.Span.To(p.last)
	return a
}
