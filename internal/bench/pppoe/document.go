package pppoe

import (
	"fmt"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/traffic"
	"weir/internal/stats"
	"weir/internal/units"
)

// What a core has to forward with a session, as a part of what it does without one.
const (
	// shortFrame is the largest frame of which the first floor speaks.
	shortFrame = 512
	shortFloor = 0.95
	longFloor  = 0.98
	// mostNS is what a session may take of a core for a frame.
	mostNS = 15
)

// A cost is what the session costs in one case.
type cost struct {
	c             traffic.Case
	without, with stats.Sample // Mpps
	base          float64      // ns of a frame that are the generator's; 0: not measured

	bare, bareWith stats.Sample // Mpps of a bare redirect; empty: not measured
}

// costs finds the pairs among the rows.
func costs(rows []forward.Row) (all []cost) {
	found := map[string]map[string]*forward.Row{}
	for i := range rows {
		key := rows[i].Case.String()
		if found[key] == nil {
			found[key] = map[string]*forward.Row{}
		}
		found[key][rows[i].Path] = &rows[i]
	}
	for i := range rows {
		pair := found[rows[i].Case.String()]
		without, base := pair[paths.WeirNAT], pair[paths.Generator]
		if rows[i].Path != paths.WeirNATPPPoE || without == nil {
			continue
		}
		one := cost{c: rows[i].Case, without: without.Mpps, with: rows[i].Mpps}
		if base != nil {
			one.base = base.NS
		}
		if bare, with := pair[paths.Redirect], pair[paths.RedirectPPPoE]; bare != nil && with != nil {
			one.bare, one.bareWith = bare.Mpps, with.Mpps
		}
		all = append(all, one)
	}
	return all
}

// ratio is what is forwarded with a session, as a part of what is without.
func (c *cost) ratio() float64 { return c.with.Median() / c.without.Median() }

// more is what the session takes of a core for a frame, in ns.
func (c *cost) more() float64 { return c.between(c.without, c.with) }

func (c *cost) between(without, with stats.Sample) float64 {
	return float64(c.c.Cores) * 1000 * (1/with.Median() - 1/without.Median())
}

// least is what the session takes of a bare redirect, in ns, and what ratio is left if it takes no more of weir; false:
// that was not measured.
func (c *cost) least() (ns, ratio float64, ok bool) {
	if len(c.bareWith) == 0 {
		return 0, 0, false
	}
	ns = c.between(c.bare, c.bareWith)
	without := float64(c.c.Cores) * 1000 / c.without.Median()
	return ns, without / (without + ns), true
}

// netRatio leaves the generator out. NaN-free: 0 if it was not measured.
func (c *cost) netRatio() float64 {
	without, with := float64(c.c.Cores)*1000/c.without.Median()-c.base, float64(c.c.Cores)*1000/c.with.Median()-c.base
	if c.base == 0 || with <= 0 {
		return 0
	}
	return without / with
}

// floor is what the ratio has to reach.
func (c *cost) floor() float64 {
	if c.c.Frame <= shortFrame {
		return shortFloor
	}
	return longFloor
}

// verdict says whether the session costs as little as it should.
func (c *cost) verdict() string {
	switch {
	case c.ratio() < c.floor():
		return "missed"
	case c.more() > mostNS:
		return fmt.Sprintf("holds, but costs more than %d ns", mostNS)
	}
	return "holds"
}

func (c *cost) way() string {
	if c.c.Both() {
		return "both ways"
	}
	return "into the session"
}

// document is forward's report, with the floors before it.
func document(f *forward.Report) *report.Document {
	d := f.Document()
	d.Kind, d.Title = "pppoe", "What a PPPoE session costs a router"
	all := costs(f.Rows)
	t := report.Table{Title: "With a session ÷ without", Columns: []report.Column{
		{Name: "frame", Unit: "bytes"}, {Name: "direction", Words: true}, {Name: "without", Unit: "ns"}, {Name: "with", Unit: "ns"}, {Name: "more", Unit: "ns"},
		{Name: "a bare redirect: more", Unit: "ns"}, {Name: "ratio with that"}, {Name: "ratio"}, {Name: "without the generator"}, {Name: "floor"}, {Name: "verdict", Words: true, Concludes: true},
	}}
	for i := range all {
		c := &all[i]
		ns := func(s stats.Sample) string { return units.Digits(float64(c.c.Cores)*1000/s.Median(), 3) }
		net := "–"
		if c.netRatio() > 0 {
			net = fmt.Sprintf("%.3f", c.netRatio())
		}
		least, possible := "–", "–"
		if more, ratio, ok := c.least(); ok {
			least, possible = report.Signed(more), fmt.Sprintf("%.3f", ratio)
		}
		t.Add(false, units.Thousands(c.c.Frame), c.way(), ns(c.without), ns(c.with), report.Signed(c.more()), least, possible, fmt.Sprintf("%.3f", c.ratio()),
			net, fmt.Sprintf("≥ %.2f", c.floor()), c.verdict())
	}
	d.Verdicts = verdicts(all)
	d.Sections = append([]report.Section{{Title: "The session", Tables: []report.Table{t}}}, d.Sections...)
	d.Method = append(d.Method,
		"The session is that of weir's own client with a concentrator at the far end, for packets of 1,500 bytes (RFC 4638). On the wire to the internet each frame has 8 more bytes; sizes are those on the other wire. The firewall's address in the session replaces the sources.",
		"The generator moves the start of each frame by 8 bytes itself, with a session and without: the kernel has to restore a frame for it that has been moved, which is no work of a router's.",
		"A bare redirect (redirect-pppoe ÷ redirect) moves the start of the frame and writes or takes off the session's header, and nothing else. So it shows what a session takes at least here, whoever forwards.",
		"Into the session: all frames come from the LAN. Both ways: half of them are replies, which leave the session.",
	)
	for _, row := range f.Rows {
		d.Measure(report.Higher, "Mpps", row.Mpps, fmt.Sprintf("%s, %s", row.Path, row.Case.String()))
	}
	return d
}

// verdicts are what this run says.
func verdicts(all []cost) (said []string) {
	for i := range all {
		c := &all[i]
		s := fmt.Sprintf("At %d bytes, %s, a core forwards %.3f of what it does without a session (floor %.2f: %s). The session takes %s ns of a frame.",
			c.c.Frame, c.way(), c.ratio(), c.floor(), c.verdict(), report.Figure(c.more()))
		if more, ratio, ok := c.least(); ok {
			s += fmt.Sprintf(" Of a bare redirect it takes %s ns, which alone would leave %.3f.", report.Figure(more), ratio)
		}
		if t := stats.Compare(c.without, c.with); t.Test != stats.TooFew && !t.Proven {
			s += fmt.Sprintf(" No difference is proven; this run would have shown one of %s %%.", units.Digits(t.Detectable*100, 2))
		}
		said = append(said, s)
	}
	return said
}
