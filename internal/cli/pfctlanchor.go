package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
	"weir/pf/resolve"
	"weir/pf/source"
)

// runAnchor does what the options say about one anchor. done is false if they say nothing
// that is about one.
func (p *pfctl) runAnchor(ctx context.Context) (done bool, err error) {
	path, below, err := source.ParseAnchor(p.anchor, true)
	if err != nil {
		return false, &UsageError{err}
	}
	for _, step := range []struct {
		asked bool
		do    func() error
	}{
		{p.show != "", func() error { return p.showAnchor(ctx, path, below) }},
		{p.clear != "", func() error { return p.clearAnchor(ctx, path, below) }},
		{p.file != "", func() error { return p.fillAnchor(ctx, path, below) }},
	} {
		if step.asked {
			done = true
			err = errors.Join(err, step.do())
		}
	}
	return done, err
}

// showAnchor prints the rules of an anchor, or the anchors in it.
func (p *pfctl) showAnchor(ctx context.Context, path string, below bool) error {
	switch {
	case p.show == "Anchors":
		return p.showAnchors(path, below)
	case path == "" && below: // the main ruleset, too
		return p.showOne(ctx, p.show)
	case p.show == "labels":
		r, err := p.env.reader()
		if err != nil {
			return err
		}
		defer r.Close()
		return p.showLabels(r, func(scope string) bool { return rundir.Within(scope, path, below) })
	case p.show != "rules" && p.show != "nat" && p.show != "ether":
		return fmt.Errorf("-a: -s %s is not about one anchor", p.show)
	}
	anchors, rules, pid, err := p.env.anchors()
	if err != nil {
		return err
	}
	zero, err := p.readZero()
	if err != nil {
		return err
	}
	zero.Subtract(rules)
	if err := p.countTables(ctx, rules); err != nil {
		return err
	}
	for i := range anchors {
		anchors[i].Lines = slices.DeleteFunc(anchors[i].Lines, func(line string) bool { return showOf(rundir.ListOf(line)) != p.show })
	}
	return view.PrintAnchor(p.env.Stdout, ofPfctl(rules, p.show), anchors, path, below, p.verbose, pid)
}

// showOf returns what shows the rules of a list: pfctl -s ether, nat or rules.
func showOf(list string) string {
	switch list {
	case "ether":
		return "ether"
	case "nat", "rdr", "binat":
		return "nat"
	}
	return "rules"
}

// ofPfctl returns the rules that pfctl -s shows.
func ofPfctl(rules []view.Rule, show string) []view.Rule {
	return slices.DeleteFunc(rules, func(rule view.Rule) bool { return showOf(rule.List) != show })
}

// showAnchors prints the anchors directly in one; with -v, and for *, also those in them. As in
// pf, an anchor that a rule names exists, also if it has no rules.
func (p *pfctl) showAnchors(path string, below bool) error {
	anchors, rules, _, err := p.env.anchors()
	if err != nil {
		return err
	}
	for i := range rules {
		if called := strings.TrimSuffix(rules[i].Calls, "/*"); called != "" && !strings.HasPrefix(called, "_") && !strings.Contains(called, "/_") {
			anchors = append(anchors, rundir.Anchor{Path: called})
		}
	}
	slices.SortFunc(anchors, func(a, b rundir.Anchor) int { return strings.Compare(a.Path, b.Path) })
	for _, name := range inAnchor(anchors, path, below || p.verbose > 0) {
		if _, err := fmt.Fprintf(p.env.Stdout, "  %s\n", name); err != nil {
			return err
		}
	}
	return nil
}

// inAnchor returns the paths of the anchors in one, including those that only have others
// in them. Without all, those directly in it.
func inAnchor(anchors []rundir.Anchor, path string, all bool) (paths []string) {
	if path != "" {
		path += "/"
	}
	for i := range anchors {
		rest, inside := strings.CutPrefix(anchors[i].Path, path)
		if !inside {
			continue
		}
		names := strings.Split(rest, "/")
		for n := 1; n <= len(names) && (all || n == 1); n++ {
			if sub := path + strings.Join(names[:n], "/"); !slices.Contains(paths, sub) {
				paths = append(paths, sub)
			}
		}
	}
	return paths
}

// clearAnchor removes the rules of an anchor, or those of one kind.
func (p *pfctl) clearAnchor(ctx context.Context, path string, below bool) error {
	kind := source.Kind(p.clear)
	switch p.clear {
	case "rules", "nat", "ethernet":
	case "all":
		kind = ""
	case "Tables":
		return p.clearTables(ctx, path, below)
	default:
		return fmt.Errorf("-a: -F %s is not about one anchor", p.clear)
	}
	if p.dry {
		return nil
	}
	a, err := p.env.flushAnchor(ctx, &control.AnchorChange{Flush: path, Below: below, Kind: kind})
	if errors.Is(err, errNoSuchAnchor) {
		err = nil // pfctl flushes it, too
	}
	if err != nil {
		return err
	}
	if a != nil {
		p.env.warn(a.Warnings)
	}
	switch p.clear {
	case "nat":
		p.say("nat cleared")
	case "ethernet":
		p.say("ethernet rules cleared")
	default:
		p.say("rules cleared")
	}
	if p.clear == "all" {
		return p.clearTables(ctx, path, below)
	}
	return nil
}

// fillAnchor checks or loads the rules of an anchor.
func (p *pfctl) fillAnchor(ctx context.Context, path string, below bool) error {
	if below || path == "" {
		return &UsageError{errors.New("-a: rules are loaded into one anchor")}
	}
	file := p.file
	if file == "/dev/stdin" {
		file = "-"
	}
	one, err := p.env.readAnchor(ctx, path, file, p.macros)
	if err != nil {
		return err
	}
	if p.dry || p.verbose > 0 {
		done, err := p.checkAnchor(ctx, one)
		if err != nil {
			return err
		}
		if p.verbose > 0 {
			if err := p.env.printLines(done.Lines); err != nil {
				return err
			}
		}
		if p.dry {
			p.env.warn(done.Warnings)
			return nil
		}
	}
	done, err := p.env.changeAnchor(ctx, &control.AnchorChange{Load: one, NoDNS: p.noDNS})
	if err != nil {
		return err
	}
	p.env.warn(done.Warnings)
	return nil
}

// checkAnchor says what a load would do: with the rules in force, or, as pfctl does on a
// machine without pf, with the anchor alone.
func (p *pfctl) checkAnchor(ctx context.Context, one *source.Anchor) (*control.AnchorChanged, error) {
	if needRoot() == nil {
		done, err := p.env.changeAnchor(ctx, &control.AnchorChange{Load: one, NoDNS: p.noDNS, Check: true})
		if !errors.Is(err, control.ErrNoDaemon) {
			return done, err
		}
	}
	host, err := (&checkOptions{noDNS: p.noDNS}).machine()
	if err != nil {
		return nil, err
	}
	rules, list := resolve.LoadWith("main ruleset", fmt.Appendf(nil, "anchor %q\n", one.Path), host, resolve.Settings{Anchors: source.Anchors{*one}})
	if rules != nil {
		list.Enforce()
	}
	if err := list.Err(); err != nil {
		return nil, err
	}
	done := &control.AnchorChanged{}
	if len(list.Items) > 0 {
		done.Warnings = []string{list.String()}
	}
	for _, a := range rules.Anchors {
		if a.Path == one.Path {
			done.Lines = a.Lines
		}
	}
	return done, nil
}
