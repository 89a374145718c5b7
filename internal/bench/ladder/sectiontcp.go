package ladder

import (
	"cmp"
	"fmt"
	"strings"

	"weir/internal/bench/report"
	"weir/internal/lab"
	"weir/internal/stats"
	"weir/internal/units"
)

// addTCP adds what TCP connections carried with offloads on or off.
func (l *ladder) addTCP(d *report.Document, o lab.Offloads) {
	if !l.options.has(PartTCP) {
		return
	}
	s := report.Section{Title: "TCP, offloads " + o.String(), Text: []string{modeText(o)}}
	l.chartTCP(&s, o)
	if len(s.Charts) == 0 {
		return
	}
	s.Tables = append(s.Tables, l.tableTCP(o))
	if table := l.tableSingle(o); len(table.Rows) > 0 {
		s.Tables = append(s.Tables, table)
	}
	d.Sections = append(d.Sections, s)
	for _, r := range l.options.chosen() {
		for _, n := range l.options.Connections {
			d.Measure(report.Higher, "Gbit/s", l.rate(r.name, o, n), "tcp", mode(o), r.slug(), fmt.Sprint(n))
		}
	}
	l.checkTCP(d, o)
}

func (l *ladder) chartTCP(s *report.Section, o lab.Offloads) {
	bars := report.Bars{Label: "goodput", Unit: "Gbit/s", Better: report.Higher}
	curves := report.Curves{X: report.Axis{Label: "connections", Log: true}, Y: report.Axis{Label: "goodput", Unit: "Gbit/s"}}
	for _, n := range l.options.Connections {
		group := report.BarGroup{Name: units.Plural(n, "connection")}
		for _, r := range l.options.chosen() {
			if rates := l.rate(r.name, o, n); len(rates) > 0 {
				group.Bars = append(group.Bars, report.Bar{Name: r.name, Runs: rates, Ours: ours(r)})
			}
		}
		if len(group.Bars) > 0 {
			bars.Groups = append(bars.Groups, group)
		}
	}
	if len(bars.Groups) == 0 {
		return
	}
	s.Charts = append(s.Charts, report.Chart{Title: "What TCP carries on each rung, offloads " + o.String(), Bars: &bars,
		Note: "Whiskers reach from the smallest to the largest run."})
	for _, r := range l.options.chosen() {
		if series := l.seriesTCP(r, o); len(series.Points) > 2 {
			curves.Series = append(curves.Series, series)
		}
	}
	if len(curves.Series) > 0 {
		s.Charts = append(s.Charts, report.Chart{Title: "Goodput against the number of connections, offloads " + o.String(), Curves: &curves})
	}
	for _, n := range l.options.Connections {
		l.watched(s, PartTCP, o, n, units.Plural(n, "connection"))
	}
}

// seriesTCP returns a rung's rates in the order of the connections.
func (l *ladder) seriesTCP(r *rung, o lab.Offloads) report.Series {
	series := report.Series{Name: r.name, Ours: ours(r)}
	for _, n := range ascending(l.options.Connections) {
		if rates := l.rate(r.name, o, n); len(rates) > 0 {
			series.Points = append(series.Points, report.Point{X: float64(n), Runs: rates})
		}
	}
	return series
}

// tableTCP shows what each step costs one connection, and what the limit is.
func (l *ladder) tableTCP(o lab.Offloads) report.Table {
	n := l.options.Connections[0]
	t := report.Table{Title: fmt.Sprintf("%s, step by step", units.Plural(n, "connection")),
		Columns: []report.Column{{Name: "rung", Words: true}, {Name: "goodput", Unit: "Gbit/s"}, {Name: "against", Words: true},
			{Name: "difference", Words: true, Concludes: true}, {Name: "limit", Words: true, Concludes: true}}}
	direct := l.rate("direct", o, n)
	for _, r := range l.options.chosen() {
		rates := l.rate(r.name, o, n)
		if len(rates) == 0 {
			continue
		}
		below, difference := l.rate(r.below, o, n), "–"
		if len(below) > 0 {
			difference = percent(stats.Compare(below, rates))
		}
		t.Add(ours(r), r.name, report.WithSpread(rates), cmp.Or(r.below, "–"), difference, limitOf(r, direct, rates, l.core(spot{r, o})))
	}
	return t
}

// tableSingle compares one connection with the largest number measured.
func (l *ladder) tableSingle(o lab.Offloads) report.Table {
	n := l.options.Connections[0]
	t := report.Table{Title: "One connection against many", Columns: []report.Column{{Name: "rung", Words: true},
		{Name: units.Plural(n, "connection"), Unit: "Gbit/s"}, {Name: "many"}, {Name: "goodput of many", Unit: "Gbit/s"}, {Name: "many : one"}}}
	for _, r := range l.options.chosen() {
		most := l.most(spot{r, o})
		one, many := l.rate(r.name, o, n), l.rate(r.name, o, most)
		if most <= n || len(one) == 0 {
			continue
		}
		t.Add(ours(r), r.name, figure(one.Median()), units.Thousands(most), report.WithSpread(many), units.Digits(many.Median()/one.Median(), 2))
	}
	return t
}

// checkTCP compares weir with nft if both are measured, and each with the direct wire: in
// full for the first number of connections, in short for others.
func (l *ladder) checkTCP(d *report.Document, o lab.Offloads) {
	text := ""
	var others, differences []string
	for _, n := range l.options.Connections {
		a, b := l.rate("nat, nft", o, n), l.rate("nat, weir", o, n)
		if len(a) == 0 || len(b) == 0 {
			continue
		}
		if text != "" {
			others, differences = append(others, units.Thousands(n)), append(differences, percent(stats.Compare(a, b)))
			continue
		}
		text = fmt.Sprintf("With NAT and offloads %s, %s: %s", o, units.Plural(n, "connection"), versus("nft", "weir", a, b, "carries", "Gbit/s"))
		if direct := l.rate("direct", o, n); against(direct, a) == asFast && against(direct, b) == asFast {
			text += " The direct wire carries no more than either: the hosts are the limit, and neither firewall's cost is seen."
		}
	}
	if len(others) > 0 {
		text += fmt.Sprintf(" With %s connections: %s.", strings.Join(others, ", "), strings.Join(differences, ", "))
	}
	if text != "" {
		d.Verdicts = append(d.Verdicts, text)
	}
}
