package resolve

import (
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// option stores the value of a set statement.
func (r *resolver) option(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.Timeout:
		r.timeout(s)
	case *ast.Limit:
		r.limit(s)
	case *ast.Skip:
		r.skip(s)
	case *ast.Spread:
		r.spread(s)
	case *ast.ImplicitPass:
		r.options.ImplicitPass = s.Yes
	case *ast.MarkMask:
		r.markMask(s)
	case *ast.BlockPolicy:
		r.policy = s
	case *ast.Reassemble:
		r.reassemble(s)
	case *ast.Syncookies:
		r.out.Stmts = append(r.out.Stmts, r.syncookies(s))
		return
	case *ast.InterfaceGroup:
		r.group(s)
	case *ast.Gateway:
		r.gateway(s)
	case *ast.PFlow:
		r.pflow(s)
	case *ast.StateDefaults:
		r.setStateDefaults(s)
		return // not printed, as with pfctl: the rules that it applies to show it
	case *ast.Option:
		r.wordOption(s)
		if s.Name.Text == "ruleset-optimization" {
			return // not printed, as with pfctl: only its result is printed
		}
	}
	r.out.Stmts = append(r.out.Stmts, s)
}

func (r *resolver) skip(s *ast.Skip) {
	if len(s.Interfaces) == 0 {
		r.options.Skip = nil
	}
	for _, i := range s.Interfaces {
		r.options.Skip = append(r.options.Skip, i.Name)
		r.known(ast.Word{Span: i.Span, Text: i.Name})
	}
}

// spread stores how the frames of an interface are spread. The last statement for an interface counts.
func (r *resolver) spread(s *ast.Spread) {
	r.known(s.Interface)
	r.options.Spreads = slices.DeleteFunc(r.options.Spreads, func(other Spread) bool { return other.Interface == s.Interface.Text })
	for i, core := range s.Cores {
		switch {
		case core > MostSpreadCore:
			r.faults.Errorf(s.Span, "frames are handed to the cores 0 to %d, not to %d", MostSpreadCore, core)
		case slices.Contains(s.Cores[:i], core):
			r.faults.Errorf(s.Span, "core %d is there twice", core)
		}
	}
	if s.Mode.Text != "off" {
		r.options.Spreads = append(r.options.Spreads, Spread{Interface: s.Interface.Text, Auto: s.Mode.Text == "auto", Cores: s.Cores})
	}
}

// setStateDefaults stores the state options of the rules after it.
func (r *resolver) setStateDefaults(s *ast.StateDefaults) {
	if first := r.defaultsAt; first.IsValid() {
		r.faults.Add(diag.Diagnostic{
			Span: s.Span, Message: "set state-defaults is given twice",
			Related: []diag.Related{{Span: first, Note: "first here"}},
		})
		return
	}
	r.defaultsAt, r.stateDefaults = s.Span, s.Options
	r.checkOptions(s.Options)
	r.unenforcedOptions(s.Options)
}

// reassemble stores how fragments are handled. With yes weir passes them unchanged, each with
// the verdict on the first fragment. For the rules this equals reassembly. Fragments with DF
// pass in any case, as pf lets them with no-df.
func (r *resolver) reassemble(s *ast.Reassemble) {
	r.options.FragmentsAlone = !s.Yes
}

// syncookieStart is the default start of set syncookies adaptive, in per cent of the
// limit of states.
const syncookieStart = 25

// syncookies fills in the missing marks if one is given.
func (r *resolver) syncookies(s *ast.Syncookies) *ast.Syncookies {
	if s.Mode.Text != "never" {
		r.withoutEffect(s.Span, "set syncookies has no effect: weir sends no SYN cookies; set limit states and max-src-states bound what a flood of SYNs takes")
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

// wordOption stores an option of one word.
func (r *resolver) wordOption(s *ast.Option) {
	switch s.Name.Text {
	case "optimization":
		r.optimization(s.Value.Text)
	case "ruleset-optimization":
		r.options.Optimization = s.Value.Text
	case "state-policy":
		r.ifBound = s.Value.Text == "if-bound"
	case "table-store":
		r.tableStore(s)
	case "pfctl-may-open":
		r.options.PfctlMayOpen = s.Value.Text == "yes"
	case "fail-policy":
		r.failReturn = s.Value.Text == "return"
	}
}

// tableStore stores the folder for tables that outlive a boot. It is an absolute path, as
// the daemon has no folder of its own.
func (r *resolver) tableStore(s *ast.Option) {
	path := s.Value.Text
	if !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
		r.faults.Errorf(s.Value.Span, "set table-store takes the whole path of a folder, such as \"/var/lib/weir\"")
		return
	}
	r.options.TableStore = path
}

// group stores a group of interfaces, which declareGroups has made.
func (r *resolver) group(s *ast.InterfaceGroup) {
	if r.options.Groups == nil {
		r.options.Groups = make(map[string][]string)
	}
	for _, i := range s.Interfaces {
		r.known(ast.Word{Span: i.Span, Text: i.Name})
		r.options.Groups[s.Name.Text] = append(r.options.Groups[s.Name.Text], i.Name)
	}
}

// maxGroups limits how deep groups of interfaces may contain groups.
const maxGroups = 64

// declareGroups adds interfaces to the groups that the file makes, in a copy of the host.
// Rules may name groups that are made after them.
func (r *resolver) declareGroups(stmts []ast.Stmt) {
	made := make(map[string][]string)
	first := make(map[string]token.Span) // where each group is made
	var names []string
	for _, s := range stmts {
		g, ok := s.(*ast.InterfaceGroup)
		if !ok {
			continue
		}
		name := g.Name.Text
		if r.host.Interface(name) != nil {
			r.faults.Errorf(g.Name.Span, "%q is an interface and cannot be a group", name)
			continue
		}
		if !first[name].IsValid() {
			first[name] = g.Name.Span
			names = append(names, name)
		}
		for _, i := range g.Interfaces {
			made[name] = append(made[name], i.Name)
		}
	}
	heights := make(map[string]int)
	for _, name := range names {
		if h := height(name, made, heights, 0); h > maxGroups {
			r.faults.Errorf(first[name], "the group %q holds itself, or groups hold groups more than %d deep", name, maxGroups)
			return
		}
	}
	r.host = r.host.WithGroups(made)
}

// height returns how deep a group contains groups, or 0 for an interface. It returns more
// than maxGroups if it is deeper, or if the group contains itself.
func height(name string, made map[string][]string, heights map[string]int, depth int) int {
	members, ok := made[name]
	switch known := heights[name]; {
	case !ok:
		return 0
	case known > 0:
		return known
	case depth > maxGroups:
		return maxGroups + 1
	}
	h := 0
	for _, m := range members {
		if h = max(h, height(m, made, heights, depth+1)); h > maxGroups {
			return h
		}
	}
	heights[name] = h + 1
	return h + 1
}
