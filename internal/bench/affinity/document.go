package affinity

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/bench/report"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// held is the smallest share of a rate that counts as the rate.
const held = 0.9

func (r *result) document(o *Options, started time.Time, m hostinfo.Machine) *report.Document {
	control := stats.NewControl()
	control.Add(o.Path+" before", r.runs[before].arrived, r.runs[again].arrived)
	r.refuse(&control, o)
	d := &report.Document{
		Kind: "affinity", Title: "What weir affinity auto is worth where one core is full", Command: o.Command, Started: started, Machine: m, Control: &control,
		Method: []string{
			fmt.Sprintf("A router (path %s, entry %s, %d flows of 64-byte UDP) between two veth pairs with a queue for each core. The generator sends by one core, so that all frames come by one queue, which a thread bound to another core receives (threaded NAPI).", o.Path, o.Entry, o.Flows),
			fmt.Sprintf("The offered rate is raised in steps until it is %g times what arrives, which is the capacity of that core. That rate is then held on average, whether the router keeps up or not. Packets that arrive at the far end count.", o.Times),
			"Generator and receiving threads have priority over all programs (SCHED_FIFO, in pieces of at most 0.8 s), and no program gets the idle time of the receiving core. If the generator is late because its core also forwards, it makes up for that at up to four times the rate.",
			"The pieces of a run take turns with those of the other settings, in random order: as it is; the same again (A/A control); and after weir affinity auto has seen the load, which weir affinity revert then undoes. So a disturbance of some seconds meets all three.",
			fmt.Sprintf("Means of independent runs are compared by Student's or Welch's test at 95 %%. There is no verdict if the generator sent less than %.0f %% of the rate. Generator and router share the cores, so weir affinity auto cannot gain the generator's share.", 100*held),
		},
		Notes: []string{"weir doctor, before: " + r.verdict.Sentence, "weir affinity auto: " + r.changes,
			fmt.Sprintf("The generator's core, before: busy for %.0f %% of the time, all of it for the generator; after, with what the router does there: %.0f %%.", 100*r.runs[before].busy.Median(), 100*r.runs[after].busy.Median())},
	}
	table := report.Table{Columns: []report.Column{{Name: "setting", Words: true}, {Name: "offered", Unit: "Mpps"}, {Name: "arrived", Unit: "Mpps"},
		{Name: "smallest – largest run", Unit: "Mpps"}, {Name: "late bursts", Unit: "%"}, {Name: "programs' time", Unit: "%"}}}
	for which, name := range settingNames {
		one := &r.runs[which]
		table.Add(false, name, report.Figure(one.offered.Median()/1e6), report.Figure(one.arrived.Median()/1e6),
			report.Figure(one.arrived.Min()/1e6)+" – "+report.Figure(one.arrived.Max()/1e6), report.Figure(100*one.late.Median()), report.Figure(100*one.foreign.Median()))
		d.Measure(report.Higher, "frames/s", one.arrived, "relief: "+name)
	}
	d.Verdicts = []string{r.said()}
	d.Sections = []report.Section{{Title: "What arrived", Tables: []report.Table{table}}}
	return d
}

// refuse withholds the verdict if the router did not get its load, or if there was
// nothing to improve.
func (r *result) refuse(c *stats.Control, o *Options) {
	want := r.capacity * o.Times
	for which, name := range settingNames {
		if sent := r.runs[which].offered.Median(); !(sent >= held*want) {
			c.Refuse(fmt.Sprintf("%s: the generator sent %s of %s Mpps: this machine has no room for it", name, report.Figure(sent/1e6), report.Figure(want/1e6)))
		}
	}
	if !strings.Contains(r.verdict.Sentence, " full of ") {
		c.Refuse("doctor saw no core that packets fill, but: " + r.verdict.Sentence)
	}
}

// said returns the verdict.
func (r *result) said() string {
	without, with := r.runs[before].arrived, r.runs[after].arrived
	c := stats.Compare(without, with)
	doubt := ""
	if !c.Proven {
		doubt = "Not proven: "
	}
	said := doubt + fmt.Sprintf("After weir affinity auto %.2f times the packets arrive (medians; offered %s Mpps, one core carries %s).",
		with.Median()/without.Median(), report.Figure(r.runs[after].offered.Median()/1e6), report.Figure(r.capacity/1e6))
	if c.Test != stats.TooFew {
		said += fmt.Sprintf(" The means differ by %+.1f ± %.1f %% (95 %%, %s, n = %d).", 100*c.Relative, 100*c.RelativeInterval, c.Test, len(with))
	}
	return said
}
