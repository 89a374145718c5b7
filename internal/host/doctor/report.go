package doctor

import (
	"fmt"
	"io"
	"strings"

	"weir/internal/textout"
)

// Print writes the report for people: the verdict, the findings with their evidence, and
// what could not be checked. Each notice takes one line unless all is true.
func (r *Report) Print(w io.Writer, all bool) error {
	p := &printer{Lines: textout.Lines{W: w}, shown: map[string]bool{}}
	p.Line("%s.", r.Verdict.Sentence)
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == Notice && !all {
			continue
		}
		p.finding(f)
	}
	if all {
		p.lists(r)
	} else {
		p.notices(r.Findings)
	}
	p.unreadable(r.Checks, all)
	p.Line("")
	p.Line("%s", r.count())
	for _, note := range r.Notes {
		p.Line("%s", note)
	}
	return p.Err
}

type printer struct {
	textout.Lines
	shown map[string]bool // evidence that stands above already
}

// finding prints a finding. One that another explains stands right below it. What stands
// above already is not said again.
func (p *printer) finding(f *Finding) {
	if f.Because != "" {
		p.Line("  and so %s  %s", f.Check, f.Says)
		p.evidence(f, "        ")
		for _, m := range f.Remedies {
			p.Line("      (%s)", m.Text)
		}
		return
	}
	p.Line("")
	p.Line("%s  %s  %s", f.Check, f.Severity, f.Says)
	p.evidence(f, "    ")
	p.remedies(f)
	if f.Expect != "" {
		p.Line("  = %s", f.Expect)
	}
}

// remedies prints what to do.
func (p *printer) remedies(f *Finding) {
	for _, m := range f.Remedies {
		if m.Command == "" {
			p.Line("  > %s", m.Text)
			continue
		}
		p.Line("  > %s", m.Command)
		p.Line("      %s", m.Text)
	}
	for _, other := range f.See {
		p.Line("  > as for %s, above", other)
	}
}

func (p *printer) evidence(f *Finding, indent string) {
	for _, e := range f.Evidence {
		if !p.shown[e] {
			p.Line("%s%s", indent, e)
		}
		p.shown[e] = true
	}
}

// lists prints what tunnels and shapers counted.
func (p *printer) lists(r *Report) {
	for _, list := range []struct {
		head  string
		lines []string
	}{{"Tunnels:", r.Tunnels}, {"Queueing disciplines that held back, dropped or hold packets:", r.Shapers}} {
		if len(list.lines) == 0 {
			continue
		}
		p.Line("")
		p.Line("%s", list.head)
		for _, line := range list.lines {
			p.Line("  %s", line)
		}
	}
}

func (p *printer) notices(findings []Finding) {
	head := false
	for i := range findings {
		if f := &findings[i]; f.Severity == Notice {
			if !head {
				p.Line("")
				p.Line("Worth knowing (-v has the evidence and the remedies):")
				head = true
			}
			p.Line("  %-8s %s", f.Check, f.Says)
		}
	}
}

// unreadable names the checks that could not run. If there are more than a dozen, because
// the source holds little, it prints their IDs only.
func (p *printer) unreadable(checks []CheckResult, all bool) {
	const most = 12
	var ids []string
	for _, c := range checks {
		if c.State == Unreadable {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) > most && !all {
		p.Line("")
		p.Line("Not readable here, so not checked (-v says why): %s", strings.Join(ids, " "))
		return
	}
	head := false
	for _, c := range checks {
		if c.State == NotHere || len(c.Why) == 0 {
			continue
		}
		if !head {
			p.Line("")
			p.Line("Not readable here, so not checked:")
			head = true
		}
		p.Line("  %-8s %s: %s", c.ID, c.Title, brief(c.Why))
	}
}

// brief shortens a list to one line.
func brief(why []string) string {
	const most = 3
	if len(why) <= most {
		return strings.Join(why, "; ")
	}
	return strings.Join(why[:most], "; ") + fmt.Sprintf("; and %d more", len(why)-most)
}

// count writes how many checks ended in each state.
func (r *Report) count() string {
	by := map[State]int{}
	for _, c := range r.Checks {
		by[c.State]++
	}
	var parts []string
	for _, s := range []State{Found, Fine, Unreadable, NotHere, Skipped} {
		if by[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[s], s))
		}
	}
	return plural(len(r.Checks), "check") + ": " + strings.Join(parts, ", ")
}
