package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/parser"
	"weir/pf/resolve"
	"weir/pf/source"
)

// Anchors that were loaded at run time are a part of the source in force
// (source.Beside.Anchors). So whatever resolves it again has them, and so has its record,
// by which they outlive the daemon.

var errNoRules = errors.New("no rules are loaded, so there is no anchor to load into: load a rule file first (weir load)")

// forgetsAnchors is added to errors of rule files that do not load together with anchors.
const forgetsAnchors = "rules that were loaded into anchors at run time are a part of this; weir anchor list shows them; while a daemon runs, weir anchor flush PATH removes them"

// anchorsOf returns the record of a ruleset's anchors.
func anchorsOf(rules *resolve.Ruleset) []rundir.Anchor {
	called := make(map[string]map[string]bool) // by path, then by list
	note := func(list string, r *resolve.Rule) {
		paths := []string{r.Scope}
		if r.Anchor != nil {
			paths = append(paths, r.Anchor.Path)
		}
		for _, path := range paths {
			if called[path] == nil {
				called[path] = make(map[string]bool)
			}
			called[path][list] = true
		}
	}
	for _, r := range rules.Rules {
		note("", r)
	}
	for _, l := range rules.First {
		switch {
		case l.Of != nil:
			note(l.Of.Kind.String(), &l.Rule)
		case l.IsScrub:
			note("scrub", &l.Rule)
		case l.IsEther:
			note("ether", &l.Rule)
		}
	}
	all := make([]rundir.Anchor, 0, len(rules.Anchors))
	for _, a := range rules.Anchors {
		r := rundir.Anchor{Path: a.Path, AtRunTime: a.AtRunTime, Given: a.Given, Rules: a.Rules, Tables: a.Tables}
		lists := maps.Clone(called[a.Path])
		if parent := strings.LastIndexByte(a.Path, '/'); parent > 0 {
			if all := called[a.Path[:parent]+"/*"]; lists == nil {
				lists = all
			} else {
				maps.Copy(lists, all)
			}
		}
		r.Called = len(lists) > 0
		r.Lines = slices.DeleteFunc(slices.Clone(a.Lines), func(line string) bool { return lists[rundir.ListOf(line)] })
		all = append(all, r)
	}
	return all
}

// ChangeAnchor loads the rules of an anchor, or flushes anchors. Host names are looked up
// before the box is locked.
func (c *controller) ChangeAnchor(ctx context.Context, r *control.AnchorChange) (*control.AnchorChanged, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.living, func() { cancel(control.ErrEnding) })()
	if err := checkAnchorChange(r); err != nil {
		return nil, err
	}
	if r.Load != nil && !r.NoDNS {
		if err := c.box.lookUpAnchor(ctx, r.Load); err != nil {
			return nil, err
		}
	}
	var done *control.AnchorChanged
	err := untilFree(ctx, busyPatience, func() (err error) {
		done, err = c.box.changeAnchor(r)
		return err
	})
	return done, err
}

func checkAnchorChange(r *control.AnchorChange) error {
	path := r.Flush
	if r.Load != nil {
		path = r.Load.Path
	}
	if r.Load == nil && r.Below && path == "" {
		return nil // all
	}
	name, _, err := source.ParseAnchor(path, false)
	if err == nil && name != path {
		err = fmt.Errorf("%q is no path of an anchor", path)
	}
	return err
}

// lookUpAnchor looks up the hosts that the rules of an anchor name.
func (b *box) lookUpAnchor(ctx context.Context, a *source.Anchor) error {
	m, err := b.machine()
	if err != nil {
		return err
	}
	b.mu.Lock()
	next := b.source
	b.mu.Unlock()
	next.Anchors = next.Anchors.With(*a)
	next.lookUp(ctx, m)
	return nil
}

func (b *box) changeAnchor(r *control.AnchorChange) (*control.AnchorChanged, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.source.Builtin {
		return nil, errNoRules
	}
	m, err := b.machine()
	if err != nil {
		return nil, err
	}
	done := &control.AnchorChanged{}
	var change func(source.Anchors) source.Anchors
	if r.Load != nil {
		change = b.loading(*r.Load, m)
	} else {
		left, paths := b.flushed(r)
		if len(paths) == 0 {
			return done, nil
		}
		if r.Kind != "" {
			if left, err = b.withoutEmpty(left, paths, m); err != nil {
				return nil, err
			}
		}
		done.Flushed = paths
		change = flushing(left, paths)
	}
	if r.Check {
		return b.checkAnchors(change, r.Load, m)
	}
	if err := b.replaceAnchors(change, m); err != nil {
		return nil, err
	}
	done.Rules, done.Warnings = len(b.rules.texts), b.rules.warnedOf(r.Load)
	return done, nil
}

// checkAnchors returns what a change of anchors would do. one is the anchor to be loaded, or
// nil.
func (b *box) checkAnchors(change func(source.Anchors) source.Anchors, one *source.Anchor, m *machine) (*control.AnchorChanged, error) {
	next, _, err := b.withAnchors(change, m)
	if err != nil {
		return nil, err
	}
	rules, c, err := next.parse(m)
	if err != nil {
		return nil, err
	}
	if err := c.compile(rules, m); err != nil {
		return nil, err
	}
	done := &control.AnchorChanged{LoadResult: control.LoadResult{Rules: len(c.texts), Warnings: c.warnedOf(one)}}
	for _, a := range rules.Anchors {
		if one != nil && a.Path == one.Path {
			done.Lines = a.Lines
		}
	}
	return done, nil
}

// loading returns the change that loads an anchor. Its rules replace those of the anchors
// that they contain in braces, whatever was loaded into these before. Each load is a new
// one, although its text may be the same: tables and rules with once begin anew.
func (b *box) loading(one source.Anchor, m *machine) func(source.Anchors) source.Anchors {
	one.Kept, one.Load = b.tablesOfAnchor(one.Path), newLoad()
	below := func(path string) bool { return strings.HasPrefix(path, one.Path+"/") }
	inside := make(map[string]bool)
	if slices.ContainsFunc(b.source.Anchors, func(a source.Anchor) bool { return below(a.Path) }) {
		alone := b.source
		alone.Anchors = alone.Anchors.Without(below).With(one)
		if rules, _, err := alone.parse(m); err == nil { // else the load says what is wrong
			for _, a := range rules.Anchors {
				inside[a.Path] = a.AtRunTime && below(a.Path)
			}
		}
	}
	return func(all source.Anchors) source.Anchors {
		return all.Without(func(path string) bool { return inside[path] }).With(one)
	}
}

// flushing returns the change that takes the rules of some anchors away. left is what that
// leaves of the anchors in force.
func flushing(left source.Anchors, paths []string) func(source.Anchors) source.Anchors {
	return func(all source.Anchors) source.Anchors {
		all = all.Without(func(path string) bool { return slices.Contains(paths, path) })
		for _, a := range left {
			if slices.Contains(paths, a.Path) {
				all = all.With(a)
			}
		}
		return all
	}
}

// replaceAnchors changes the anchors of the source in force. A load that waits for its
// confirmation still waits.
func (b *box) replaceAnchors(change func(source.Anchors) source.Anchors, m *machine) error {
	next, before, err := b.withAnchors(change, m)
	if err != nil {
		return err
	}
	if err := b.replace(next, m); err != nil {
		return err
	}
	if before != nil {
		b.waiting.before = *before
		b.logRollback(b.recordWaiting(b.waiting, b.source.Path))
	}
	return nil
}

// withAnchors returns the source in force with a change of its anchors. What comes back if a
// load is not confirmed gets the change, too, and must load with it; before is nil if none
// waits.
func (b *box) withAnchors(change func(source.Anchors) source.Anchors, m *machine) (next Source, before *Source, err error) {
	next = b.source
	next.Anchors = change(next.Anchors)
	if b.waiting == nil || b.waiting.before.Builtin {
		return next, nil, nil
	}
	back := b.waiting.before
	back.Anchors = change(back.Anchors)
	if _, _, err := back.parse(m); err != nil {
		return next, nil, fmt.Errorf("the rules that come back unless weir confirm comes would not load with this: %w", err)
	}
	return next, &back, nil
}

// flushed returns the anchors that are left after a flush, and the paths of those that lose
// their rules, or those of one kind. An anchor that has rules in the rule file stays without
// them until the next load, as in pf.
func (b *box) flushed(r *control.AnchorChange) (left source.Anchors, paths []string) {
	left = b.source.Anchors
	for _, a := range b.rules.anchors {
		if !rundir.Within(a.Path, r.Flush, r.Below) || a.Rules == 0 {
			continue
		}
		paths = append(paths, a.Path)
		if r.Kind != "" {
			left = left.With(withoutKind(left, a.Path, r.Kind))
		} else {
			left = withoutRules(left, a.Path, a.Given, a.Tables)
		}
	}
	return left, paths
}

// withoutRules returns what is left when an anchor loses all its rules. Its tables stay. given: the rule
// file has rules for it.
func withoutRules(all source.Anchors, path string, given bool, tables []string) source.Anchors {
	all = all.Without(func(other string) bool { return other == path })
	if given || len(tables) > 0 || nestedAtRunTime(all, path) {
		all = all.With(source.Anchor{Path: path, Name: "(flushed)", Kept: tables})
	}
	return all
}

// withoutEmpty takes those of some anchors away whose last rules were of the kinds that were flushed.
func (b *box) withoutEmpty(left source.Anchors, paths []string, m *machine) (source.Anchors, error) {
	next := b.source
	next.Anchors = left
	rules, _, err := next.parse(m)
	if err != nil {
		return nil, err
	}
	for i := range rules.Anchors {
		if a := &rules.Anchors[i]; a.Rules == 0 && slices.Contains(paths, a.Path) {
			left = withoutRules(left, a.Path, a.Given, a.Tables)
		}
	}
	return left, nil
}

// withoutKind returns what stands for an anchor when its rules of a kind are flushed.
func withoutKind(all source.Anchors, path string, kind source.Kind) source.Anchor {
	one := source.Anchor{Path: path, Name: "(flushed)", Elsewhere: true}
	if a := all.At(path); a != nil {
		one = *a
	}
	if !slices.Contains(one.Flushed, kind) {
		one.Flushed = append(slices.Clip(one.Flushed), kind)
	}
	return one
}

// tablesOfAnchor returns the definitions of an anchor's persistent tables.
func (b *box) tablesOfAnchor(path string) []string {
	for i := range b.rules.anchors {
		if b.rules.anchors[i].Path == path {
			return b.rules.anchors[i].Tables
		}
	}
	return nil
}

// anchorKeeps reports whether a table is only there because earlier rules of its anchor have
// defined it.
func (b *box) anchorKeeps(table string) bool {
	name, path, _ := strings.Cut(table, "@")
	at := slices.IndexFunc(b.source.Anchors, func(a source.Anchor) bool { return a.Path == path })
	if at < 0 {
		return false
	}
	a := &b.source.Anchors[at]
	parsed, _ := parser.ParseInput(&source.Input{Name: a.Name, Text: []byte(a.Text), Macros: a.Macros, Files: a.Files})
	defines := slices.ContainsFunc(parsed.Stmts, func(s ast.Stmt) bool {
		t, is := s.(*ast.Table)
		return is && t.Name.Text == name
	})
	return !defines && slices.ContainsFunc(a.Kept, func(line string) bool { return definesTable(line, name) })
}

func definesTable(line, name string) bool { return strings.HasPrefix(line, "table <"+name+">") }

// dropKeptTable removes a table of anchorKeeps. An anchor that has nothing left goes, too.
func (b *box) dropKeptTable(table string) error {
	name, path, _ := strings.Cut(table, "@")
	m, err := b.machine()
	if err != nil {
		return err
	}
	given := slices.ContainsFunc(b.rules.anchors, func(r rundir.Anchor) bool { return r.Path == path && (r.Given || r.Rules > 0) })
	return b.replaceAnchors(func(all source.Anchors) source.Anchors {
		at := slices.IndexFunc(all, func(a source.Anchor) bool { return a.Path == path })
		if at < 0 {
			return all
		}
		a := all[at]
		a.Kept = slices.DeleteFunc(slices.Clone(a.Kept), func(line string) bool { return definesTable(line, name) })
		if len(a.Kept) == 0 && !given && !nestedAtRunTime(all, path) {
			return all.Without(func(other string) bool { return other == path })
		}
		return all.With(a)
	}, m)
}

// nestedAtRunTime reports whether the rules of another anchor can contain those of a path in
// braces.
func nestedAtRunTime(anchors source.Anchors, path string) bool {
	for _, a := range anchors {
		if strings.HasPrefix(path, a.Path+"/") {
			return true
		}
	}
	return false
}

// keepAnchors gives a source that is to be loaded the anchors of the one before it.
func (s *Source) keepAnchors(before *Source) {
	if s.Builtin || before.Builtin || len(before.Anchors) == 0 {
		return
	}
	s.Anchors = before.Anchors
	if s.hosts == nil {
		return
	}
	missing := before.hosts.Known()
	for name := range s.hosts.Known() {
		delete(missing, name)
	}
	s.hosts.Remember(missing)
}

// dropGivenAnchors drops the anchors for which the source has rules itself. As in pf, a
// load resets these.
func (s *Source) dropGivenAnchors(m *machine) {
	if len(s.Anchors) == 0 {
		return
	}
	rules, _, err := s.parse(m)
	if err != nil {
		return // the load will say it
	}
	given := make(map[string]bool)
	for _, a := range rules.Anchors {
		given[a.Path] = a.Given
	}
	s.Anchors = s.Anchors.Without(func(path string) bool { return given[path] })
}

// recallAnchors gives the file of a start the anchors of the rules in force, which an
// earlier daemon may have loaded.
func (b *box) recallAnchors(s *Source) {
	before, err := b.sourceInForce()
	if err != nil {
		if !errors.Is(err, dataplane.ErrNotLoaded) {
			b.cfg.Log.Warn("what was loaded into anchors cannot be read again", "error", err)
		}
		return
	}
	s.Anchors = before.Anchors
}

// leaveOutAnchors takes those anchors out of the source of a start that do not fit its file,
// and reports whether there are any. The box has to start, and no daemon runs that could
// flush them. Their rules are kept in files.
func (b *box) leaveOutAnchors(s *Source) bool {
	anchors := s.Anchors
	if len(anchors) == 0 {
		return false
	}
	m, err := b.machine()
	if err != nil {
		return false // the start has said it
	}
	fitting := *s
	fits := func(a source.Anchors) bool {
		fitting.Anchors = a
		_, err = fitting.compile(m)
		return err == nil
	}
	if fits(anchors) || !fits(nil) {
		return false // something else is wrong
	}
	s.Anchors = nil
	for _, a := range anchors {
		if fits(s.Anchors.With(a)) {
			s.Anchors = fitting.Anchors
			continue
		}
		why := err
		file, err := b.cfg.Folder.WriteLeftOut(a.Path, a.Text)
		b.cfg.Log.Error("rules that were loaded into an anchor do not fit the rule file; the anchor is left out; load the file of its rules again (weir anchor load) when they fit",
			"anchor", a.Path, "file", file, "error", errors.Join(why, err))
	}
	return true
}

// sameFile reports whether two sources differ in nothing but their anchors.
func (s *Source) sameFile(other *Source) bool {
	a, b := s.Beside, other.Beside
	a.Anchors, b.Anchors = nil, nil
	return s.Path == other.Path && s.Text == other.Text && a.Equal(&b)
}

// withAnchors adds to an error that anchors may be at fault.
func (s *Source) withAnchors(err error) error {
	var faults *diag.Failure
	if len(s.Anchors) == 0 || !errors.As(err, &faults) {
		return err
	}
	return fmt.Errorf("%w\n%s", err, forgetsAnchors)
}

// keepsTable reports whether a source leaves a table of the one before it alone, even if it
// defines what the table holds: nothing but anchors has changed, and not the table's own.
func (s *Source) keepsTable(before *Source, name string) bool {
	if s.hosts != before.hosts || !s.sameFile(before) { // each load has hosts of its own
		return false
	}
	_, path, _ := strings.Cut(name, "@")
	return path == "" || s.Anchors.SameTables(before.Anchors, path)
}
