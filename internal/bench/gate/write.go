package gate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// Document is the result in the form that people pass around.
func (r *Result) Document(command string) *report.Document {
	d := &report.Document{Kind: "gate", Title: "Whether weir has become slower", Command: command, Started: r.Started,
		Machine: r.Machine, Notes: r.Notices, Control: r.control(), Method: []string{
			fmt.Sprintf("weir bench forward measured these paths in runs of less than a minute, and their ratios count: absolute figures do not matter. One run that is not more than %.0f %% under the recorded ratio is enough; slower is what lies under that in %d runs.",
				100*r.Margin, needed),
			"A run counts if its control holds: one path measured twice, as if it were two."}}
	table := report.Table{Columns: []report.Column{{Name: "ratio", Words: true}, {Name: "connections"}, {Name: "recorded"},
		{Name: "found"}, {Name: "verdict", Words: true, Concludes: true}}}
	for _, v := range r.Verdicts {
		table.Rows = append(table.Rows, []string{v.Name(), units.Thousands(v.Flows), fmt.Sprintf("%.3f", v.Mpps), list(v.Found), sentence(v, r.Margin)})
		d.Verdicts = append(d.Verdicts, v.line(r.Margin))
		if len(v.Found) > 0 {
			d.Measurements = append(d.Measurements, report.Measurement{Name: fmt.Sprintf("gate: %s, %d connections", v.Name(), v.Flows),
				Unit: "times", Better: report.Higher, Runs: v.Found})
		}
	}
	d.Sections = []report.Section{{Title: "Ratios",
		Text:   []string{fmt.Sprintf("Recorded on %s, Linux %s, %s.", r.Recorded.CPU, r.Recorded.Kernel, r.Recorded.Recorded.Format(time.DateOnly))},
		Tables: []report.Table{table}}}
	return d
}

// control is that of the run which differed most from itself, of those that count.
func (r *Result) control() *stats.Control {
	if len(r.Runs) == 0 {
		c := stats.NewControl()
		c.Refuse("no run had a control that holds")
		return &c
	}
	worst := slices.MaxFunc(r.Runs, func(a, b Run) int { return cmp.Compare(a.Control.Difference, b.Control.Difference) })
	return &worst.Control
}

// line is what is said of one ratio.
func (v *Verdict) line(margin float64) string {
	return fmt.Sprintf("%s at %s flows: recorded %.3f, found %s: %s", v.Name(), units.Thousands(v.Flows), v.Mpps, list(v.Found), sentence(*v, margin))
}

// WriteText prints one line for each ratio, and the notices.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	for _, v := range r.Verdicts {
		fmt.Fprintln(&text, v.line(r.Margin))
	}
	for _, n := range r.Notices {
		fmt.Fprintf(&text, "notice: %s\n", n)
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print the gate's result: %w", err)
	}
	return nil
}

func list(values stats.Sample) string {
	if len(values) == 0 {
		return "nothing"
	}
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprintf("%.3f", v))
	}
	return strings.Join(all, ", ")
}

func sentence(v Verdict, margin float64) string {
	switch v.State {
	case Fine:
		return Fine
	case Slower:
		return fmt.Sprintf("SLOWER: %d runs, each over %.0f %% under it", len(v.Found), margin*100)
	}
	return "not judged"
}
