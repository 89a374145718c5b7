package printer

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"weir/pf/ast"
	"weir/pf/token"
)

// Fprint prints a file, one statement per line.
func Fprint(w io.Writer, file *ast.File) error {
	b := bufio.NewWriter(w)
	for _, s := range file.Stmts {
		statement(b, s)
	}
	return b.Flush()
}

func statement(w io.Writer, s ast.Stmt) {
	switch s := s.(type) {
	case *ast.Macro:
		fmt.Fprintf(w, "%s = %s\n", macroName(s.Name.Text), quote(s.Value))
	case *ast.Table:
		fmt.Fprintln(w, table(s))
	case *ast.Antispoof:
		fmt.Fprintln(w, antispoof(s))
	case *ast.LoadAnchor:
		loadAnchor(w, s)
	case *ast.Rule:
		fmt.Fprint(w, Rule(s))
		block(w, s.Anchor)
		fmt.Fprintln(w)
	case *ast.Ether:
		ether(w, s)
	case *ast.ScrubRule:
		fmt.Fprintln(w, Scrub(s))
	case *ast.Translation:
		fmt.Fprintln(w, Translation(s))
	case *ast.Queue:
		fmt.Fprintln(w, queue(s))
	case *ast.PacketPipe:
		fmt.Fprintln(w, dummynetRule(s))
	case *ast.DummynetDef:
		fmt.Fprintln(w, dummynetDef(s))
	case *ast.PPPoE:
		fmt.Fprintln(w, pppoe(s))
	case *ast.WireGuard:
		fmt.Fprintln(w, wireguard(s))
	case *ast.Peer:
		fmt.Fprintln(w, peer(s))
	case *ast.IKEv2:
		fmt.Fprintln(w, ikev2(s))
	case *ast.LimiterDef:
		fmt.Fprintln(w, limiterDef(s))
	case *ast.Discipline:
		fmt.Fprintln(w, discipline(s))
	default:
		option(w, s)
	}
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func antispoof(a *ast.Antispoof) string {
	c := clauses{"antispoof"}
	logs(&c, a.Log)
	c.addIf(a.Quick, "quick")
	c.add("for", list(a.Interfaces, func(i *ast.AntispoofInterface) string {
		if i.Dynamic {
			return "(" + name(i.Name) + ")"
		}
		return name(i.Name)
	}))
	c.add(a.Family.String())
	names(&c, a.Label, a.MoreLabels, a.Identifier)
	if a.RTable != nil {
		c.add(fmt.Sprintf("rtable %d", a.RTable.N))
	}
	return c.String()
}

// clauses are the parts of a line.
type clauses []string

// add appends what is not empty.
func (c *clauses) add(parts ...string) {
	for _, p := range parts {
		if p != "" {
			*c = append(*c, p)
		}
	}
}

func (c *clauses) addIf(yes bool, parts ...string) {
	if yes {
		c.add(parts...)
	}
}

func (c clauses) String() string { return strings.Join(c, " ") }

// list prints one item as it is and several in braces.
func list[T any](items []T, text func(*T) string) string {
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = text(&items[i])
	}
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0]
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}

// quote quotes s so that it reads back as s.
func quote(s string) string {
	q := `"`
	if strings.Contains(s, `"`) && !strings.Contains(s, "'") {
		q = "'"
	}
	var b strings.Builder
	b.WriteString(q)
	for i := range len(s) {
		if escaped(s, i, q[0]) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	if strings.HasSuffix(s, "\\") {
		b.WriteString("\\\n") // a continued line; otherwise the backslash would escape the quote
	}
	b.WriteString(q)
	return b.String()
}

// escaped reports whether s[i] needs a backslash inside quotes. The quote needs one, and
// so does a blank after a backslash, which would escape it.
func escaped(s string, i int, q byte) bool {
	switch s[i] {
	case q:
		return true
	case ' ', '\t':
		return i > 0 && s[i-1] == '\\'
	}
	return false
}

// name prints a name, quoted if it would not be read as a name.
func name(s string) string {
	if token.IsKeyword(s) {
		return quote(s)
	}
	return word(s)
}

// macroName prints a macro's name. As in pf, "pass" in quotes is a valid name.
func macroName(s string) string {
	if token.IsReserved(s) {
		return quote(s)
	}
	return word(s)
}

// word prints a word, quoted if it would not be read as one. Unlike a name it may be a
// keyword.
func word(s string) string {
	if s == "" {
		return quote(s)
	}
	for i := range len(s) {
		c := s[i]
		alnum := c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 && c != ':' || c <= ' ' || c >= 0x7f || strings.IndexByte("(){}<>!=/#,\"'\\", c) >= 0) {
			return quote(s)
		}
	}
	return s
}
