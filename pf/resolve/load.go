package resolve

import (
	"maps"
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/parser"
	"weir/pf/token"
)

// MaxRules is the number of rules that a configuration may expand to.
const MaxRules = 1_000_000

// Load reads a configuration and resolves it for host; nil is a machine
// without interfaces. name is how messages call it. The ruleset is nil if the
// list has errors.
func Load(name string, src []byte, host *Host) (*Ruleset, diag.List) {
	return load(name, src, host, MaxRules)
}

func load(name string, src []byte, host *Host, maxRules int) (*Ruleset, diag.List) {
	file, list := parser.Parse(name, src)
	rules, more := resolve(file, host, maxRules)
	list.Append(&more)
	list.Sort()
	if list.HasErrors() {
		return nil, list
	}
	return rules, list
}

// resolve expands a parsed file for host. The ruleset is nil if the list has
// errors.
func resolve(file *ast.File, host *Host, maxRules int) (*Ruleset, diag.List) {
	r := newResolver(file, host, maxRules)
	for _, s := range file.Stmts {
		if r.faults.Full() {
			break
		}
		r.statement(s)
	}
	r.checkTables()
	r.checkAdaptive()
	r.checkLimits()
	r.faults.Sort()
	if r.faults.HasErrors() {
		return nil, *r.faults
	}
	return r.ruleset(), *r.faults
}

// resolver holds what is known while a file is expanded.
type resolver struct {
	host     *Host
	faults   *diag.List
	out      *ast.File // statements but for the rules
	rules    []*ast.Rule
	maxRules int

	translations []*ast.Translation

	tables    map[string]*ast.Table // by name, those in the file
	uses      []ast.Host            // tables named in rules
	automatic int                   // number of the next automatic table
	unknown   map[string]bool       // interfaces that were warned of
	options   Options
	policy    *ast.BlockPolicy       // in force where the resolver stands; nil: drop
	adaptive  map[string]ast.Setting // adaptive timeouts that are set
	limits    map[string]ast.Setting // that are set, but for that of states

	stateDefaults []ast.StateOption // of pass rules that say nothing of state: set state-defaults
	defaultsAt    token.Span        // of set state-defaults
	ifBound       bool              // set state-policy if-bound
	endsIfBound   bool              // the last one of the file: when it is printed it holds for all rules
}

func newResolver(file *ast.File, host *Host, maxRules int) *resolver {
	if host == nil {
		host = &Host{}
	}
	r := &resolver{
		host:     host,
		faults:   &diag.List{Files: file.Files},
		out:      &ast.File{Files: file.Files, Comments: file.Comments},
		maxRules: maxRules,
		tables:   make(map[string]*ast.Table),
		unknown:  make(map[string]bool),
		options:  defaults(),
		adaptive: make(map[string]ast.Setting),
		limits:   make(map[string]ast.Setting),
	}
	r.declareGroups(file.Stmts)
	for _, s := range file.Stmts { // rules may name tables that are defined behind them
		switch s := s.(type) {
		case *ast.Table:
			r.declare(s)
		case *ast.Option:
			if s.Name.Text == "state-policy" {
				r.endsIfBound = s.Value.Text == "if-bound"
			}
		}
	}
	return r
}

func (r *resolver) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.Macro:
		r.out.Stmts = append(r.out.Stmts, s)
	case *ast.Table:
		r.table(s)
	case *ast.Rule:
		r.rule(s)
	case *ast.Antispoof:
		r.antispoof(s)
	case *ast.Translation:
		r.translationRule(s)
	default:
		r.option(s)
	}
}

// ruleset lowers what was expanded. In the source rules stand behind all else,
// as with pfctl, which prints them when it has read the whole file.
func (r *resolver) ruleset() *Ruleset {
	rs := &Ruleset{Options: r.options, Source: r.out, Rules: make([]*Rule, len(r.rules))}
	for _, s := range r.out.Stmts {
		if t, ok := s.(*ast.Table); ok {
			rs.Tables = append(rs.Tables, lowerTable(t))
		}
	}
	rs.fillTables(r.host)
	for i, t := range r.translations {
		rs.Translations = append(rs.Translations, r.lowerTranslation(i, t))
		r.out.Stmts = append(r.out.Stmts, t)
	}
	for i, rule := range r.rules {
		rs.Rules[i] = r.lower(i, rule)
		r.out.Stmts = append(r.out.Stmts, rule)
	}
	return rs
}

// suggest reports an error about a word that may be misspelt.
func (r *resolver) suggest(w ast.Word, message string, candidates []string) {
	if r.faults.Full() {
		candidates = nil // to look through them for thousands of errors takes seconds
	}
	r.faults.Add(diag.Diagnostic{Span: w.Span, Message: message, Suggest: diag.Nearest(w.Text, candidates)})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
