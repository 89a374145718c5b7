package remote

import (
	"fmt"
	"slices"

	"weir/internal/bench/sample"
)

// Shares at which something is taken for the limit of a run.
const (
	coreFull   = 0.95 // of its time that a core was busy
	boundMet   = 0.94 // of the rate that the server gave
	mostRuns   = 0.5  // of the runs in which that was so
	clearly    = 1.5  // times that round trips are longer before it is said
	tooManyOut = 0.01 // of the probes
)

// limits are what, besides the path, a case may have been limited by, in most of
// its runs; none: nothing that was seen.
func (f *findings) limits(asked Run) []string {
	seen := map[string]int{}
	var order []string
	for _, r := range f.results {
		for _, text := range r.limits(asked) {
			if seen[text]++; seen[text] == 1 {
				order = append(order, text)
			}
		}
	}
	return slices.DeleteFunc(order, func(text string) bool {
		return float64(seen[text]) < mostRuns*float64(len(f.results))
	})
}

func (r *result) limits(asked Run) []string {
	if r.met(asked) {
		return nil
	}
	found := slices.Clone(r.full)
	for _, d := range []*direction{r.up, r.down} {
		if d == nil {
			continue
		}
		// What was asked for is no limit, but what the server cut it to is.
		if r.granted.Rate > 0 && r.granted.Rate != asked.Rate && d.rate() >= boundMet*r.granted.Rate {
			found = append(found, fmt.Sprintf("the server's bound of %s (its --max-rate)", Rate(r.granted.Rate)))
		}
		if d.Held {
			found = append(found, "the sender, which did not keep up with the rate")
		}
	}
	for _, end := range []struct {
		name   string
		points []sample.Point
	}{{"the client", r.own}, {"the server", r.theirs}} {
		if core, busy := sample.Busiest(end.points); core >= 0 && busy >= coreFull {
			found = append(found, "the end: a core of "+end.name+"'s machine was full")
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// met tells that all that was asked for arrived: how busy the ends were besides
// is of no importance then.
func (r *result) met(asked Run) bool {
	if asked.Rate == 0 || r.granted.Rate != asked.Rate {
		return false
	}
	for _, d := range []*direction{r.up, r.down} {
		if d != nil && (d.Held || d.rate() < boundMet*asked.Rate) {
			return false
		}
	}
	return true
}
