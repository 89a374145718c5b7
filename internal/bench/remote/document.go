package remote

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// document makes the report.
func (m *measured) document() *report.Document {
	d := &report.Document{
		Kind: "client", Version: strings.TrimPrefix(m.options.Program, "weir "), Title: "Between " + m.own.Name + " and " + m.otherName(), Command: m.options.Command,
		Started: m.started, Machine: m.machine, Sketch: m.options.Runs < leastRuns, Method: m.method(), Measurements: m.measurements(),
	}
	d.Control = m.control()
	d.Verdicts = m.verdicts()
	d.Sections = append(d.Sections, m.throughput())
	if s := m.latency(); s != nil {
		d.Sections = append(d.Sections, *s)
	}
	d.Sections = append(d.Sections, m.times()...)
	if s := m.dropped(); s != nil {
		d.Sections = append(d.Sections, *s)
	}
	if m.noProbe != "" {
		d.Skipped = append(d.Skipped, report.Skip{What: "round-trip times", Reason: m.noProbe})
	}
	if m.without != "" && m.options.RouterName != "" {
		d.Skipped = append(d.Skipped, report.Skip{What: "what weir drops in " + m.options.RouterName, Reason: m.without})
	}
	d.Notes = m.notes()
	return d
}

// leastRuns is the number of runs below which a report calls itself a sketch.
const leastRuns = 5

// control compares the case that was measured twice with itself.
func (m *measured) control() *stats.Control {
	control := stats.NewControl()
	for _, again := range m.entries {
		for _, first := range m.entries {
			if !again.control || first.control || first.Case != again.Case {
				continue
			}
			for _, up := range []bool{true, false} {
				if a := first.rates(up); len(a) > 0 {
					control.Add(first.String(), a, again.rates(up))
				}
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

func (m *measured) measurements() []report.Measurement {
	var all []report.Measurement
	add := func(name, unit, better string, runs stats.Sample) {
		if len(runs) > 0 {
			all = append(all, report.Measurement{Name: name, Unit: unit, Better: better, Runs: runs})
		}
	}
	for _, f := range m.cases() {
		for _, up := range []bool{true, false} {
			add(f.name(up, "throughput"), "Mbit/s", report.Higher, scaled(f.rates(up), 1e-6))
			if f.Protocol == UDP {
				add(f.name(up, "loss"), "%", report.Lower, f.of(up, func(d *direction) float64 { return 100 * d.loss() }))
				add(f.name(up, "jitter"), "µs", report.Lower, f.of(up, func(d *direction) float64 {
					return float64(d.Jitter.Nanoseconds()) / 1e3
				}))
			}
		}
		add(f.key()+".rtt.p50", "ms", report.Lower, f.quantiles(0.5))
		add(f.key()+".rtt.p99", "ms", report.Lower, f.quantiles(0.99))
	}
	for _, q := range []float64{0.5, 0.99} {
		add(fmt.Sprintf("idle.rtt.p%.0f", q*100), "ms", report.Lower, m.idleQuantiles(q))
	}
	return all
}

// cases returns everything measured except the control.
func (m *measured) cases() []*findings {
	var all []*findings
	for _, f := range m.entries {
		if !f.control {
			all = append(all, f)
		}
	}
	return all
}

func scaled(s stats.Sample, by float64) stats.Sample {
	t := make(stats.Sample, len(s))
	for i, v := range s {
		t[i] = v * by
	}
	return t
}

// throughput returns the section of rates.
func (m *measured) throughput() report.Section {
	s := report.Section{Title: "Throughput"}
	bars := &report.Bars{Label: "million bits per second", Unit: "Mbit/s", Better: report.Higher}
	t := report.Table{Columns: []report.Column{
		{Name: "case", Words: true}, {Name: "way", Words: true}, {Name: "median", Unit: "Mbit/s"}, {Name: "least", Unit: "Mbit/s"},
		{Name: "most", Unit: "Mbit/s"}, {Name: "lost", Unit: "%"}, {Name: "jitter", Unit: "µs"}, {Name: "sent again", Unit: "segments"},
		{Name: "core time here", Unit: "s/Gbit"}, {Name: "and there", Unit: "s/Gbit"}, {Name: "limited by", Words: true},
	}}
	for _, f := range m.entries {
		name := f.String()
		if f.control {
			name += " (control)"
		}
		var group report.BarGroup
		for _, up := range []bool{true, false} {
			rates := scaled(f.rates(up), 1e-6)
			if len(rates) == 0 {
				continue
			}
			group.Bars = append(group.Bars, report.Bar{Name: name + barWay(f.Case, up), Runs: rates, Ours: !f.control})
			t.Rows = append(t.Rows, append([]string{name, directionNames[up]}, m.cells(f, up, rates)...))
		}
		bars.Groups = append(bars.Groups, group)
	}
	s.Charts, s.Tables = []report.Chart{{Title: "What arrived", Bars: bars}}, []report.Table{t}
	return s
}

func barWay(c Case, up bool) string {
	if c.Direction == Both {
		return ", " + directionNames[up]
	}
	return ""
}

// cells returns the figures of a row.
func (m *measured) cells(f *findings, up bool, rates stats.Sample) []string {
	row := []string{units.Digits(rates.Median(), 4), units.Digits(rates.Min(), 4), units.Digits(rates.Max(), 4)}
	if f.Protocol == UDP {
		loss := f.of(up, func(d *direction) float64 { return 100 * d.loss() })
		jitter := f.of(up, func(d *direction) float64 { return float64(d.Jitter.Nanoseconds()) / 1e3 })
		row = append(row, strconv.FormatFloat(loss.Median(), 'f', 3, 64), units.Digits(jitter.Median(), 3), "–")
	} else {
		again := f.of(up, func(d *direction) float64 { return float64(d.Retransmits) })
		row = append(row, "–", "–", units.Thousands(int(again.Median())))
	}
	row = append(row, f.cost(func(r *result) float64 { return r.process }), f.cost(func(r *result) float64 { return r.remote }))
	limits := strings.Join(f.limits(m.request(f)), "; ")
	if limits == "" {
		limits = "the path"
	}
	return append(row, limits)
}

// cost returns the core time of an end's process for each gigabit of a run, both
// directions together. It returns a dash if that is unknown.
func (f *findings) cost(seconds func(*result) float64) string {
	var s stats.Sample
	for _, r := range f.results {
		bytes := 0.0
		for _, d := range []*direction{r.up, r.down} {
			if d != nil {
				bytes += float64(d.Bytes)
			}
		}
		if took := seconds(r); took > 0 && bytes > 0 {
			s = append(s, took/(bytes*8/1e9))
		}
	}
	if len(s) == 0 {
		return "–"
	}
	return units.Digits(s.Median(), 3)
}

func (m *measured) request(f *findings) Run {
	return f.Case.request(m.server.Addr(), m.options.count())
}

// latency returns the section of round-trip times, or nil if there are none.
func (m *measured) latency() *report.Section {
	if len(m.idle) == 0 {
		return nil
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
	for _, f := range m.cases() {
		rtts, lost := f.allRTTs()
		add(f.String(), true, rtts, lost)
	}
	return &report.Section{Title: "Round-trip times, idle and loaded",
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
	seen := map[string]bool{}
	note := func(text string) {
		if !seen[text] {
			seen[text] = true
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
			for _, d := range []*direction{r.up, r.down} {
				if d != nil && d.Reordered > 0 {
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
