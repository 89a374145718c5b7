package compare

import (
	"fmt"
	"io"
	"strings"

	"weir/internal/stats"
	"weir/internal/units"
)

// WriteText prints a block in ministat's style for each measurement, and the verdict.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	for _, row := range r.Rows {
		fmt.Fprintf(&text, "%s (%s, %s is better)\n", row.Name, row.Unit, row.Better)
		a := stats.Named{Name: r.A.Name, Sample: row.A, Resolution: row.Resolution}
		b := stats.Named{Name: r.B.Name, Sample: row.B, Resolution: row.Resolution}
		if err := stats.WriteMinistat(&text, a, b); err != nil {
			return err
		}
		if bound := row.AtLeast.of(r); bound != "" {
			fmt.Fprintf(&text, "%s knows only the least value: who measured was the limit\n", bound)
		}
		fmt.Fprintf(&text, "%s\n\n", row.sentence(len(r.Rows)))
	}
	for _, side := range []struct {
		source *Source
		names  []string
	}{{r.A, r.OnlyA}, {r.B, r.OnlyB}} {
		for _, name := range side.names {
			fmt.Fprintf(&text, "only in %s: %s\n", side.source.Name, name)
		}
		if side.source.Sketch {
			fmt.Fprintf(&text, "%s is a sketch: its runs are short\n", side.source.Name)
		}
		if side.source.Control == nil {
			fmt.Fprintf(&text, "%s has no A/A control: nothing shows that its figures hold\n", side.source.Name)
		}
	}
	for _, name := range r.Limited {
		fmt.Fprintf(&text, "not compared, as in both who measured was the limit: %s\n", name)
	}
	for _, name := range r.Untrusted {
		fmt.Fprintf(&text, "not compared, as its own control failed in one of the reports: %s\n", name)
	}
	if len(r.Machines) > 0 {
		fmt.Fprintf(&text, "The machines differ, and with them all absolute figures: %s\n", strings.Join(r.Machines, "; "))
	}
	text.WriteString(r.summary())
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print the comparison: %w", err)
	}
	return nil
}

// of returns the name of the report whose figure is a lower bound, or "".
func (b Bound) of(r *Result) string {
	switch b {
	case OnlyA:
		return r.A.Name
	case OnlyB:
		return r.B.Name
	}
	return ""
}

func (r *Row) sentence(comparisons int) string {
	if r.Verdict == Unproven {
		if r.Test.Proven && r.open() {
			return "=> " + Unproven + ": the true value may be on either side"
		}
		if r.Test.Proven {
			return fmt.Sprintf("=> unproven: one of %s may well look like this by chance (p %.3f by Holm)",
				units.Plural(comparisons, "comparison"), r.HolmP)
		}
		return "=> " + Unproven
	}
	return fmt.Sprintf("=> %s of %+.1f %% (p %.2g by Holm)", r.Verdict, r.Test.Relative*100, r.HolmP)
}

func (r *Result) summary() string {
	better := 0
	for _, row := range r.Rows {
		if row.Verdict == Improvement {
			better++
		}
	}
	return fmt.Sprintf("%s at %.0f %% for all together (Holm): %s, %s\n"+
		"The reports were made at different times, so changes of the machine in between count as a difference.\n",
		units.Plural(len(r.Rows), "comparison"), stats.Confidence*100, units.Plural(r.Regressions, "regression"),
		units.Plural(better, "improvement"))
}
