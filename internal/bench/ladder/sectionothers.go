package ladder

import (
	"fmt"
	"slices"

	"weir/internal/bench/cpu"
	"weir/internal/bench/probe"
	"weir/internal/bench/report"
	"weir/internal/lab"
	"weir/internal/stats"
	"weir/internal/units"
)

func ascending(numbers []int) []int { return slices.Compact(slices.Sorted(slices.Values(numbers))) }

// addPairs adds the rates of two pairs and the verdict.
func (l *ladder) addPairs(d *report.Document) {
	s := report.Section{Title: "Two pairs at the same time", Text: []string{
		"If two pairs together carry as much as one alone, and the hosts carry more without the firewall, the firewall is the limit."}}
	for _, o := range l.options.modes() {
		t := report.Table{Title: "Offloads " + o.String(), Columns: []report.Column{{Name: "rung", Words: true}, {Name: "one pair", Unit: "Gbit/s"},
			{Name: "first of two", Unit: "Gbit/s"}, {Name: "second of two", Unit: "Gbit/s"}, {Name: "together", Unit: "Gbit/s"}, {Name: "verdict", Words: true, Concludes: true}}}
		bars := report.Bars{Label: "goodput", Unit: "Gbit/s", Better: report.Higher}
		direct := l.figures.pairs[spot{rungOf("direct"), o}]
		for _, at := range spots(l, l.figures.pairs, o) {
			f := l.figures.pairs[at]
			verdict := "–"
			if at.rung.route != overWire {
				verdict = f.verdict(direct)
			}
			if l.top(at.rung) {
				d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s, offloads %s, %s Gbit/s by one pair, %s + %s by two: %s.", at.rung.name, o,
					figure(f.alone.Median()), figure(f.first.Median()), figure(f.second.Median()), verdict))
			}
			t.Add(ours(at.rung), at.rung.name, report.WithSpread(f.alone), figure(f.first.Median()), figure(f.second.Median()), report.WithSpread(f.sum()), verdict)
			bars.Groups = append(bars.Groups, f.bars(at.rung))
			d.Measure(report.Higher, "Gbit/s", f.sum(), "pairs", mode(o), at.rung.slug(), "together")
		}
		l.show(&s, t, &bars, o, "One pair alone and two at the same time", PartPairs, "two pairs")
	}
	d.Add(s)
}

// show adds the table and the bars of a part, and what its last runs looked like over
// time. A table without rows shows nothing.
func (l *ladder) show(s *report.Section, t report.Table, bars *report.Bars, o lab.Offloads, title string, partsAndNames ...string) {
	if len(t.Rows) == 0 {
		return
	}
	s.Tables = append(s.Tables, t)
	s.Charts = append(s.Charts, report.Chart{Title: title + ", offloads " + o.String(), Bars: bars})
	for i := 0; i < len(partsAndNames); i += 2 {
		l.watched(s, partsAndNames[i], o, 0, partsAndNames[i+1])
	}
}

// bars shows the rate of one pair alone, of each of two, and of both together.
func (f *pairFigures) bars(r *rung) report.BarGroup {
	g := report.BarGroup{Name: r.name}
	for _, b := range []struct {
		name string
		runs stats.Sample
	}{{"one pair", f.alone}, {"first of two", f.first}, {"second of two", f.second}, {"two together", f.sum()}} {
		g.Bars = append(g.Bars, report.Bar{Name: b.name, Runs: b.runs, Ours: ours(r)})
	}
	return g
}

// top reports whether a rung is the last one of its firewall. Verdicts for the whole
// ladder would repeat its table.
func (l *ladder) top(r *rung) bool {
	last := r
	for _, other := range l.options.chosen() {
		if other.firewall == r.firewall {
			last = other
		}
	}
	return last == r && r.route != overWire && r.route != overLoopback
}

// addCPU adds the CPU time of a gigabit.
func (l *ladder) addCPU(d *report.Document) {
	s := report.Section{Title: "CPU time per gigabit", Text: []string{
		fmt.Sprintf("Time of the hosts' programs and of interrupts on all cores while one connection carries %s Gbit/s: what a rung takes beyond the direct wire is its own.", units.Digits(l.options.Rate/1e9, 3))}}
	for _, o := range l.options.modes() {
		t := report.Table{Title: "Offloads " + o.String(), Columns: []report.Column{{Name: "rung", Words: true}, {Name: "CPU time per gigabit", Unit: "s"},
			{Name: "beyond the direct wire", Unit: "s"}, {Name: "difference", Words: true, Concludes: true}}}
		bars := report.Bars{Label: "CPU time per gigabit", Unit: "s", Better: report.Lower, Groups: []report.BarGroup{{}}}
		direct := l.figures.cpu[spot{rungOf("direct"), o}]
		for _, at := range spots(l, l.figures.cpu, o) {
			used := l.figures.cpu[at]
			extra, difference := "–", "–"
			if at.rung.route != overWire && len(direct) > 0 {
				extra, difference = figure(used.Median()-direct.Median()), percent(stats.Compare(direct, used))
			}
			t.Add(ours(at.rung), at.rung.name, report.WithSpread(used), extra, difference)
			bars.Groups[0].Bars = append(bars.Groups[0].Bars, report.Bar{Name: at.rung.name, Runs: used, Ours: ours(at.rung)})
			d.Measure(report.Lower, "s/Gbit", used, "cpu", mode(o), at.rung.slug())
		}
		for _, at := range spots(l, l.figures.short, o) {
			d.Notes = append(d.Notes, fmt.Sprintf("%s, offloads %s: runs that did not reach the fixed rate, but %s Gbit/s at most, are left out of the CPU time.", at.rung.name, o, figure(l.figures.short[at])))
		}
		for _, at := range spots(l, l.figures.drowned, o) {
			d.Notes = append(d.Notes, fmt.Sprintf("%s, offloads %s: %s left out of the CPU time: other work made interrupts take over %.0f %% of a core without traffic, or more than with it.", at.rung.name, o, units.Plural(l.figures.drowned[at], "run"), cpu.MostQuiet*100))
		}
		l.show(&s, t, &bars, o, "CPU time of a gigabit", PartCPU, "the fixed rate")
		judge(d, fmt.Sprintf("CPU time with NAT and offloads %s, hosts included", o), o, "s per gigabit",
			func(at spot) stats.Sample { return l.figures.cpu[at] })
	}
	d.Add(s)
}

// judge compares weir with nft where both translate, if both were measured.
func judge(d *report.Document, what string, o lab.Offloads, unit string, runs func(spot) stats.Sample) {
	a, b := runs(spot{rungOf("nat, nft"), o}), runs(spot{rungOf("nat, weir"), o})
	if len(a) > 0 && len(b) > 0 {
		d.Verdicts = append(d.Verdicts, what+": "+versus("nft", "weir", a, b, "takes", unit))
	}
}

// delaySeries is a series of delays in the report.
type delaySeries struct {
	title, slug string
	of          map[spot][]*probe.Delays
}

// addLatency adds round trips and one-way delays.
func (l *ladder) addLatency(d *report.Document) {
	all := []delaySeries{
		{"round trip, idle", "rtt-idle", l.figures.idle}, {"round trip, loaded", "rtt-loaded", l.figures.loaded}, {"UDP one way, loaded", "udp-loaded", l.figures.oneWay},
	}
	for _, o := range l.options.modes() {
		s := report.Section{Title: "Delay, offloads " + o.String()}
		var curves []report.Chart // shown side by side, after the bars
		for _, series := range all {
			if curve, ok := l.addDelays(d, &s, series, o); ok {
				curves = append(curves, curve)
			}
		}
		s.Charts = append(s.Charts, curves...)
		l.watched(&s, PartLatency, o, 0, "the full line")
		d.Add(s)
		for _, at := range spots(l, l.figures.cut, o) {
			d.Notes = append(d.Notes, fmt.Sprintf("%s, offloads %s: %s left out of the loaded delays: the machine was too busy to send half of the packets while there was load.", at.rung.name, o, units.Plural(l.figures.cut[at], "run")))
		}
		judge(d, fmt.Sprintf("Round trips with NAT, offloads %s, under load, 99 of 100 within", o), o, "ms",
			func(at spot) stats.Sample { return quantiles(l.figures.loaded[at], 0.99) })
	}
}

// distributionPoints is enough for a smooth curve with its tail.
const distributionPoints = 400

// addDelays adds the table and the bars of a series, and returns its curves.
func (l *ladder) addDelays(d *report.Document, s *report.Section, series delaySeries, o lab.Offloads) (curves report.Chart, ok bool) {
	t := report.Table{Title: series.title, Columns: []report.Column{{Name: "rung", Words: true}, {Name: "p50", Unit: "ms"}, {Name: "p99", Unit: "ms"},
		{Name: "p99.9", Unit: "ms"}, {Name: "jitter", Unit: "ms"}, {Name: "lost", Unit: "%"}, {Name: "packets"}}}
	cdf := report.CDF{X: report.Axis{Label: series.title, Unit: "ms", Log: true}}
	median, tail := report.BarGroup{Name: "half of the packets within (p50)"}, report.BarGroup{Name: "99 of 100 within (p99)"}
	for _, at := range spots(l, series.of, o) {
		runs := series.of[at]
		joined := probe.Join(runs)
		p50, p99, p999 := joined.Quantiles()
		t.Add(ours(at.rung), at.rung.name, figure(p50), figure(p99), figure(p999), figure(joined.Jitter),
			figure(joined.LostShare()*100), units.Thousands(joined.Sent))
		cdf.Series = append(cdf.Series, report.Distribution{Name: at.rung.name, Ours: ours(at.rung), Points: positive(joined.Millis.CDF(distributionPoints))})
		for _, q := range []struct {
			name  string
			value float64
			bars  *report.BarGroup
		}{{"p50", 0.5, &median}, {"p99", 0.99, &tail}} {
			each := quantiles(runs, q.value)
			if each.Min() >= 0 { // below 0 the wall clock was set
				q.bars.Bars = append(q.bars.Bars, report.Bar{Name: at.rung.name, Runs: each, Ours: ours(at.rung)})
			}
			d.Measure(report.Lower, "ms", each, series.slug, mode(o), at.rung.slug(), q.name)
		}
	}
	if len(t.Rows) == 0 {
		return curves, false
	}
	s.Tables = append(s.Tables, t)
	if len(median.Bars) > 0 && len(tail.Bars) > 0 {
		s.Charts = append(s.Charts, report.Chart{Title: fmt.Sprintf("Each run: %s, offloads %s", series.title, o),
			Bars: &report.Bars{Label: series.title, Unit: "ms", Better: report.Lower, Groups: []report.BarGroup{median, tail}}})
	}
	return report.Chart{Title: fmt.Sprintf("Distribution: %s, offloads %s", series.title, o), CDF: &cdf}, true
}

// positive removes what a logarithmic axis cannot show. Such values come from a wall
// clock that was set while packets were under way.
func positive(points []stats.Point) []stats.Point {
	return slices.DeleteFunc(points, func(p stats.Point) bool { return p.Value <= 0 })
}

// quantiles returns the quantile of each run.
func quantiles(runs []*probe.Delays, q float64) (s stats.Sample) {
	for _, r := range runs {
		s = append(s, r.Millis.Quantile(q))
	}
	return s
}

// addRPM adds round-trips per minute.
func (l *ladder) addRPM(d *report.Document) {
	s := report.Section{Title: "Responsiveness under working conditions"}
	for _, o := range l.options.modes() {
		t := report.Table{Title: "Offloads " + o.String(), Columns: []report.Column{{Name: "rung", Words: true}, {Name: "direction", Words: true}, {Name: "round-trips", Unit: "per minute"},
			{Name: "on new connections"}, {Name: "on loaded ones"}, {Name: "goodput", Unit: "Gbit/s"}, {Name: "stable", Words: true}}}
		bars := report.Bars{Label: "round-trips per minute", Unit: "RPM", Better: report.Higher}
		for _, up := range []bool{false, true} {
			group := report.BarGroup{Name: map[bool]string{false: "download", true: "upload"}[up]}
			for _, r := range l.options.chosen() {
				runs := l.figures.respond[direction{spot{r, o}, up}]
				if len(runs) == 0 {
					continue
				}
				value := each(runs, func(r *probe.RPM) float64 { return r.Value })
				t.Add(ours(r), rowRPM(r, group.Name, value, runs)...)
				group.Bars = append(group.Bars, report.Bar{Name: r.name, Runs: value, Ours: ours(r)})
				d.Measure(report.Higher, "RPM", value, "rpm", mode(o), r.slug(), group.Name)
			}
			if len(group.Bars) > 0 {
				bars.Groups = append(bars.Groups, group)
			}
		}
		for _, at := range spots(l, l.figures.silent, o) {
			d.Notes = append(d.Notes, fmt.Sprintf("%s, offloads %s: %s left out of the round-trips per minute: no probe was answered while there was load.", at.rung.name, o, units.Plural(l.figures.silent[at], "run")))
		}
		l.show(&s, t, &bars, o, "Round-trips per minute", partOf(false), "download", partOf(true), "upload")
	}
	d.Add(s)
}

func rowRPM(r *rung, way string, value stats.Sample, runs []*probe.RPM) []string {
	foreign, loaded := each(runs, func(r *probe.RPM) float64 { return r.Foreign }), each(runs, func(r *probe.RPM) float64 { return r.Loaded })
	goodput := each(runs, func(r *probe.RPM) float64 { return r.Goodput / 1e9 })
	return []string{r.name, way, report.WithSpread(value), figure(foreign.Median()), figure(loaded.Median()), figure(goodput.Median()), stableRuns(runs)}
}

func each(runs []*probe.RPM, value func(*probe.RPM) float64) (s stats.Sample) {
	for _, r := range runs {
		s = append(s, value(r))
	}
	return s
}

func stableRuns(runs []*probe.RPM) string {
	stable := 0
	for _, r := range runs {
		if r.Stable {
			stable++
		}
	}
	return fmt.Sprintf("%d of %d", stable, len(runs))
}
