package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"weir/internal/stats"
	"weir/internal/units"
)

// digits is the number of significant digits in reports.
const digits = 3

// Figure writes a figure as charts do. The tables of a report and what the terminal shows of
// the same run write theirs in this way too, so that they agree.
func Figure(v float64) string { return units.Digits(v, digits) }

// Signed writes a difference: a figure with its sign.
func Signed(v float64) string {
	if v > 0 {
		return "+" + Figure(v)
	}
	return Figure(v)
}

func figure(v float64) string { return Figure(v) }

// Span writes the smallest and the largest run as a cell of its own.
func Span(s stats.Sample) string { return figure(s.Min()) + " – " + figure(s.Max()) }

// spread writes the same after a median.
func spread(s stats.Sample) string { return figure(s.Min()) + "–" + figure(s.Max()) }

// named writes the name of an axis with its unit.
func (a Axis) named() string {
	if a.Unit == "" {
		return a.Label
	}
	return a.Label + " (" + a.Unit + ")"
}

func (c Column) named() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + ", " + c.Unit
}

// Figures returns the chart as a table, for readers who cannot see it or want to work
// with the numbers.
func (c *Chart) Figures() Table { return c.kind().figures() }

func (b *Bars) figures() Table {
	t := Table{Columns: []Column{{Name: "what", Words: true}, {Name: "median", Unit: b.Unit}, {Name: "smallest"}, {Name: "largest"}, {Name: "runs"}}}
	grouped := len(b.Groups) > 1
	if grouped {
		t.Columns = slices.Insert(t.Columns, 0, Column{Name: "case", Words: true})
	}
	for _, g := range b.Groups {
		for _, bar := range g.Bars {
			r := bar.Runs
			row := []string{bar.Name, figure(r.Median()), figure(r.Min()), figure(r.Max()), units.Thousands(len(r))}
			if grouped {
				row = slices.Insert(row, 0, g.Name)
			}
			t.Add(bar.Ours, row...)
		}
	}
	return t
}

func (c *Curves) figures() Table {
	t := Table{Columns: []Column{{Name: c.X.Label, Unit: c.X.Unit}}}
	rows := map[float64][]string{}
	for i, s := range c.Series {
		t.Columns = append(t.Columns, Column{Name: s.Name, Unit: c.Y.Unit})
		for _, p := range s.Points {
			if rows[p.X] == nil {
				rows[p.X] = slices.Repeat([]string{"–"}, len(c.Series))
			}
			rows[p.X][i] = WithSpread(p.Runs)
		}
	}
	for _, x := range slices.Sorted(maps.Keys(rows)) {
		t.Rows = append(t.Rows, append([]string{exact(x)}, rows[x]...))
	}
	return t
}

// exact writes a place on an axis: whole numbers in full.
func exact(x float64) string {
	if x == float64(int(x)) {
		return units.Thousands(int(x))
	}
	return figure(x)
}

// WithSpread writes a median, with the smallest and the largest of several runs.
func WithSpread(s stats.Sample) string {
	if len(s) < 2 {
		return figure(s.Median())
	}
	return figure(s.Median()) + " (" + spread(s) + ")"
}

// shares are the quantiles in tables of distributions.
var shares = []struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

func (c *CDF) figures() Table {
	t := Table{Columns: []Column{{Name: "what", Words: true}}}
	for _, q := range shares {
		t.Columns = append(t.Columns, Column{Name: q.name, Unit: c.X.Unit})
	}
	t.Columns = append(t.Columns, Column{Name: "largest", Unit: c.X.Unit})
	for _, m := range c.Marks {
		t.Columns = append(t.Columns, Column{Name: "at most " + m.Name, Unit: "%"})
	}
	for _, s := range c.Series {
		row := []string{s.Name}
		for _, q := range shares {
			row = append(row, figure(s.quantile(q.share)))
		}
		row = append(row, figure(s.quantile(1)))
		for _, m := range c.Marks {
			row = append(row, units.Digits(100*s.atMost(m.At), 4))
		}
		t.Add(s.Ours, row...)
	}
	return t
}

// quantile returns the smallest value that is not exceeded by a share of all values.
func (d *Distribution) quantile(share float64) float64 {
	if len(d.Points) == 0 {
		return 0
	}
	for _, p := range d.Points {
		if p.Share >= share {
			return p.Value
		}
	}
	return d.Points[len(d.Points)-1].Value
}

// atMost returns the share of values up to a limit.
func (d *Distribution) atMost(limit float64) (share float64) {
	for _, p := range d.Points {
		if p.Value > limit {
			break
		}
		share = p.Share
	}
	return share
}

// topFunctions limits the functions in a flame graph's table.
const topFunctions = 15

func (f *Flame) figures() Table {
	self, all, total := map[string]int{}, map[string]int{}, 0
	for _, s := range f.Stacks {
		total += s.Count
		self[s.Frames[len(s.Frames)-1]] += s.Count
		seen := map[string]bool{}
		for _, name := range s.Frames {
			if !seen[name] {
				seen[name] = true
				all[name] += s.Count
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(self), func(a, b string) int {
		return cmp.Or(cmp.Compare(self[b], self[a]), cmp.Compare(a, b))
	})
	t := Table{Columns: []Column{{Name: "function", Words: true}, {Name: "itself", Unit: "%"}, {Name: "with what it calls", Unit: "%"}}}
	for _, name := range names[:min(len(names), topFunctions)] {
		t.Rows = append(t.Rows, []string{name, percent(self[name], total), percent(all[name], total)})
	}
	return t
}

func percent(part, whole int) string { return fmt.Sprintf("%.1f", 100*float64(part)/float64(whole)) }
