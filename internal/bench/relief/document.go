package relief

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/bench/report"
	"weir/internal/machine"
	"weir/internal/stats"
)

// Names of measurements, for who reads the report.
const (
	Before = "relief: before"
	Again  = "relief: before, again"
	After  = "relief: after"
)

func (r *result) document(o *Options, started time.Time, m machine.Machine) *report.Document {
	control := stats.NewControl()
	control.Add(o.Path+" before", r.before, r.again)
	if want := r.capacity * o.Times; r.held.Median() < 0.9*want {
		control.Refuse(fmt.Sprintf("the generator sent %.2f of %.2f Mpps: this machine has no room for it", r.held.Median()/1e6, want/1e6))
	}
	if !strings.Contains(r.verdict.Sentence, " full of ") {
		control.Refuse("doctor saw no core that packets fill, but: " + r.verdict.Sentence)
	}
	d := &report.Document{
		Kind: "affinity", Title: "What weir affinity auto is worth where one core is full", Command: o.Command, Started: started, Machine: m, Control: &control,
		Method: []string{
			fmt.Sprintf("A router (path %s, entry %s, %d flows of 64-byte UDP) between two veth pairs with a queue for each core. The generator sends by one core, so that all frames come by one queue, which a thread bound to another core receives (threaded NAPI).", o.Path, o.Entry, o.Flows),
			fmt.Sprintf("What that core carries is measured by offering far more. Then %g times as much is offered, at a fixed rate, whether the router keeps up or not; what arrives at the far end counts.", o.Times),
			"Each round has, in random order: as it is; the same again (A/A control); and after weir affinity auto has seen the load, after which weir affinity revert puts all back.",
			"Means of independent runs are compared by Student's or Welch's test at 95 %. Generator and router share the cores: what the generator takes is not there to be gained.",
		},
		Notes: []string{"weir doctor, before: " + r.verdict.Sentence, "weir affinity auto: " + r.changes},
	}
	table := report.Table{Columns: []report.Column{{Name: "setting", Words: true}, {Name: "arrived", Unit: "Mpps"}, {Name: "smallest – largest run", Unit: "Mpps"}}}
	for _, one := range []struct {
		name string
		runs stats.Sample
	}{{"before", r.before}, {"before, again", r.again}, {"after", r.after}} {
		table.Rows = append(table.Rows, []string{one.name, fmt.Sprintf("%.3f", one.runs.Median()/1e6), fmt.Sprintf("%.3f – %.3f", one.runs.Min()/1e6, one.runs.Max()/1e6)})
		d.Measurements = append(d.Measurements, report.Measurement{Name: "relief: " + one.name, Unit: "frames/s", Better: report.Higher, Runs: one.runs})
	}
	c := stats.Compare(r.before, r.after)
	said := fmt.Sprintf("After weir affinity auto %.2f times the packets arrive (medians; offered %.2f Mpps, one core carries %.2f).",
		r.after.Median()/r.before.Median(), r.held.Median()/1e6, r.capacity/1e6)
	if c.Test != stats.TooFew {
		said += fmt.Sprintf(" The means differ by %+.1f ± %.1f %% (95 %%, %s, n = %d).", 100*c.Relative, 100*c.RelativeInterval, c.Test, len(r.after))
	}
	d.Verdicts = []string{said}
	d.Sections = []report.Section{{Title: "What arrived", Tables: []report.Table{table}}}
	return d
}
