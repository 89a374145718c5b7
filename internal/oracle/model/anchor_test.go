package model

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/printer"
	"weir/pf/resolve"
	"weir/pf/token"
)

// TestAnchors evaluates nested random anchors for random packets in three ways: as the
// model does; by a plain walk through the file, which looks anchors up by their names;
// and, if all anchors are flat and none ends the evaluation, by the rules in order
// without regard to anchors, as the dataplane does. All must decide the same.
func TestAnchors(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	box := &Box{Interfaces: []Interface{{Index: 1, Name: "em0"}, {Index: 2, Name: "em1"}}}
	enforced, decided := 0, map[bool]int{}
	for range 400 {
		src := "table <t> { 10.0.0.1 }\n" + randomAnchors(random)
		rules, list := resolve.Load("in", []byte(src), nil)
		if rules == nil {
			t.Fatalf("%s\n%v", src, list.Err())
		}
		m := New(box, rules, 0)
		flat := New(box, withoutAnchors(rules), 0)
		whole := !slices.ContainsFunc(list.Items, func(d diag.Diagnostic) bool { return d.Construct != "" }) && !anchorsCount(rules)
		if whole {
			enforced++
		}
		walk := newWalker(t, rules.Source)
		for range 60 {
			a := randomAsked(random, box)
			got := m.evaluate(a)
			want := walk.evaluate(a)
			if verdictOf(&got) != want {
				t.Fatalf("%+v: %v, the plain walk says %v, in\n%s", a, verdictOf(&got), want, src)
			}
			decided[got.rule != nil]++
			if c := flat.evaluate(a); whole && verdictOf(&c) != want {
				t.Fatalf("%+v: %v without anchors, %v with, in\n%s", a, verdictOf(&c), want, src)
			}
		}
	}
	if enforced < 40 || decided[true] < 3000 || decided[false] < 3000 {
		t.Errorf("%d files are enforced, %v packets decided: the test shows little", enforced, decided)
	}
}

// anchorsCount reports whether an anchor is not flat, or a rule without quick may end the
// evaluation, because its anchor is quick.
func anchorsCount(rs *resolve.Ruleset) bool {
	return slices.ContainsFunc(rs.Rules, func(r *resolve.Rule) bool {
		return r.Anchor != nil && !r.Anchor.Flat || r.Anchor != nil && r.Anchor.Quick && slices.ContainsFunc(rs.Rules[r.Nr+1:r.Anchor.End], func(in *resolve.Rule) bool {
			return in.Action != ast.Match && !in.Quick
		})
	})
}

// withoutAnchors returns the rules with anchors replaced by the match rules that they are
// in the dataplane.
func withoutAnchors(rs *resolve.Ruleset) *resolve.Ruleset {
	out := *rs
	out.Rules = nil
	for _, r := range rs.Rules {
		plain := *r
		plain.Anchor = nil
		out.Rules = append(out.Rules, &plain)
	}
	return &out
}

// A decision is the result of a crossing: the place of the deciding rule, the tag, and
// the source after nat-to.
type decision struct {
	at  token.Pos
	tag string
	src netip.Addr
}

func verdictOf(c *crossing) decision {
	d := decision{tag: c.tag}
	if c.rule != nil {
		d.at = c.rule.Pos
	}
	if c.nat != nil {
		d.src = c.nat.addr
	}
	return d
}

// A walker evaluates an expanded file for packets, in the order of the file.
type walker struct {
	model   *Model
	rules   map[*ast.Rule]*resolve.Rule // each alone, without its anchor's rules
	bodies  map[string][]*ast.Rule
	top     []*ast.Rule
	unnamed map[*ast.Rule]string
}

func newWalker(t *testing.T, file *ast.File) *walker {
	w := &walker{rules: map[*ast.Rule]*resolve.Rule{}, bodies: map[string][]*ast.Rule{}, unnamed: map[*ast.Rule]string{}}
	var tables strings.Builder
	for _, s := range file.Stmts {
		if table, ok := s.(*ast.Table); ok {
			_ = printer.Fprint(&tables, &ast.File{Stmts: []ast.Stmt{table}})
		}
	}
	w.top = w.enter(t, "", file.Stmts, tables.String())
	rs, _ := resolve.Load("in", []byte(tables.String()), nil)
	w.model = New(&Box{}, rs, 0)
	return w
}

// enter notes the rules of an anchor, each loaded alone.
func (w *walker) enter(t *testing.T, path string, stmts []ast.Stmt, tables string) (rules []*ast.Rule) {
	for _, s := range stmts {
		rule, ok := s.(*ast.Rule)
		if !ok {
			continue
		}
		alone := *rule
		if rule.Anchor != nil {
			alone.Anchor = &ast.Anchor{Name: ast.Word{Text: "x"}}
		}
		rs, list := resolve.Load("in", []byte(tables+printer.Rule(&alone)+"\n"), nil)
		if rs == nil {
			t.Fatal(list.Err())
		}
		w.rules[rule] = rs.Rules[0]
		rules = append(rules, rule)
		if rule.Anchor != nil && rule.Anchor.Braces.IsValid() {
			name := rule.Anchor.Name.Text
			if name == "" {
				name = fmt.Sprintf("_%d", len(w.unnamed))
				w.unnamed[rule] = name
			}
			w.enter(t, strings.TrimPrefix(path+"/"+name, "/"), rule.Anchor.Body, tables)
		}
	}
	w.bodies[path] = rules
	return rules
}

func (w *walker) evaluate(a ruleInput) decision {
	d := decision{}
	w.anchor("", w.top, &a, &d)
	return d
}

// anchor evaluates the rules of an anchor, and reports whether that ends the evaluation.
func (w *walker) anchor(path string, rules []*ast.Rule, a *ruleInput, d *decision) bool {
	for _, rule := range rules {
		r := w.rules[rule]
		if !w.model.matches(r, a) {
			continue
		}
		if r.Tag != "" {
			a.tag, d.tag = r.Tag, r.Tag
		}
		switch {
		case rule.Anchor != nil:
			if w.call(path, rule, a, d) {
				return true
			}
			continue
		case r.Action == ast.Match && r.Nat != nil:
			a.tuple.Src = r.Nat.Addrs[0].Prefix.Addr()
			d.src = a.tuple.Src
		case r.Action != ast.Match:
			d.at = rule.Origin.Pos
		}
		if rule.Quick {
			return true
		}
	}
	return false
}

func (w *walker) call(path string, rule *ast.Rule, a *ruleInput, d *decision) bool {
	before := d.at
	name := rule.Anchor.Name.Text
	if name == "" {
		name = w.unnamed[rule]
	}
	if absolute, ok := strings.CutPrefix(name, "/"); ok {
		name = absolute
	} else {
		name = strings.TrimPrefix(path+"/"+name, "/")
	}
	paths := []string{name}
	if parent, ok := strings.CutSuffix(name, "/*"); ok {
		paths = nil
		for p := range w.bodies {
			if rest, in := strings.CutPrefix(p, parent+"/"); in && !strings.Contains(rest, "/") {
				paths = append(paths, p)
			}
		}
		slices.Sort(paths)
	}
	d.at = 0
	ends := false
	for _, p := range paths {
		if ends = w.anchor(p, w.bodies[p], a, d); ends {
			break
		}
	}
	matched := d.at != 0
	if !matched {
		d.at = before
	}
	return ends || matched && rule.Quick
}

// randomAnchors writes anchors with and without names, and calls of earlier ones, so that
// none calls itself.
func randomAnchors(r *rand.Rand) string {
	var b strings.Builder
	var named []string
	var write func(path string, depth int)
	write = func(path string, depth int) {
		for range 1 + r.IntN(4) {
			switch {
			case depth < 3 && r.IntN(3) == 0:
				name, inner := "", ""
				if r.IntN(3) > 0 {
					name = fmt.Sprintf("a%d", len(named))
					inner = strings.TrimPrefix(path+"/"+name, "/")
					named = append(named, inner)
				}
				fmt.Fprintf(&b, "anchor %s %s {\n", name, randomClauses(r, true))
				write(inner, depth+1)
				b.WriteString("}\n")
			case len(named) > 0 && r.IntN(6) == 0 && depth == 0:
				called := named[r.IntN(len(named))]
				if r.IntN(3) == 0 {
					called += "/*"
				}
				fmt.Fprintf(&b, "anchor \"%s\" %s\n", []string{"/", ""}[r.IntN(2)]+called, randomClauses(r, true))
			case r.IntN(8) == 0:
				b.WriteString("match out inet from 10.0.0.0/8 nat-to 10.0.0.1\n")
			default:
				fmt.Fprintf(&b, "%s %s %s\n", []string{"pass", "block"}[r.IntN(2)], randomClauses(r, false), []string{"", "", "tag x"}[r.IntN(3)])
			}
		}
	}
	write("", 0)
	return b.String()
}

func randomClauses(r *rand.Rand, anchor bool) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	quick := pick("", "", "", "quick")
	if anchor {
		quick = pick("", "", "", "", "", "quick")
	}
	words := []string{
		pick("", "", "in", "out"), quick, pick("", "", "on em0", "on em1", "on ! em0"), "inet", pick("", "proto tcp", "proto udp"),
		"from", pick("any", "any", "10.0.0.1", "10.0.0.0/24", "! 10.0.0.1", "<t>"), "to", pick("any", "any", "10.0.0.2"),
	}
	if words[4] != "" {
		words = append(words, pick("", "port 1", "port 1:2"))
	}
	if anchor || words[4] != "" {
		words = append(words, "flags any")
	}
	return strings.Join(append(words, pick("", "", "", "", "tagged x", "! tagged x")), " ")
}

func randomAsked(r *rand.Rand, box *Box) ruleInput {
	addr := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + r.IntN(3))}) }
	return ruleInput{
		direction: ast.Direction(1 + r.IntN(2)), iface: &box.Interfaces[r.IntN(2)], family: 4,
		tuple:    state.Tuple{Src: addr(), Dst: addr(), SPort: uint16(r.IntN(4)), DPort: uint16(r.IntN(4)), Proto: []uint8{6, 17, 1}[r.IntN(3)]},
		tcpFlags: 2,
	}
}
