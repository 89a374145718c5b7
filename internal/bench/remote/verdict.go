package remote

import (
	"fmt"
	"strings"

	"weir/internal/stats"
	"weir/internal/units"
)

// verdicts say in words what the figures are.
func (m *measured) verdicts() []string {
	var all []string
	for _, f := range m.cases() {
		all = append(all, m.verdict(f))
	}
	all = append(all, m.oneAgainstMany()...)
	for _, f := range m.cases() {
		if text := m.delay(f); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// verdict is one case's rate, and whose it is.
func (m *measured) verdict(f *findings) string {
	var ways []string
	for _, up := range []bool{true, false} {
		rates := f.rates(up)
		if len(rates) == 0 {
			continue
		}
		text := fmt.Sprintf("%s %s", directionNames[up], Rate(rates.Median()))
		if len(rates) > 1 {
			text += fmt.Sprintf(" (%s to %s)", Rate(rates.Min()), Rate(rates.Max()))
		}
		if loss := f.of(up, (*direction).loss).Median(); f.Protocol == UDP {
			text += fmt.Sprintf(", %s %% lost", units.Digits(100*loss, 2))
		}
		ways = append(ways, text)
	}
	text := f.String() + ": " + strings.Join(ways, ", ")
	if limits := f.limits(m.request(f)); len(limits) > 0 {
		return text + ". This is no measurement of the path: what limited it is " + strings.Join(limits, "; ") + "."
	}
	return text + "."
}

// oneAgainstMany compares a single connection with several, where nothing but
// the path limited either.
func (m *measured) oneAgainstMany() []string {
	var all []string
	for _, one := range m.cases() {
		for _, many := range m.cases() {
			if one.Protocol != TCP || many.Protocol != TCP || one.Direction != many.Direction ||
				one.Connections != 1 || many.Connections == 1 ||
				len(one.limits(m.request(one)))+len(many.limits(m.request(many))) > 0 {
				continue
			}
			for _, up := range []bool{true, false} {
				a, b := one.rates(up), many.rates(up)
				if c := stats.Compare(a, b); len(a) > 0 && c.Proven {
					all = append(all, fmt.Sprintf("%s: %d connections carry %s times what one carries (%s).", directionNames[up],
						many.Connections, units.Digits(b.Median()/a.Median(), 3), one.Direction))
				}
			}
		}
	}
	return all
}

// delay says what load does to round-trip times, where it is much. A run counts
// once, by a quantile of its probes: those of one run are alike, and thousands of
// them prove nothing of the next.
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

// idleQuantiles are one of the round-trip times before each run.
func (m *measured) idleQuantiles(q float64) (s stats.Sample) {
	for _, rtts := range m.before {
		s = append(s, rtts.Quantile(q))
	}
	return s
}
