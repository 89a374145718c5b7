package remote

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// document makes the report.
func (m *measured) document() *report.Document {
	d := &report.Document{
		Kind: "client", Version: strings.TrimPrefix(m.options.Program, "weir "), Title: "Between " + m.own.Name + " and " + m.otherName(), Command: m.options.Command,
		Started: m.started, Machine: m.machine, Sketch: m.options.Runs < report.LeastRuns, Method: m.method(), Control: m.control(), Verdicts: m.verdicts(), Notes: m.notes(),
	}
	m.addMeasurements(d)
	d.Add(m.throughput(), m.latency())
	d.Add(m.times()...)
	d.Add(m.dropped())
	if m.noProbe != "" {
		d.Skipped = append(d.Skipped, report.Skip{What: "round-trip times", Reason: m.noProbe})
	}
	if m.without != "" && m.options.RouterName != "" {
		d.Skipped = append(d.Skipped, report.Skip{What: "what weir drops in " + m.options.RouterName, Reason: m.without})
	}
	return d
}

// control compares the case that was measured twice with itself.
func (m *measured) control() *stats.Control {
	control := stats.NewControl()
	if len(m.entries) > 1 && m.entries[1].control {
		first, again := m.entries[0], m.entries[1]
		for _, up := range ways {
			if a := first.of(up, (*direction).rate); len(a) > 0 {
				control.Add(first.String(), a, again.of(up, (*direction).rate))
			}
		}
	}
	if control.Path == "" {
		control.Refuse("no case was measured twice")
	}
	return &control
}

func (m *measured) otherName() string {
	if m.welcome == nil {
		return m.options.Host
	}
	return m.welcome.Machine.Name
}

func (m *measured) method() []string {
	o := m.options
	text := []string{
		fmt.Sprintf("Data went between this machine and %s; up is from here to there. iperf3 %s counted what arrived in %s, after a second in which TCP finds its rate.",
			m.server, m.tool.Version, o.count()),
		fmt.Sprintf("All cases took turns in random order, %s each; the first was measured twice as if it were two (A/A).", units.Plural(o.Runs, "time")),
		"Rates of TCP are of payload. Rates of UDP are of whole Ethernet frames, with their checksum and without the gap between them. iperf3 sends in bursts of a millisecond.",
	}
	if m.welcome != nil {
		text = append(text, fmt.Sprintf("The other machine: %s, %s, Linux %s, %s.", m.welcome.Machine.CPU,
			units.Plural(m.welcome.Machine.Cores, "core"), m.welcome.Machine.Kernel, m.welcome.Program))
	} else {
		text = append(text, "The other side is a stock iperf3 server.")
	}
	if m.noProbe == "" {
		text = append(text, fmt.Sprintf("Round-trip times are those of ICMP echo, one every %s, before each run (idle) and while it lasted.", probeEvery))
	}
	return text
}

// directionNames are the names of directions in measurements and tables.
var directionNames = map[bool]string{true: Up, false: Down}

// name returns the name of a case's measurement. It already contains the direction,
// unless both were measured at once.
func (f *findings) name(up bool, what string) string {
	if f.Direction == Both {
		what = directionNames[up] + "." + what
	}
	return f.key() + "." + what
}

// ways are the two directions: up, and down.
var ways = []bool{true, false}

// figures are what is measured of one direction.
var figures = []struct {
	name, unit, better string
	protocol           string // "": both
	of                 func(*direction) float64
}{
	{"throughput", "Mbit/s", report.Higher, "", func(d *direction) float64 { return d.Rate / 1e6 }},
	{"loss", "%", report.Lower, UDP, (*direction).loss},
	{"jitter", "µs", report.Lower, UDP, (*direction).jitter},
}

// addMeasurements adds all measurements to the report.
func (m *measured) addMeasurements(d *report.Document) {
	for _, f := range m.cases() {
		for _, up := range ways {
			for _, g := range figures {
				if g.protocol == "" || g.protocol == f.Protocol {
					d.Measure(g.better, g.unit, f.of(up, g.of), f.name(up, g.name))
				}
			}
		}
		d.Measure(report.Lower, "ms", f.quantiles(0.5), f.key()+".rtt.p50")
		d.Measure(report.Lower, "ms", f.quantiles(0.99), f.key()+".rtt.p99")
	}
	d.Measure(report.Lower, "ms", m.idleQuantiles(0.5), "idle.rtt.p50")
	d.Measure(report.Lower, "ms", m.idleQuantiles(0.99), "idle.rtt.p99")
}

// cases returns everything measured except the control.
func (m *measured) cases() []*findings {
	return slices.DeleteFunc(slices.Clone(m.entries), func(f *findings) bool { return f.control })
}

// throughput returns the section of rates.
func (m *measured) throughput() report.Section {
	s := report.Section{Title: "Throughput"}
	bars := &report.Bars{Label: "million bits per second", Unit: "Mbit/s", Better: report.Higher}
	t := report.Table{Columns: []report.Column{
		{Name: "case", Words: true}, {Name: "way", Words: true}, {Name: "median", Unit: "Mbit/s"}, {Name: "least", Unit: "Mbit/s"},
		{Name: "most", Unit: "Mbit/s"}, {Name: "lost", Unit: "%"}, {Name: "jitter", Unit: "µs"}, {Name: "sent again", Unit: "segments"},
		{Name: "core here", Unit: "s/Gbit"}, {Name: "core there", Unit: "s/Gbit"},
	}}
	limits := report.Table{Columns: []report.Column{{Name: "case", Words: true}, {Name: "limited by", Words: true}}}
	for _, f := range m.entries {
		name := f.String()
		if f.control {
			name += " (control)"
		}
		var group report.BarGroup
		for _, up := range ways {
			rates := f.of(up, figures[0].of)
			if len(rates) == 0 {
				continue
			}
			way := ""
			if f.Direction == Both {
				way = ", " + directionNames[up]
			}
			group.Bars = append(group.Bars, report.Bar{Name: name + way, Runs: rates, Ours: !f.control})
			t.Rows = append(t.Rows, append([]string{name, directionNames[up]}, m.cells(f, up, rates)...))
		}
		limits.Rows = append(limits.Rows, []string{name, cmp.Or(strings.Join(f.limits(m.request(f)), "; "), "the path")})
		bars.Groups = append(bars.Groups, group)
	}
	s.Charts, s.Tables = []report.Chart{{Title: "What arrived", Bars: bars}}, []report.Table{withoutEmpty(t), limits}
	return s
}

// withoutEmpty leaves out the columns in which no row has a figure, so that the table
// fits.
func withoutEmpty(t report.Table) report.Table {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if slices.ContainsFunc(t.Rows, func(row []string) bool { return row[i] != "–" }) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		for j := range t.Rows {
			t.Rows[j] = slices.Delete(t.Rows[j], i, i+1)
		}
	}
	return t
}

// cells returns the figures of a row.
func (m *measured) cells(f *findings, up bool, rates stats.Sample) []string {
	row := []string{units.Digits(rates.Median(), 3), units.Digits(rates.Min(), 3), units.Digits(rates.Max(), 3)}
	if f.Protocol == UDP {
		row = append(row, report.Figure(f.of(up, (*direction).loss).Median()), units.Digits(f.of(up, (*direction).jitter).Median(), 3), "–")
	} else {
		row = append(row, "–", "–", units.Thousands(int(f.of(up, (*direction).again).Median())))
	}
	return append(row, f.cost(func(r *result) float64 { return r.process }), f.cost(func(r *result) float64 { return r.remote }))
}

// cost returns the core time of an end's process for each gigabit of a run, both
// directions together. It returns a dash if that is unknown.
func (f *findings) cost(seconds func(*result) float64) string {
	var s stats.Sample
	for _, r := range f.results {
		bytes := 0.0
		for _, d := range r.directions() {
			bytes += d.Received
		}
		if took := seconds(r); took > 0 && bytes > 0 {
			s = append(s, took/(bytes*8/1e9))
		}
	}
	return units.Digits(s.Median(), 3)
}

func (m *measured) request(f *findings) Run {
	return f.Case.request(m.server.Addr(), m.options.count())
}

// latency returns the section of round-trip times, empty if there are none.
func (m *measured) latency() (s report.Section) {
	if len(m.idle) == 0 {
		return s
	}
	const points = 200
	cdf := &report.CDF{X: report.Axis{Label: "round-trip time", Unit: "ms", Log: true}}
	t := report.Table{Columns: []report.Column{{Name: "while", Words: true}, {Name: "probes"}, {Name: "without echo"}}}
	add := func(name string, ours bool, rtts stats.Sample, lost int) {
		if len(rtts) == 0 {
			return
		}
		cdf.Series = append(cdf.Series, report.Distribution{Name: name, Ours: ours, Points: rtts.CDF(points)})
		t.Rows = append(t.Rows, []string{name, units.Thousands(len(rtts) + lost), units.Thousands(lost)})
	}
	add("idle", false, m.idle, m.lost)
	for i, f := range m.cases() {
		rtts, lost := f.allRTTs()
		add(f.String(), i == 0, rtts, lost) // only one is drawn as ours, so that all differ
	}
	return report.Section{Title: "Round-trip times, idle and loaded",
		Charts: []report.Chart{{Title: "How long a probe takes, there and back", CDF: cdf}}, Tables: []report.Table{t}}
}

func (f *findings) allRTTs() (all stats.Sample, lost int) {
	for _, r := range f.results {
		all = append(all, r.rtts...)
		lost += r.lost
	}
	return all, lost
}

// notes returns the caveats.
func (m *measured) notes() []string {
	var notes []string
	note := func(text string) {
		if !slices.Contains(notes, text) {
			notes = append(notes, text)
		}
	}
	for _, f := range m.entries {
		for _, r := range f.results {
			for _, cut := range r.cut {
				note(fmt.Sprintf("%s: the server has cut %s.", f.Case, cut))
			}
			if f.Protocol == UDP && r.overflow > 0 {
				note(fmt.Sprintf("%s: some datagrams found a full socket at one of the ends; the path had carried them.", f.Case))
			}
			for _, d := range r.directions() {
				if d.Reordered > 0 {
					note(fmt.Sprintf("%s: some datagrams came out of order.", f.Case))
				}
			}
		}
	}
	if m.local {
		note("Both ends are on one machine, so the figures describe its processors.")
	}
	return notes
}
