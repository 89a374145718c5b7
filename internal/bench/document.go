package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weir/internal/bench/report"
	"weir/internal/quantity"
	"weir/internal/stats"
)

// mostGroups are the cases whose bars stand in one chart; all are in the tables.
const mostGroups = 6

// Document is the report in the form that people pass around.
func (r *Report) Document() *report.Document {
	d := &report.Document{
		Kind: "forward", Title: "How many frames a core forwards", Command: r.Command, Started: r.Started, Machine: r.Machine,
		Verdicts: r.verdicts(), Method: r.method(), Control: &r.Control, Sketch: r.sketch(),
		Notes: append(slices.Clone(r.Notes), strings.ReplaceAll(caveat, "\n", " ")),
	}
	for _, s := range r.Skipped {
		what := s.Path
		if s.Case != nil {
			what += ", " + s.Case.String()
		}
		d.Skipped = append(d.Skipped, report.Skip{What: what, Reason: s.Reason})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Rules)) {
		d.Attachments = append(d.Attachments, report.Attachment{Name: name, Text: r.Rules[name]})
	}
	d.Sections = append(d.Sections, r.rateSection())
	if s := r.curveSection(); len(s.Charts) > 0 {
		d.Sections = append(d.Sections, s)
	}
	d.Sections = append(d.Sections, r.costSection())
	if p := r.Profile; p != nil {
		d.Sections = append(d.Sections, report.Section{Title: "Where the time goes", Charts: []report.Chart{{
			Title: "Time of the core while " + p.Path + " forwards", Flame: &report.Flame{Unit: "samples", Stacks: p.Stacks},
			Note: "By perf, in a run of its own that is in no other figure: " + p.Case.String() + ". What calls stands below what is called; blue are weir's programs, the generator's and the sink's are the benchmark's.",
		}}})
	}
	d.Sections = append(d.Sections, r.tableSection())
	return d
}

// leastRuns are those below which a report calls itself a sketch.
const leastRuns = 5

func (r *Report) sketch() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return len(row.Mpps) < leastRuns })
}

func (r *Report) method() []string {
	runs := 0
	for _, row := range r.Rows {
		runs = max(runs, len(row.Mpps))
	}
	return []string{
		"Three network namespaces of its own, joined by veth pairs. A program in the kernel writes every frame anew, with valid checksums; another one counts what arrives.",
		"Generator, path and sink share the same core: a figure is what one core does with all of it. The generator's path shows what that alone costs.",
		fmt.Sprintf("Each path in each case %s, in random order; bars and lines are medians, whiskers reach from the smallest run to the largest.",
			times(runs)),
		"Before anything is counted, one frame of every connection in each direction is compared with what has to arrive: addresses, ports, TTL, checksums. One wrong frame ends the benchmark.",
		"weir and nftables enforce the same policy, which is attached; the kernel's path only forwards, and redirect is a bare XDP redirect: the limit of this machine.",
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return quantity.Thousands(n) + " times"
}

// verdicts are what the ratios of the first case say, and how far those of the
// others reach.
func (r *Report) verdicts() []string {
	cases := r.cases()
	if len(cases) == 0 {
		return nil
	}
	var all []string
	for _, v := range []struct{ of, to, sentence string }{
		{PathWeirNAT, PathNftNAT, "With NAT, weir forwards %s times as many frames as nftables"},
		{PathWeir, PathNft, "Without NAT, weir forwards %s times as many frames as nftables"},
		{PathWeirNAT, PathRedirect, "With NAT, weir reaches %s of what a bare redirect does, the limit of this machine"},
		{PathWeir, PathKernel, "weir filters %s times as many frames as the kernel forwards without any rules"},
	} {
		if text := r.verdict(v.of, v.to, v.sentence, cases); text != "" {
			all = append(all, text)
		}
	}
	if text := r.verdictNew(cases[0]); text != "" {
		all = append(all, text)
	}
	return all
}

func (r *Report) verdict(of, to, sentence string, cases []Case) string {
	first, least, most := math.NaN(), math.Inf(1), 0.0
	for _, ratio := range r.Ratios {
		if ratio.Of != of || ratio.To != to {
			continue
		}
		least, most = min(least, ratio.Mpps), max(most, ratio.Mpps)
		if ratio.Case == cases[0] {
			first = ratio.Mpps
		}
	}
	if math.IsNaN(first) {
		return ""
	}
	text := fmt.Sprintf(sentence, quantity.Digits(first, 2))
	if len(cases) == 1 {
		return text + "."
	}
	return text + fmt.Sprintf(" (%s); over all %s between %s and %s.", cases[0].short(),
		quantity.Plural(len(cases), "case"), quantity.Digits(least, 2), quantity.Digits(most, 2))
}

// short names a case by what people vary most.
func (c Case) short() string {
	return fmt.Sprintf("%d bytes, %s", c.Frame, quantity.Plural(c.Flows, "connection"))
}

func (r *Report) verdictNew(c Case) string {
	for _, ratio := range r.Ratios {
		if ratio.Of == PathWeirNAT && ratio.To == PathNftNAT && ratio.Case == c && ratio.NewPerS != nil {
			return fmt.Sprintf("It opens %s times as many new connections in a second as nftables with NAT.", quantity.Digits(*ratio.NewPerS, 2))
		}
	}
	return ""
}

// ours tells weir's paths from those that it is compared with.
func ours(path string) bool { return path == PathWeir || path == PathWeirNAT }

// barsOf draws one value of all paths, a group per case.
func (r *Report) barsOf(value func(Row) stats.Sample) []report.BarGroup {
	var groups []report.BarGroup
	cases := r.cases()
	for _, c := range cases[:min(len(cases), mostGroups)] {
		g := report.BarGroup{Name: c.String()}
		for _, row := range r.rowsOf(c) {
			if runs := value(row); len(runs) > 0 {
				g.Bars = append(g.Bars, report.Bar{Name: row.Path, Runs: runs, Ours: ours(row.Path)})
			}
		}
		if len(g.Bars) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func (r *Report) rateSection() report.Section {
	note := "Generator: frames end at the firewall's door. Redirect: a bare XDP redirect, the limit of this machine."
	if n := len(r.cases()); n > mostGroups {
		note += fmt.Sprintf(" The first %d of %d cases; the tables have all.", mostGroups, n)
	}
	return report.Section{Title: "Frames per second", Charts: []report.Chart{{
		Title: "What each path forwards", Note: note,
		Bars: &report.Bars{Label: "million frames per second", Unit: "Mpps", Better: report.Higher,
			Groups: r.barsOf(func(row Row) stats.Sample { return row.Mpps })},
	}}}
}

func (r *Report) costSection() report.Section {
	s := report.Section{Title: "What it costs", Charts: []report.Chart{{
		Title: "Time of one core for one frame",
		Note:  "The generator and the sink are part of it: the generator's bar is what they cost by themselves.",
		Bars: &report.Bars{Label: "nanoseconds per frame", Unit: "ns", Better: report.Lower, Groups: r.barsOf(func(row Row) stats.Sample {
			costs := make(stats.Sample, len(row.Mpps))
			for i, mpps := range row.Mpps {
				costs[i] = float64(row.Cores) * 1000 / mpps
			}
			return costs
		})},
	}}}
	if groups := r.barsOf(func(row Row) stats.Sample { return row.NewRuns }); len(groups) > 0 {
		s.Charts = append(s.Charts, report.Chart{Title: "New connections in a second", Note: "49,152 connections that the path does not know yet, opened as fast as it can.",
			Bars: &report.Bars{Label: "new connections per second", Unit: "/s", Better: report.Higher, Groups: groups}})
	}
	return s
}

// A dimension is a key of a case that may be an axis.
type dimension struct {
	title string
	axis  report.Axis
	value func(Case) int
	rest  func(Case) Case // the case without it
}

var dimensions = []dimension{
	{"What more connections cost", report.Axis{Label: "connections", Log: true},
		func(c Case) int { return c.Flows }, func(c Case) Case { c.Flows = 0; return c }},
	{"What larger frames cost", report.Axis{Label: "size of a frame", Unit: "bytes"},
		func(c Case) int { return c.Frame }, func(c Case) Case { c.Frame = 0; return c }},
	{"What more cores bring", report.Axis{Label: "cores"},
		func(c Case) int { return c.Cores }, func(c Case) Case { c.Cores = 0; return c }},
}

// curveSection draws rates against what was varied.
func (r *Report) curveSection() report.Section {
	s := report.Section{Title: "What it depends on"}
	for _, d := range dimensions {
		var seen []Case
		for _, c := range r.cases() {
			if rest := d.rest(c); !slices.Contains(seen, rest) {
				seen = append(seen, rest)
				if chart, points := r.curves(d, rest); points > 1 {
					s.Charts = append(s.Charts, chart)
				}
			}
		}
	}
	return s
}

// curves draws all cases that differ only in one dimension; points are how many
// they are.
func (r *Report) curves(d dimension, rest Case) (chart report.Chart, points int) {
	series := map[string]*report.Series{}
	for _, c := range r.cases() {
		if d.rest(c) != rest {
			continue
		}
		points++
		for _, row := range r.rowsOf(c) {
			line := series[row.Path]
			if line == nil {
				line = &report.Series{Name: row.Path, Ours: ours(row.Path)}
				series[row.Path] = line
			}
			line.Points = append(line.Points, report.Point{X: float64(d.value(c)), Runs: row.Mpps})
		}
	}
	curves := &report.Curves{X: d.axis, Y: report.Axis{Label: "rate", Unit: "Mpps"}}
	for _, name := range Paths {
		if line := series[name]; line != nil {
			slices.SortFunc(line.Points, func(a, b report.Point) int { return int(a.X - b.X) })
			curves.Series = append(curves.Series, *line)
		}
	}
	return report.Chart{Title: d.title, Note: r.fixed(rest), Curves: curves}, points
}

// fixed says what is the same in all cases of a chart; what is missing there is
// its axis.
func (r *Report) fixed(rest Case) string {
	var parts []string
	for _, part := range strings.Split(rest.String(), ", ") {
		if !strings.HasPrefix(part, "0 ") {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Report) tableSection() report.Section {
	s := report.Section{Title: "All figures"}
	for _, c := range r.cases() {
		t := report.Table{Title: c.String(), Columns: []report.Column{{Name: "path", Words: true}, {Name: "hook", Words: true},
			{Name: "median", Unit: "Mpps"}, {Name: "smallest"}, {Name: "largest"}, {Name: "per frame", Unit: "ns"},
			{Name: "net of generator", Unit: "ns"}, {Name: "new connections", Unit: "/s"}}}
		for i, row := range r.rowsOf(c) {
			if ours(row.Path) {
				t.Marked = append(t.Marked, i)
			}
			t.Rows = append(t.Rows, []string{row.Path, row.Hook, quantity.Digits(row.Mpps.Median(), 4), quantity.Digits(row.Mpps.Min(), 4),
				quantity.Digits(row.Mpps.Max(), 4), fmt.Sprintf("%.0f", row.NS), whole(row.NetNS), count(row.NewPerS)})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}
