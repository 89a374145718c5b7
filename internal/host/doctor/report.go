package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Print writes the report for people: the verdict, the findings with their evidence, and
// what could not be checked. Each notice takes one line unless all is true.
func (r *Report) Print(w io.Writer, all bool) error {
	p := &printer{w: w}
	p.line("%s.", r.Verdict.Sentence)
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == Notice && !all {
			continue
		}
		p.finding(f)
	}
	if !all {
		p.notices(r.Findings)
	}
	p.unreadable(r.Checks, all)
	p.line("")
	p.line("%s", r.count())
	for _, note := range r.Notes {
		p.line("%s", note)
	}
	return p.err
}

// printer keeps the first write error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) finding(f *Finding) {
	p.line("")
	p.line("%s  %s  %s", f.Check, f.Severity, f.Says)
	for _, e := range f.Evidence {
		p.line("    %s", e)
	}
	for _, m := range f.Remedies {
		if m.Command == "" {
			p.line("  > %s", m.Text)
			continue
		}
		p.line("  > %s", m.Command)
		p.line("      %s", m.Text)
	}
	if f.Expect != "" {
		p.line("  = %s", f.Expect)
	}
}

func (p *printer) notices(findings []Finding) {
	head := false
	for i := range findings {
		if f := &findings[i]; f.Severity == Notice {
			if !head {
				p.line("")
				p.line("Worth knowing (-v has the evidence and the remedies):")
				head = true
			}
			p.line("  %-8s %s", f.Check, f.Says)
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
		p.line("")
		p.line("Not readable here, so not checked (-v says why): %s", strings.Join(ids, " "))
		return
	}
	head := false
	for _, c := range checks {
		if c.State == NotHere || len(c.Why) == 0 {
			continue
		}
		if !head {
			p.line("")
			p.line("Not readable here, so not checked:")
			head = true
		}
		p.line("  %-8s %s: %s", c.ID, c.Title, brief(c.Why))
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
