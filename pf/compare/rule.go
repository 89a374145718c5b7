package compare

import (
	"regexp"
	"strings"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// A line is a rule, or another statement that is neither an option nor a table.
type line struct {
	text  string // with its anchor's name, and with the lists of automatic tables
	place string
}

// rules compares the rules in their order.
func rules(before, after *resolve.Ruleset) []Change {
	a, b := lines(before), lines(after)
	edits := diff(a, b)
	moved := moves(edits, a, b)
	var changes []Change
	for i := 0; i < len(edits); i++ {
		e := edits[i]
		switch from, isMove := moved[e]; {
		case isMove && e.added:
			changes = append(changes, Change{
				Kind: Rule, Words: "rule moved", Old: b[e.at].text, New: b[e.at].text, Place: b[e.at].place, Was: a[from].place,
			})
		case isMove:
		case e.with >= 0:
			changes = append(changes, Change{
				Kind: Rule, Words: "rule changed", Old: a[e.with].text, New: b[e.at].text, Place: b[e.at].place, Was: a[e.with].place,
			})
		case e.added:
			changes = append(changes, Change{Kind: Rule, Words: "new rule", New: b[e.at].text, Place: b[e.at].place})
		default:
			changes = append(changes, Change{Kind: Rule, Words: "rule gone", Old: a[e.at].text, Place: a[e.at].place})
		}
	}
	return changes
}

// lines returns the rules of a configuration in order. Rules of anchors have their
// anchor's name in front.
func lines(of *resolve.Ruleset) []line {
	l := lister{of: of, tables: contents(of)}
	l.list("", of.Source.Stmts)
	return l.lines
}

type lister struct {
	of     *resolve.Ruleset
	tables map[string][]string
	lines  []line
}

func (l *lister) list(in string, stmts []ast.Stmt) {
	for _, s := range stmts {
		shown := strings.TrimSuffix(text(l.of, s), "\n")
		switch s := s.(type) {
		case *ast.Macro, *ast.Table:
			continue
		case *ast.LoadAnchor:
			head, _, _ := strings.Cut(shown, " {\n")
			l.add(in, head, s)
			l.list(in+s.Name.Text+"/", s.Body)
			continue
		case *ast.Rule:
			if s.Anchor != nil {
				head, _, _ := strings.Cut(shown, " {\n")
				l.add(in, head, s)
				l.list(in+s.Anchor.Name.Text+"/", s.Anchor.Body)
				continue
			}
		}
		if !strings.HasPrefix(shown, "set ") {
			l.add(in, shown, s)
		}
	}
}

var automaticTable = regexp.MustCompile(`<` + automatic + `\w+>`)

func (l *lister) add(in, shown string, s ast.Stmt) {
	shown = automaticTable.ReplaceAllStringFunc(shown, func(name string) string {
		return "{ " + strings.Join(l.tables[name[1:len(name)-1]], ", ") + " }"
	})
	if in != "" {
		shown = "anchor " + strings.TrimSuffix(in, "/") + ": " + shown
	}
	at := s.Start()
	if r, ok := s.(*ast.Rule); ok && r.Origin.IsValid() {
		at = r.Origin.Pos
	}
	l.lines = append(l.lines, line{text: shown, place: position(l.of, at)})
}
