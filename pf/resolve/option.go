package resolve

import (
	"weir/pf/ast"
	"weir/pf/diag"
)

// option notes what a set statement says.
func (r *resolver) option(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.Timeout:
		r.timeout(s)
	case *ast.Limit:
		r.limit(s)
	case *ast.Skip:
		r.skip(s)
	case *ast.ImplicitPass:
		r.options.ImplicitPass = s.Yes
	case *ast.BlockPolicy:
		r.policy = s
	case *ast.Reassemble:
		r.reassemble(s)
	case *ast.Syncookies:
		r.out.Stmts = append(r.out.Stmts, r.syncookies(s))
		return
	case *ast.InterfaceGroup:
		r.group(s)
	case *ast.StateDefaults:
		r.setStateDefaults(s)
		return // not printed, as with pfctl: the rules that it holds for say it
	case *ast.Option:
		r.wordOption(s)
		if s.Name.Text == "ruleset-optimization" {
			return // not printed, as with pfctl: what is printed is what came of it
		}
	}
	r.out.Stmts = append(r.out.Stmts, s)
}

func (r *resolver) skip(s *ast.Skip) {
	for _, i := range s.Interfaces {
		r.options.Skip = append(r.options.Skip, i.Name)
		r.known(ast.Word{Span: i.Span, Text: i.Name})
	}
}

// setStateDefaults notes the options of states of the rules behind it.
func (r *resolver) setStateDefaults(s *ast.StateDefaults) {
	if first := r.defaultsAt; first.IsValid() {
		r.faults.Add(diag.Diagnostic{
			Span: s.Span, Message: "set state-defaults stands twice",
			Related: []diag.Related{{Span: first, Note: "first here"}},
		})
		return
	}
	r.defaultsAt, r.stateDefaults = s.Span, s.Options
	r.checkOptions(s.Options)
	r.unenforcedOptions(s.Options)
}

// reassemble notes what becomes of fragments. weir lets them pass as they are,
// each as its first was judged, which for the rules is as if they had been put
// together.
func (r *resolver) reassemble(s *ast.Reassemble) {
	r.noReassembly = !s.Yes
	if !s.Yes {
		r.faults.Unenforced(s.Span, "set reassemble no")
	}
	if s.NoDF.IsValid() {
		r.faults.Unenforced(s.NoDF, "set reassemble no-df")
	}
}

// syncookieStart is the default of set syncookies adaptive: per cent of the
// limit of states.
const syncookieStart = 25

// syncookies fills the marks in that are not given, if one is.
func (r *resolver) syncookies(s *ast.Syncookies) *ast.Syncookies {
	if s.Mode.Text != "never" {
		r.faults.Unenforced(s.Span, "set syncookies "+s.Mode.Text)
	}
	if !s.Marks.IsValid() {
		return s
	}
	out := *s
	if out.High == 0 {
		out.High = syncookieStart
	}
	if out.Low == 0 {
		out.Low = out.High / 2
	}
	switch {
	case s.Mode.Text != "adaptive":
		r.conflict(s.Marks, "start and end are for set syncookies adaptive", s.Mode.Span)
	case out.Low >= out.High:
		r.faults.Errorf(s.Marks, "start must be greater than end: they are %d%% and %d%%", out.High, out.Low)
	}
	return &out
}

// wordOption notes an option of one word.
func (r *resolver) wordOption(s *ast.Option) {
	switch s.Name.Text {
	case "optimization":
		r.optimization(s.Value.Text)
	case "ruleset-optimization":
		r.options.Optimization = s.Value.Text
	case "state-policy":
		r.ifBound = s.Value.Text == "if-bound"
		if r.ifBound {
			r.faults.Unenforced(s.Span, "set state-policy if-bound")
		}
	case "fail-policy":
		if s.Value.Text == "return" {
			r.faults.Unenforced(s.Span, "set fail-policy return")
		}
	}
}

// group notes a group of interfaces; declareGroups has made it.
func (r *resolver) group(s *ast.InterfaceGroup) {
	if r.options.Groups == nil {
		r.options.Groups = make(map[string][]string)
	}
	for _, i := range s.Interfaces {
		r.known(ast.Word{Span: i.Span, Text: i.Name})
		r.options.Groups[s.Name.Text] = append(r.options.Groups[s.Name.Text], i.Name)
	}
}

// declareGroups puts interfaces into the groups that the file makes, in a copy
// of the host: rules may name groups that are made behind them.
func (r *resolver) declareGroups(stmts []ast.Stmt) {
	groups := make(map[string][]string) // of each interface
	for _, s := range stmts {
		g, ok := s.(*ast.InterfaceGroup)
		if !ok {
			continue
		}
		if r.host.Interface(g.Name.Text) != nil {
			r.faults.Errorf(g.Name.Span, "%q is an interface and cannot be a group", g.Name.Text)
			continue
		}
		for _, i := range g.Interfaces {
			groups[i.Name] = append(groups[i.Name], g.Name.Text)
		}
	}
	if len(groups) > 0 {
		r.host = r.host.withGroups(groups)
	}
}
