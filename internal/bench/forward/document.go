package forward

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/bench/traffic"
	"weir/internal/stats"
	"weir/internal/units"
)

// mostGroups is the number of cases with bars in one chart. The tables have all cases.
const mostGroups = 6

// Document returns the report as a document.
func (r *Report) Document() *report.Document {
	d := &report.Document{
		Kind: "forward", Title: "How many frames a core forwards", Command: r.Command, Version: r.Version, Started: r.Started, Machine: r.Machine,
		Verdicts: r.verdicts(), Method: r.method(), Control: &r.Control, Sketch: r.Sketch(),
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
	d.Add(r.rateSection(), r.curveSection(), r.costSection())
	if p := r.Profile; p != nil {
		d.Sections = append(d.Sections, report.Section{Title: "Where the time goes", Charts: []report.Chart{{
			Title: "Time of the core while " + p.Path + " forwards", Flame: &report.Flame{Unit: "samples", Stacks: p.Stacks},
			Note: "In a run of its own that is in no other figure: " + p.Case.String() + ". A caller is below what it calls. weir's programs are blue; the generator's and the sink's belong to the benchmark.",
		}}})
	}
	d.Add(report.Section{Title: "Run by run", Charts: r.OverTime()}, r.tableSection())
	return d
}

// Sketch reports whether there are too few runs for a verdict.
func (r *Report) Sketch() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return len(row.Mpps) < report.LeastRuns })
}

func (r *Report) method() []string {
	runs := 0
	for _, row := range r.Rows {
		runs = max(runs, len(row.Mpps))
	}
	text := []string{
		"Three network namespaces of its own, joined by veth pairs. A program in the kernel writes every frame anew, with valid checksums; another one counts what arrives.",
		"Generator, path and sink share the same core, so a figure is what one core does with all three." + with(r.ran(paths.Generator), " The generator path shows the cost without a firewall."),
		fmt.Sprintf("Each path in each case %s, in random order; bars and lines are medians, whiskers reach from the smallest run to the largest.",
			times(runs)),
		turnsMethod(r.Turns),
		with(r.Against != "", "Paths whose names end in "+otherName+" run "+r.Against+"."),
		"Before anything is counted, one frame of every connection in each direction is compared with the expected one: addresses, ports, TTL, checksums. One wrong frame ends the benchmark.",
	}
	text = slices.DeleteFunc(text, func(s string) bool { return s == "" })
	weir, nft := r.ran(paths.Weir) || r.ran(paths.WeirNAT), r.ran(paths.Nft) || r.ran(paths.NftNAT)
	about := with(weir && nft, "weir and nftables enforce the same policy, which is attached.") +
		with(r.ran(paths.Kernel), " The kernel's path only forwards.") +
		with(r.ran(paths.Redirect), " Redirect is a bare XDP redirect: the limit of this machine.")
	if about = strings.TrimSpace(about); about != "" {
		text = append(text, about)
	}
	return text
}

// with returns a text if it applies.
func with(applies bool, text string) string {
	if applies {
		return text
	}
	return ""
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return units.Thousands(n) + " times"
}

// verdicts states the ratios of the first case, and the range of the others.
func (r *Report) verdicts() []string {
	cases := r.cases()
	if len(cases) == 0 {
		return nil
	}
	var all []string
	for _, v := range []struct {
		of, to, sentence string
		value            func(Ratio) *float64
		test             func(Ratio) *stats.Comparison
	}{
		{paths.WeirNAT, paths.NftNAT, "With NAT, weir forwards %s times as many frames as nftables", inFrames, ofFrames},
		{paths.Weir, paths.Nft, "Without NAT, weir forwards %s times as many frames as nftables", inFrames, ofFrames},
		{paths.WeirNAT, paths.Redirect, "With NAT, weir reaches %s of what a bare redirect does, the limit of this machine", inFrames, ofFrames},
		{paths.Weir, paths.Kernel, "weir filters %s times as many frames as the kernel forwards without any rules", inFrames, ofFrames},
		{paths.WeirQoS, paths.Weir, "With queues, weir forwards %s of what it does without", inFrames, ofFrames},
		{paths.WeirQoS, paths.KernelHTB, "With queues, weir forwards %s times as many frames as the kernel with HTB", inFrames, ofFrames},
		{paths.WeirNAT, paths.NftNAT, "It opens %s times as many new connections in a second as nftables with NAT",
			func(r Ratio) *float64 { return r.NewPerS }, func(r Ratio) *stats.Comparison { return r.NewTest }},
	} {
		if text := r.verdict(v.of, v.to, v.sentence, v.value, v.test); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func inFrames(r Ratio) *float64 { return &r.Mpps }

func ofFrames(r Ratio) *stats.Comparison { return r.Test }

// verdict states a ratio of the first case, doubts about it, and its range over all other
// cases.
func (r *Report) verdict(of, to, sentence string, value func(Ratio) *float64, test func(Ratio) *stats.Comparison) string {
	cases := r.cases()
	first, least, most, why := math.NaN(), math.Inf(1), 0.0, ""
	for _, ratio := range r.Ratios {
		v := value(ratio)
		if ratio.Of != of || ratio.To != to || v == nil {
			continue
		}
		least, most = min(least, *v), max(most, *v)
		if ratio.Case == cases[0] {
			first, why = *v, doubt(test(ratio))
		}
	}
	if math.IsNaN(first) {
		return ""
	}
	text := fmt.Sprintf(sentence, units.Digits(first, 2))
	if why != "" {
		text = strings.ToUpper(why[:1]) + why[1:] + ". " + text // what is not proven is no headline
	}
	if len(cases) == 1 {
		return text + "."
	}
	return text + fmt.Sprintf(" (%s); over all %s between %s and %s.", cases[0].Short(),
		units.Plural(len(cases), "case"), units.Digits(least, 2), units.Digits(most, 2))
}

// ours reports whether a path is weir's.
func ours(path string) bool { return strings.HasPrefix(path, paths.Weir) }

// barsOf draws one value of all paths, a group for each case.
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

// ran reports whether a path was measured.
func (r *Report) ran(path string) bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Path == path })
}

// about joins the sentences about the paths that were measured.
func (r *Report) about(sentences map[string]string) string {
	var said []string
	for _, path := range slices.Sorted(maps.Keys(sentences)) {
		if r.ran(path) {
			said = append(said, sentences[path])
		}
	}
	return strings.Join(said, " ")
}

func (r *Report) rateSection() report.Section {
	note := r.about(map[string]string{
		paths.Generator: "Generator: frames end at the firewall's door.", paths.Redirect: "Redirect: a bare XDP redirect, the limit of this machine.",
	})
	if n := len(r.cases()); n > mostGroups {
		note = strings.TrimSpace(note + fmt.Sprintf(" The first %d of %d cases; the tables have all.", mostGroups, n))
	}
	return report.Section{Title: "Frames per second", Charts: []report.Chart{{
		Title: "What each path forwards", Note: note,
		Bars: &report.Bars{Label: "million frames per second", Unit: "Mpps", Better: report.Higher,
			Groups: r.barsOf(func(row Row) stats.Sample { return row.Mpps })},
	}}}
}

func (r *Report) costSection() report.Section {
	note := "This includes the generator and the sink"
	if r.ran(paths.Generator) {
		note += ": the generator's bar shows their cost alone"
	}
	s := report.Section{Title: "What it costs", Charts: []report.Chart{{
		Title: "Time of one core for one frame",
		Note:  note + ".",
		Bars: &report.Bars{Label: "nanoseconds per frame", Unit: "ns", Better: report.Lower, Groups: r.barsOf(func(row Row) stats.Sample {
			return row.costs()
		})},
	}}}
	if groups := r.barsOf(func(row Row) stats.Sample { return row.NewRuns }); len(groups) > 0 {
		s.Charts = append(s.Charts, report.Chart{Title: "New connections in a second", Note: "49,152 connections that the path does not know yet, opened as fast as it can.",
			Bars: &report.Bars{Label: "new connections per second", Unit: "/s", Better: report.Higher, Groups: groups}})
	}
	return s
}

// costs returns the time of one core for a frame in each run, in nanoseconds.
func (row *Row) costs() stats.Sample {
	costs := make(stats.Sample, len(row.Mpps))
	for i, mpps := range row.Mpps {
		costs[i] = float64(row.Cores) * 1000 / mpps
	}
	return costs
}

// OverTime shows each run of the paths with the load of each core, one chart for each of
// the first cases. The runs of a path are side by side, though the paths took turns.
func (r *Report) OverTime() (charts []report.Chart) {
	cases := r.cases()
	for _, c := range cases[:min(len(cases), mostGroups)] {
		var parts []sample.Part
		for _, row := range r.rowsOf(c) {
			parts = append(parts, sample.Part{Name: row.Path, Ours: ours(row.Path), Record: sideBySide(row.record)})
		}
		if chart, ok := sample.Chart("Over time: "+c.String(), parts); ok {
			charts = append(charts, chart)
		}
	}
	return charts
}

// sideBySide returns a record without the gaps between its moments.
func sideBySide(r *sample.Record) *sample.Record {
	out := &sample.Record{Rates: []sample.Rate{{Panel: "frames", Unit: "Mpps", Name: "forwarded"}},
		About: "Each level is a run of steady traffic, with those that were repeated; the paths took turns."}
	end := time.Duration(0)
	for _, m := range r.Moments {
		end += m.Took
		m.At = end
		out.Moments = append(out.Moments, m)
	}
	return out
}

// A dimension is a key of a case that may be an axis.
type dimension struct {
	title   string
	opening string // title of its effect on new connections; "": not drawn
	axis    report.Axis
	key     func(*traffic.Case) *int
}

var dimensions = []dimension{
	{"What more connections cost", "What states that are there cost a new connection", report.Axis{Label: "connections", Log: true},
		func(c *traffic.Case) *int { return &c.Flows }},
	{"What larger frames cost", "", report.Axis{Label: "size of a frame", Unit: "bytes"}, func(c *traffic.Case) *int { return &c.Frame }},
	{"What more rules cost a known connection", "What more rules cost a new connection", report.Axis{Label: "further rules", Log: true},
		func(c *traffic.Case) *int { return &c.Rules }},
	{"What a larger table costs a known connection", "What a larger table costs a new connection", report.Axis{Label: "addresses in a table", Log: true},
		func(c *traffic.Case) *int { return &c.Tables }},
	{"What room for more states costs", "", report.Axis{Label: "set limit states", Log: true}, func(c *traffic.Case) *int { return &c.Limit }},
	{"What more cores bring", "", report.Axis{Label: "cores"}, func(c *traffic.Case) *int { return &c.Cores }},
}

func (d *dimension) value(c traffic.Case) int { return *d.key(&c) }

// rest returns a case without the key.
func (d *dimension) rest(c traffic.Case) traffic.Case {
	*d.key(&c) = 0
	return c
}

// curveSection draws rates against each varied key.
func (r *Report) curveSection() report.Section {
	s := report.Section{Title: "What it depends on"}
	for _, d := range dimensions {
		var seen []traffic.Case
		for _, c := range r.cases() {
			if rest := d.rest(c); !slices.Contains(seen, rest) {
				seen = append(seen, rest)
				s.Charts = append(s.Charts, r.curves(d, rest)...)
			}
		}
	}
	return s
}

// curves draws all cases that differ only in one dimension: forwarded frames, and how
// fast connections are opened. It draws nothing if there is only one case.
func (r *Report) curves(d dimension, rest traffic.Case) (charts []report.Chart) {
	cases := slices.DeleteFunc(r.cases(), func(c traffic.Case) bool { return d.rest(c) != rest })
	if len(cases) < 2 {
		return nil
	}
	slices.SortFunc(cases, func(a, b traffic.Case) int { return d.value(a) - d.value(b) })
	draw := func(title string, y report.Axis, runs func(Row) stats.Sample) {
		series := r.series(cases, d.value, runs)
		if title != "" && len(series) > 0 {
			charts = append(charts, report.Chart{Title: title, Note: r.fixed(rest), Curves: &report.Curves{X: d.axis, Y: y, Series: series}})
		}
	}
	draw(d.title, report.Axis{Label: "rate", Unit: "Mpps"}, func(row Row) stats.Sample { return row.Mpps })
	draw(d.opening, report.Axis{Label: "new connections", Unit: "/s"}, func(row Row) stats.Sample { return row.NewRuns })
	return charts
}

// series returns the lines of all paths that have such runs.
func (r *Report) series(cases []traffic.Case, x func(traffic.Case) int, runs func(Row) stats.Sample) (all []report.Series) {
	for _, name := range paths.Known {
		line := report.Series{Name: name, Ours: ours(name)}
		for _, c := range cases {
			for _, row := range r.rowsOf(c) {
				if found := runs(row); row.Path == name && len(found) > 0 {
					line.Points = append(line.Points, report.Point{X: float64(x(c)), Runs: found})
				}
			}
		}
		if len(line.Points) > 0 {
			all = append(all, line)
		}
	}
	return all
}

// fixed describes what is the same in all cases of a chart. The chart's axis is left out.
func (r *Report) fixed(rest traffic.Case) string {
	parts := strings.Split(rest.String(), ", ")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return strings.HasPrefix(part, "0 ") }), ", ")
}

// figure writes a figure as charts do, or a dash if it was not measured.
func figure(v *float64) string {
	if v == nil {
		return "–"
	}
	return report.Figure(*v)
}

func (r *Report) tableSection() report.Section {
	s := report.Section{Title: "All figures"}
	for _, c := range r.cases() {
		t := report.Table{Title: c.String(), Columns: []report.Column{{Name: "path", Words: true}, {Name: "hook", Words: true},
			{Name: "median", Unit: "Mpps"}, {Name: "smallest"}, {Name: "largest"}, {Name: "per frame", Unit: "ns"},
			{Name: "net of generator", Unit: "ns"}, {Name: "new connections", Unit: "/s"}}}
		for _, row := range r.rowsOf(c) {
			t.Add(ours(row.Path), row.Path, row.Hook, report.Figure(row.Mpps.Median()), report.Figure(row.Mpps.Min()),
				report.Figure(row.Mpps.Max()), report.Figure(row.costs().Median()), figure(row.NetNS), figure(row.NewPerS))
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}
