package rfc

import (
	"fmt"
	"maps"
	"slices"

	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/bench/web"
	"weir/internal/stats"
	"weir/internal/units"
)

// method describes what all standards share, and what tests with frames add.
func method(o *Options, s *Standard) []string {
	lines := []string{
		fmt.Sprintf("All paths in turn, in random order, %s of each; the last path is measured once more as if it were another (control): a test in which it differs from itself by more than 5 %% has no verdict.",
			units.Plural(o.Runs, "run")),
		"Offloads are off, so that what crosses is what a wire would carry.",
		"Clients, servers and firewall share the cores in tests with HTTP; the kernel's paths receive by GRO there.",
	}
	if s.Frames {
		lines = append(lines,
			"In tests with frames the firewall receives on a core of its own, in kernel threads; the generator sends from another at its own pace, and a path that is too slow loses frames. The far end's counting runs on the firewall's core. The kernel's paths receive by GRO or by an XDP program that passes, whichever is faster.",
			"The generator waits for the time of each burst: as many frames as fit 20 µs, 64 at most, one by one below 50,000 per second; a burst over 20 µs late is not made up for. Stamped frames go one by one up to a million per second.")
	}
	if o.Full {
		return append(lines, "Durations are those of the RFC.")
	}
	return append(lines, fmt.Sprintf("Shortened: frames are offered for %v s instead of 60 s, clients sustain their load for %v s instead of 300 s; --full has the RFCs' durations.",
		o.Trial.Seconds(), o.Sustain.Seconds()))
}

// describe fills the report.
func (r *runner) describe(d *report.Document, s *Standard) {
	d.Method = append(method(r.o, s), s.Differs...)
	if r.cost.Readings > 0 {
		d.Method = append(d.Method, fmt.Sprintf("Charts over time: the cores are looked at before and after each trial with frames, and each %v s while clients are at work; %s.",
			sample.Interval.Seconds(), r.cost))
	}
	for _, t := range r.done {
		d.Sections = append(d.Sections, t.section())
		d.Notes = append(d.Notes, t.notes()...)
	}
	r.conclude(d, s.Name)
	if r.foreign > disturbance {
		d.Notes = append(d.Notes, fmt.Sprintf("other programs took up to %.0f %% of a run's time from the cores of generator and firewall: "+
			"what was lost then is counted as the path's loss", r.foreign*100))
	}
	if s.Name == "web" {
		d.Notes = append(d.Notes, "the server is "+web.NginxVersion())
	}
}

func (t *tested) last() *outcome { return t.paths[len(t.paths)-1] }

// section shows one variant of a test.
func (t *tested) section() report.Section {
	s := report.Section{Title: t.test.title(t.variant), Text: []string{t.test.About + " (" + t.test.Where + ")"}}
	if c, known := t.control(); known && !c.OK {
		s.Text = append(s.Text, "No verdict: "+c.Why+".")
	}
	for _, draw := range []func() (report.Chart, bool){t.bars, t.curves, t.distribution, t.overTime} {
		if chart, ok := draw(); ok {
			s.Charts = append(s.Charts, chart)
		}
	}
	if table, ok := t.table(); ok {
		s.Tables = append(s.Tables, table)
	}
	return s
}

// measured returns the paths with at least one valid run.
func (t *tested) measured() []*outcome {
	return slices.DeleteFunc(slices.Clone(t.paths), func(o *outcome) bool { return len(o.runs) == 0 })
}

func (t *tested) bars() (report.Chart, bool) {
	measured := t.measured()
	if len(measured) == 0 {
		return report.Chart{}, false
	}
	first := measured[0].runs[0].figures[0]
	group := report.BarGroup{}
	for _, o := range measured {
		group.Bars = append(group.Bars, report.Bar{Name: o.path, Runs: o.sample(0), Ours: isWeir(o.path)})
	}
	return report.Chart{Title: t.test.title(t.variant) + ": " + first.name, Bars: &report.Bars{
		Label: first.name, Unit: first.unit, Better: first.better, Groups: []report.BarGroup{group}}}, true
}

// curves shows the loss at each rate.
func (t *tested) curves() (report.Chart, bool) {
	curves := &report.Curves{X: report.Axis{Label: "offered", Unit: "% of what the generator can send"}, Y: report.Axis{Label: "lost", Unit: "%"}}
	for _, o := range t.measured() {
		at := map[float64]stats.Sample{}
		for _, f := range o.runs {
			for _, p := range f.curve {
				at[p.x] = append(at[p.x], p.y)
			}
		}
		series := report.Series{Name: o.path, Ours: isWeir(o.path)}
		for _, x := range slices.Sorted(maps.Keys(at)) {
			series.Points = append(series.Points, report.Point{X: x, Runs: at[x]})
		}
		if len(at) > 0 {
			curves.Series = append(curves.Series, series)
		}
	}
	return report.Chart{Title: t.test.title(t.variant) + ": what is lost", Curves: curves}, len(curves.Series) > 0
}

// overTime shows the paths one after the other, with the load of each core.
func (t *tested) overTime() (report.Chart, bool) {
	var parts []sample.Part
	for _, o := range t.paths {
		parts = append(parts, sample.Part{Name: o.path, Ours: isWeir(o.path), Record: o.record})
	}
	return sample.Chart(t.test.title(t.variant)+": over time", parts)
}

// points is the number of points in a distribution's curve.
const points = 200

func (t *tested) distribution() (report.Chart, bool) {
	cdf := &report.CDF{X: report.Axis{Label: "time", Unit: "ms", Log: true}}
	for _, o := range t.measured() {
		d := report.Distribution{Name: o.path, Ours: isWeir(o.path), Points: joined(o.runs).CDF(points)}
		if spread := o.runs[len(o.runs)/2].spread; spread != nil {
			cdf.X.Unit, d.Points = "µs", spread
		}
		d.Points = slices.DeleteFunc(d.Points, func(p stats.Point) bool { return p.Value <= 0 })
		if len(d.Points) > 0 {
			cdf.Series = append(cdf.Series, d)
		}
	}
	if t.test.Name == "objects" {
		cdf.Marks = []report.Mark{{At: 100, Name: "100 ms"}}
	}
	return report.Chart{Title: t.test.title(t.variant) + ": the whole curve", CDF: cdf}, len(cdf.Series) > 0
}

func (t *tested) table() (report.Table, bool) {
	measured := t.measured()
	if len(measured) == 0 {
		return report.Table{}, false
	}
	table := report.Table{Columns: []report.Column{{Name: "path", Words: true}}}
	for _, f := range measured[0].runs[0].figures {
		table.Columns = append(table.Columns, report.Column{Name: f.name, Unit: f.unit})
	}
	table.Columns = append(table.Columns, report.Column{Name: "limit", Words: true})
	for _, o := range t.paths {
		table.Add(isWeir(o.path), o.row(len(measured[0].runs[0].figures))...)
	}
	return table, true
}

// row returns the medians of a path with the smallest and the largest value.
func (o *outcome) row(figures int) []string {
	row, limit := []string{o.path}, o.limit()
	for i := range figures {
		row = append(row, report.WithSpread(o.sample(i)))
	}
	if len(o.runs) == 0 {
		limit = "invalid"
	}
	return append(row, limit)
}

// measurements returns all figures of all paths.
func (t *tested) measurements(standard string) (all []report.Measurement) {
	for _, o := range t.measured() {
		for i, f := range o.runs[0].figures {
			all = append(all, report.Measurement{Name: t.test.key(standard, t.variant, o.path, f.name), Unit: f.unit, Better: f.better,
				Runs: o.sample(i), Resolution: o.resolution(i), AtLeast: o.atLeast(i)})
		}
	}
	return all
}
