package report

import (
	"errors"
	"fmt"

	"weir/internal/stats"
)

// Chart is one figure. Exactly one of the kinds is set.
type Chart struct {
	// Title is a headline: "What a frame costs".
	Title string `json:"title"`
	// Note is shown below the figure.
	Note   string  `json:"note,omitempty"`
	Bars   *Bars   `json:"bars,omitempty"`
	Curves *Curves `json:"curves,omitempty"`
	Times  *Times  `json:"times,omitempty"`
	CDF    *CDF    `json:"cdf,omitempty"`
	Flame  *Flame  `json:"flame,omitempty"`
}

// Axis is the meaning of a scale.
type Axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit,omitempty"`
	// Log makes equal distances equal ratios. All values have to be above 0. Only an
	// X of a curve may be 0: it is drawn a decade before the smallest of the others.
	Log bool `json:"log,omitempty"`
}

// Bars compare medians. Each run is a dot, and a whisker runs from the smallest to the
// largest.
type Bars struct {
	Label  string     `json:"label"` // the scale's name: "million frames per second"
	Unit   string     `json:"unit"`  // short, after each figure: "Mpps"
	Better string     `json:"better,omitempty"`
	Groups []BarGroup `json:"groups"`
}

// BarGroup is a group of bars that belong together, one below the other.
type BarGroup struct {
	Name string `json:"name,omitempty"`
	Bars []Bar  `json:"bars"`
}

// Bar is one measured thing.
type Bar struct {
	Name string       `json:"name"`
	Runs stats.Sample `json:"runs"`
	// Ours draws the bar in the colour of the report's subject. Others are grey.
	Ours bool `json:"ours,omitempty"`
}

// Curves show how something depends on something else: medians as a line, with
// the spread behind it.
type Curves struct {
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"` // from 0, unless it is logarithmic
	Series []Series `json:"series"`
}

// Series is one line of [Curves].
type Series struct {
	Name   string  `json:"name"`
	Ours   bool    `json:"ours,omitempty"`
	Points []Point `json:"points"` // in the order of X
}

// Point is what was measured at one X.
type Point struct {
	X    float64      `json:"x"`
	Runs stats.Sample `json:"runs"`
}

// Times is a stack of panels over one time axis in seconds, with the load of each core
// below.
type Times struct {
	Panels []Panel `json:"panels"`
	Cores  []Core  `json:"cores,omitempty"`
	// Marks are moments with a name, such as the start of a phase.
	Marks []Mark `json:"marks,omitempty"`
	// Parts divide the time between different things, such as one path after the
	// other. Lines end where a part ends, and tables have figures for each part.
	Parts []Part `json:"parts,omitempty"`
}

// Part is a span of time, in seconds, in which one thing happened.
type Part struct {
	Name string  `json:"name"`
	Ours bool    `json:"ours,omitempty"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Panel is one scale of [Times].
type Panel struct {
	Label  string     `json:"label"`
	Unit   string     `json:"unit"`
	Series []TimeLine `json:"series"`
}

// TimeLine is how one thing developed over time.
type TimeLine struct {
	Name   string   `json:"name"`
	Ours   bool     `json:"ours,omitempty"`
	Points []Moment `json:"points"` // in the order of time
}

// Moment is a value at a time.
type Moment struct {
	Seconds float64 `json:"s"`
	Value   float64 `json:"v"`
}

// Core is how busy a core was.
type Core struct {
	Core   int      `json:"core"`
	Points []Moment `json:"points"` // the busy share of the time since the previous point, 0 to 1
}

// Mark is a named value on an axis.
type Mark struct {
	At   float64 `json:"at"`
	Name string  `json:"name"`
}

// CDF shows the share of values that are at most as large as X.
type CDF struct {
	X      Axis           `json:"x"`
	Series []Distribution `json:"series"`
	// Marks are limits, such as 100 ms.
	Marks []Mark `json:"marks,omitempty"`
}

// Distribution is one line of a [CDF].
type Distribution struct {
	Name   string        `json:"name"`
	Ours   bool          `json:"ours,omitempty"`
	Points []stats.Point `json:"points"`
}

// Flame shows where time was spent: stacks of functions and the number of samples of
// each.
type Flame struct {
	Unit   string  `json:"unit"` // the unit of the counts: "samples"
	Stacks []Stack `json:"stacks"`
}

// Stack is one chain of calls, the outermost function first.
type Stack struct {
	Frames []string `json:"frames"`
	Count  int      `json:"count"`
}

// kind is the content of a chart of any kind.
type kind interface {
	check() error
	about() string  // what it shows, for readers who cannot see it
	figures() Table // the same as a table
	draw(*canvas)
}

func (c *Chart) kinds() (found []kind) {
	for _, k := range []struct {
		set  bool
		kind kind
	}{{c.Bars != nil, c.Bars}, {c.Curves != nil, c.Curves}, {c.Times != nil, c.Times}, {c.CDF != nil, c.CDF}, {c.Flame != nil, c.Flame}} {
		if k.set {
			found = append(found, k.kind)
		}
	}
	return found
}

// kind returns the content of a chart that was checked.
func (c *Chart) kind() kind { return c.kinds()[0] }

func (c *Chart) check() error {
	found := c.kinds()
	if c.Title == "" || len(found) != 1 {
		return fmt.Errorf("it has to have a title and exactly one kind, and has %d", len(found))
	}
	return found[0].check()
}

func (b *Bars) check() error {
	for _, g := range b.Groups {
		for _, bar := range g.Bars {
			if len(bar.Runs) == 0 || !finite(bar.Runs...) || bar.Runs.Min() < 0 {
				return fmt.Errorf("bar %q: want runs that are numbers of 0 or more, got %v", bar.Name, []float64(bar.Runs))
			}
		}
		if len(g.Bars) == 0 {
			return fmt.Errorf("group %q has no bars", g.Name)
		}
	}
	if len(b.Groups) == 0 {
		return errors.New("no bars")
	}
	return nil
}

func (c *Curves) check() error {
	points := 0
	for _, s := range c.Series {
		for i, p := range s.Points {
			switch {
			case len(p.Runs) == 0 || !finite(p.Runs...) || !finite(p.X):
				return fmt.Errorf("curve %q: point %d is no number", s.Name, i+1)
			case c.X.Log && p.X < 0 || c.Y.Log && p.Runs.Min() <= 0 || p.Runs.Min() < 0:
				return fmt.Errorf("curve %q: point %d is too small", s.Name, i+1)
			case i > 0 && p.X <= s.Points[i-1].X:
				return fmt.Errorf("curve %q: point %d is not to the right of the one before", s.Name, i+1)
			}
		}
		points += len(s.Points)
	}
	if points == 0 {
		return errors.New("no points")
	}
	return nil
}

func (t *Times) check() error {
	points := 0
	check := func(name string, list []Moment) error {
		for i, p := range list {
			if !finite(p.Seconds, p.Value) || p.Seconds < 0 || i > 0 && p.Seconds < list[i-1].Seconds {
				return fmt.Errorf("%s: point %d: want numbers in the order of time", name, i+1)
			}
		}
		points += len(list)
		return nil
	}
	for _, p := range t.Panels {
		for _, s := range p.Series {
			if err := check(s.Name, s.Points); err != nil {
				return err
			}
		}
	}
	for _, c := range t.Cores {
		if err := check(fmt.Sprintf("core %d", c.Core), c.Points); err != nil {
			return err
		}
	}
	if points == 0 {
		return errors.New("no points")
	}
	return t.checkParts()
}

func (t *Times) checkParts() error {
	end := 0.0
	for _, p := range t.Parts {
		if !finite(p.From, p.To) || p.From < end || p.To < p.From {
			return fmt.Errorf("part %q: want one that begins after the one before", p.Name)
		}
		end = p.To
	}
	return nil
}

func (c *CDF) check() error {
	points := 0
	for _, s := range c.Series {
		for i, p := range s.Points {
			if !finite(p.Value, p.Share) || p.Share < 0 || p.Share > 1 || c.X.Log && p.Value <= 0 {
				return fmt.Errorf("distribution %q: point %d: %v", s.Name, i+1, p)
			}
		}
		points += len(s.Points)
	}
	if points == 0 {
		return errors.New("no points")
	}
	return nil
}

func (f *Flame) check() error {
	for i, s := range f.Stacks {
		if len(s.Frames) == 0 || s.Count <= 0 {
			return fmt.Errorf("stack %d is empty", i+1)
		}
	}
	if len(f.Stacks) == 0 {
		return errors.New("no stacks")
	}
	return nil
}
