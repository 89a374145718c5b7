package remote

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weir/internal/bench/sample"
	"weir/internal/stats"
	"weir/internal/units"
)

// verdicts describes the results in words.
func (m *measured) verdicts() []string {
	var all []string
	for _, f := range m.cases() {
		all = append(all, m.verdict(f))
	}
	all = append(all, m.oneAgainstMany()...)
	for _, f := range m.cases() {
		all = append(all, m.delay(f))
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// verdict describes one case's rate and its limit.
func (m *measured) verdict(f *findings) string {
	var said []string
	for _, up := range ways {
		rates := f.of(up, (*direction).rate)
		if len(rates) == 0 {
			continue
		}
		text := directionNames[up] + " " + rounded(rates.Median())
		if len(rates) > 1 {
			text += fmt.Sprintf(" (%s to %s)", rounded(rates.Min()), rounded(rates.Max()))
		}
		if loss := f.of(up, (*direction).loss).Median(); f.Protocol == UDP {
			text += fmt.Sprintf(", %s %% lost", units.Digits(loss, 2))
		}
		said = append(said, text)
	}
	text := f.String() + ": " + strings.Join(said, ", ")
	if limits := f.limits(m.request(f)); len(limits) > 0 {
		return text + ". This does not measure the path; the limit was " + strings.Join(limits, "; ") + "."
	}
	return text + "."
}

// rounded writes a measured rate with as many digits as chart and table have.
func rounded(rate float64) string {
	if rate <= 0 {
		return Rate(rate).String()
	}
	unit := math.Pow(10, math.Floor(math.Log10(rate))-2)
	return Rate(math.Round(rate/unit) * unit).String()
}

// oneAgainstMany compares a single connection with several, if only the path limited
// both.
func (m *measured) oneAgainstMany() []string {
	var all []string
	for _, one := range m.cases() {
		for _, many := range m.cases() {
			if one.Protocol != TCP || many.Protocol != TCP || one.Direction != many.Direction ||
				one.Connections != 1 || many.Connections == 1 ||
				len(one.limits(m.request(one)))+len(many.limits(m.request(many))) > 0 {
				continue
			}
			for _, up := range ways {
				a, b := one.of(up, (*direction).rate), many.of(up, (*direction).rate)
				if c := stats.Compare(a, b); len(a) > 0 && c.Proven {
					all = append(all, fmt.Sprintf("%s: %d connections carry %s times what one carries (%s).", directionNames[up],
						many.Connections, units.Digits(b.Median()/a.Median(), 3), one.Direction))
				}
			}
		}
	}
	return all
}

// delay describes the effect of load on round-trip times, if it is large. Each run counts
// once, by a quantile of its probes. Probes of one run are alike, so thousands of them
// prove nothing about the next run.
func (m *measured) delay(f *findings) string {
	if len(m.before) == 0 {
		return ""
	}
	var said []string
	idle, loaded := m.idleQuantiles(0.5), f.quantiles(0.5)
	if stats.MannWhitney(idle, loaded).Proven && loaded.Median() > clearly*idle.Median() {
		said = append(said, fmt.Sprintf("%s: the median round-trip time rises from %s to %s ms, the 99th percentile from %s to %s ms.", f.Case,
			units.Digits(idle.Median(), 3), units.Digits(loaded.Median(), 3),
			units.Digits(m.idleQuantiles(0.99).Median(), 3), units.Digits(f.quantiles(0.99).Median(), 3)))
	}
	rtts, lost := f.allRTTs()
	if out := float64(lost) / float64(lost+len(rtts)); out > tooManyOut {
		said = append(said, fmt.Sprintf("%s: %s %% of the probes had no echo.", f.Case, units.Digits(100*out, 2)))
	}
	return strings.Join(said, " ")
}

// idleQuantiles returns one quantile of the round-trip times before each run.
func (m *measured) idleQuantiles(q float64) (s stats.Sample) {
	for _, rtts := range m.before {
		s = append(s, rtts.Quantile(q))
	}
	return s
}

// Shares at which something counts as the limit of a run.
const (
	coreFull   = 0.95 // busy share of a core's time
	boundMet   = 0.94 // share of the server's rate
	mostRuns   = 0.5  // share of the runs
	clearly    = 1.5  // factor by which round trips have to grow to be mentioned
	tooManyOut = 0.01 // share of the probes
)

// limits returns what may have limited a case in most of its runs, besides the path. It
// returns none if nothing was seen.
func (f *findings) limits(asked Run) []string {
	seen := map[string]int{}
	for _, r := range f.results {
		for _, text := range r.limits(asked) {
			seen[text]++
		}
	}
	maps.DeleteFunc(seen, func(_ string, n int) bool { return float64(n) < mostRuns*float64(len(f.results)) })
	return slices.Sorted(maps.Keys(seen))
}

func (r *result) limits(asked Run) []string {
	if r.met(asked) {
		return nil
	}
	found := slices.Clone(r.full)
	for _, d := range r.directions() {
		// The requested rate is not a limit, but a rate reduced by the server is.
		if r.granted.Rate > 0 && r.granted.Rate != asked.Rate && d.Rate >= boundMet*float64(r.granted.Rate) {
			found = append(found, fmt.Sprintf("the server's bound of %s (its --max-rate)", r.granted.Rate))
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
			found = append(found, "a full core of "+end.name+"'s machine")
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// met reports whether everything requested arrived. How busy the ends were does not
// matter then.
func (r *result) met(asked Run) bool {
	if asked.Rate == 0 || r.granted.Rate != asked.Rate {
		return false
	}
	return !slices.ContainsFunc(r.directions(), func(d *direction) bool { return d.Held || d.Rate < boundMet*float64(asked.Rate) })
}
