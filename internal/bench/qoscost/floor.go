package qoscost

import (
	"fmt"
	"math"
	"strconv"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/units"
)

// A floor is what a figure has to reach, and what it should.
type floor struct {
	name       string
	value      float64
	digits     int     // after the point
	least, aim float64 // aim is NaN if there is none beyond the floor
	lower      bool    // less is better
}

// verdict compares the value as it is printed with floor and aim.
func (f *floor) verdict() string {
	reaches := func(limit float64) bool {
		scale := math.Pow10(f.digits)
		value := math.Round(f.value*scale) / scale
		if f.lower {
			return value <= limit
		}
		return value >= limit
	}
	switch {
	case !reaches(f.least):
		return "missed"
	case !math.IsNaN(f.aim) && reaches(f.aim):
		return "aim reached"
	}
	return "holds"
}

func (f *floor) limit(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case f.lower:
		return "≤ " + strconv.FormatFloat(v, 'f', -1, 64)
	}
	return "≥ " + strconv.FormatFloat(v, 'f', -1, 64)
}

// reached lists the figures that have to reach something, of what was measured.
func (r *Report) reached() (all []floor) {
	none := math.NaN()
	add := func(value float64, measured bool, f floor) {
		if f.value = value; measured {
			all = append(all, f)
		}
	}
	for _, cores := range r.cores() {
		on := units.Plural(cores, "core")
		more, ok := r.more(paths.WeirQoS, paths.Weir, cores)
		add(more, ok, floor{name: "what queues take of a frame, ns, " + on, digits: 1, least: 15, aim: 8, lower: true})
		kept, ok := r.quotient(paths.WeirQoS, paths.Weir, cores, cores)
		add(kept, ok, floor{name: "weir with queues ÷ without, " + on, digits: 3, least: 0.93, aim: none})
		times, ok := r.quotient(paths.WeirQoS, paths.KernelHTB, cores, cores)
		least := 4.0
		if cores > 1 {
			least = 5
		}
		add(times, ok, floor{name: "weir with queues ÷ HTB and IFB, " + on, digits: 2, least: least, aim: none})
		if cores == 2 {
			wide, ok := r.quotient(paths.WeirQoS, paths.WeirQoS, 2, 1)
			add(wide, ok, floor{name: "weir with queues, two cores ÷ one", digits: 3, least: 1.85, aim: 1.95})
		}
		line, ok := r.lineKept(paths.WeirQoS, paths.Weir, cores)
		add(line, ok, floor{name: "at the line's rate, weir with queues ÷ without, " + on, digits: 3, least: 0.97, aim: none})
	}
	return all
}

// floors is the table of what has to be reached.
func (r *Report) floors() report.Table {
	t := report.Table{Columns: []report.Column{
		{Name: "figure", Words: true}, {Name: "value"}, {Name: "floor"}, {Name: "aim"}, {Name: "verdict", Words: true, Concludes: true},
	}}
	for _, f := range r.reached() {
		t.Add(false, f.name, fmt.Sprintf("%.*f", f.digits, f.value), f.limit(f.least), f.limit(f.aim), f.verdict())
	}
	return t
}
