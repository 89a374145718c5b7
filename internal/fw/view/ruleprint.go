package view

import (
	"fmt"
	"io"

	"weir/internal/fw/rundir"
	"weir/internal/textout"
)

// PrintRules writes rules as pfctl -sr does. With verbose 1 it adds the counters, as
// pfctl -sr -v does; with more, also the numbers, as -vv does. The output can be loaded, and
// means the same: the rules of an anchor stand in braces after the rule that evaluates it,
// as in the file. Those of an anchor that has none there, because they were loaded at run
// time or because several rules evaluate it, stand at the end, as load anchor.
func PrintRules(w io.Writer, rules []Rule, verbose, pid int) error {
	p := newRulePrinter(w, rules, verbose, pid)
	for i := range p.lists {
		p.rule(&p.lists[i], "", "")
	}
	for i := range p.rules {
		if r := &p.rules[i]; r.Braces {
			p.done[r.Calls] = true
		}
	}
	p.block(0, len(p.rules), "")
	for len(p.later) > 0 {
		next := p.later[0]
		p.later = p.later[1:]
		p.Line("load anchor %q {", next.path)
		p.block(next.from, next.to, "  ")
		p.Line("}")
	}
	return p.Err
}

// PrintAnchor writes the rules of one anchor. Anchors that stand in braces there are a part
// of them, others are not. below: it writes all anchors below this one instead, each as load
// anchor.
func PrintAnchor(w io.Writer, rules []Rule, anchors []rundir.Anchor, path string, below bool, verbose, pid int) error {
	p := newRulePrinter(w, rules, verbose, pid)
	for i := range anchors {
		a := &anchors[i]
		switch {
		case !rundir.Within(a.Path, path, below):
		case !below:
			p.anchor(a, "")
		default:
			p.Line("load anchor %q {", a.Path)
			p.anchor(a, "  ")
			p.Line("}")
		}
	}
	return p.Err
}

func newRulePrinter(w io.Writer, rules []Rule, verbose, pid int) *rulePrinter {
	filter := 0
	for filter < len(rules) && rules[filter].List != "" {
		filter++
	}
	return &rulePrinter{
		Lines: textout.Lines{W: w}, lists: rules[:filter], rules: rules[filter:],
		verbose: verbose, pid: pid, done: make(map[string]bool),
	}
}

// anchor writes the rules of one anchor, from the first rule that evaluates it.
func (p *rulePrinter) anchor(a *rundir.Anchor, indent string) {
	for _, line := range a.Lines { // of those that nothing evaluates
		p.Line("%s%s", indent, line)
	}
	if !a.Called {
		return
	}
	for i := range p.lists {
		if p.lists[i].Scope == a.Path {
			p.rule(&p.lists[i], indent, "")
		}
	}
	for i := range p.rules {
		if p.rules[i].Scope == a.Path {
			p.block(i, p.same(i, len(p.rules)), indent)
			return
		}
	}
}

// A rulePrinter writes the rules of anchors in braces.
type rulePrinter struct {
	textout.Lines
	lists   []Rule // rules of FreeBSD's lists
	rules   []Rule // filter rules
	verbose int
	pid     int
	done    map[string]bool // paths of anchors that are, or will be, written
	later   []loadedAnchor  // those to be written at the end
}

// A loadedAnchor is the rules of one anchor, as a range of all.
type loadedAnchor struct {
	path     string
	from, to int
}

// block writes a range of rules.
func (p *rulePrinter) block(from, to int, indent string) {
	for i := from; i < to; {
		r := &p.rules[i]
		end := p.end(i)
		if !r.Braces || end == i+1 {
			p.rule(r, indent, "")
			p.postpone(i+1, end)
		} else {
			p.rule(r, indent, " {")
			p.block(i+1, end, indent+"  ")
			p.Line("%s}", indent)
		}
		i = end
	}
}

// end returns the index of the first rule after a rule and the anchor that it calls.
func (p *rulePrinter) end(i int) int {
	end := i + 1
	if p.rules[i].Calls != "" {
		for end < len(p.rules) && p.rules[end].Nr < p.rules[i].End {
			end++
		}
	}
	return end
}

// postpone notes the anchors whose rules a range holds.
func (p *rulePrinter) postpone(from, to int) {
	for i := from; i < to; {
		path, first := p.rules[i].Scope, i
		i = p.same(i, to)
		if !p.done[path] {
			p.done[path] = true
			p.later = append(p.later, loadedAnchor{path, first, i})
		}
	}
}

// same returns the index of the first rule before to that is not in the anchor of rule i.
func (p *rulePrinter) same(i, to int) int {
	path := p.rules[i].Scope
	for i < to && p.rules[i].Scope == path {
		i = p.end(i)
	}
	return i
}

// rule writes one rule, with open after its text.
func (p *rulePrinter) rule(r *Rule, indent, open string) {
	text := r.Text
	if p.verbose > 1 {
		text = fmt.Sprintf("@%d %s", r.Nr, text)
	}
	p.Line("%s%s%s", indent, text, open)
	if p.verbose == 0 {
		return
	}
	p.Line("%s  [ Evaluations: %-8d  Packets: %-8d  Bytes: %-10d  States: %-6d]", indent, r.Evaluations, r.Packets, r.Bytes, r.States)
	p.Line("%s  [ Inserted: uid 0 pid %d State Creations: %-6d]", indent, p.pid, r.StateCreations)
}
