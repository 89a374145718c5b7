package qos

import (
	"fmt"
	"math"
	"runtime"

	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// A judged is one figure of a scene, and what it has to reach.
type judged struct {
	name, unit, better string
	least, aim         float64 // NaN: nothing has to be reached
	of                 func(*outcome) float64
	// beyond is the path whose median is subtracted first; "": none.
	beyond string
}

func figure(name, unit, better string, of func(*outcome) float64) judged {
	return judged{name: name, unit: unit, better: better, least: math.NaN(), aim: math.NaN(), of: of}
}

// floor returns the figure with what it has to reach, and should.
func (j judged) floor(least, aim float64) judged {
	j.least, j.aim = least, aim
	return j
}

// Figures. Rates are those of the line. "Up" is what leaves, and is not said.
var (
	ofRate      = figure("of the rate", "", report.Higher, func(o *outcome) float64 { return o.up.all().rate() / o.scene.rate })
	ofRateDown  = figure("of the rate, down", "", report.Higher, func(o *outcome) float64 { return o.down.all().rate() / o.scene.rate })
	goodput     = figure("goodput, of the rate", "", report.Higher, func(o *outcome) float64 { return o.goodput(false) / o.scene.rate })
	goodputDown = figure("goodput, of the rate, down", "", report.Higher, func(o *outcome) float64 { return o.goodput(true) / o.scene.rate })
	over10s     = figure("above the rate, highest 10 s", "%", report.Lower, func(o *outcome) float64 { return above(o.up.all(), o.scene.rate) })
	over10sDown = figure("above the rate, highest 10 s, down", "%", report.Lower, func(o *outcome) float64 { return above(o.down.all(), o.scene.rate) })
	under10s    = figure("below the rate, lowest 10 s", "%", report.Lower, below)
	highest     = figure("highest 250 ms ÷ rate", "", report.Lower, func(o *outcome) float64 { return o.up.all().windows(short).Max() / o.scene.rate })
	highestDown = figure("highest 250 ms ÷ rate, down", "", report.Lower, func(o *outcome) float64 { return o.down.all().windows(short).Max() / o.scene.rate })
	fair        = figure("Jain's index, run", "", report.Higher, func(o *outcome) float64 { return jain(shares(o.settledFlows())) })
	fairShort   = figure("Jain's index, 250 ms", "", report.Higher, func(o *outcome) float64 { return jainPer(o.settledFlows(), short) })
	tcpLoss     = figure("TCP's loss", "%", report.Lower, (*outcome).tcpLoss)
	bbrShare    = figure("BBR's share ÷ its fair share", "", report.Lower, (*outcome).bbrShare)
	marks       = figure("packets marked", "%", report.Higher, (*outcome).marks)
	sparseLoss  = figure("sparse stream's loss", "%", report.Lower, func(o *outcome) float64 { return 100 * o.sparse.LostShare() })
	sparseDelay = figure("sparse stream's delay, p99", "ms", report.Lower, func(o *outcome) float64 { return o.sparse.Millis.Quantile(0.99) })
	beyondNone  = judged{name: "ping beyond the load without queues, median", unit: "ms", better: report.Lower, least: 0.2, aim: 0.2, beyond: PathNone,
		of: func(o *outcome) float64 { return o.loaded.Millis.Quantile(0.5) }}
	beyondNoneTail = judged{name: "ping beyond the load without queues, p99", unit: "ms", better: report.Lower, least: 3, aim: 3, beyond: PathNone,
		of: func(o *outcome) float64 { return o.loaded.Millis.Quantile(0.99) }}
	pingMedian    = figure("ping beyond idle, median", "ms", report.Lower, func(o *outcome) float64 { return o.added(0.5) })
	pingTail      = figure("ping beyond idle, p99", "ms", report.Lower, func(o *outcome) float64 { return o.added(0.99) })
	oneWayTail    = figure("UDP one way, p99", "ms", report.Lower, func(o *outcome) float64 { return o.oneWay.Millis.Quantile(0.99) })
	perGigabit    = figure("interrupts per gigabit", "s", report.Lower, func(o *outcome) float64 { return o.interrupts / o.gigabits() })
	allPerGigabit = figure("CPU time per gigabit, hosts included", "s", report.Lower, func(o *outcome) float64 { return o.spent / o.gigabits() })
	later         = figure("of the rate, after 5 s", "", report.Higher, laterRate)
	rpmDown       = figure("round-trips per minute, download", "RPM", report.Higher, func(o *outcome) float64 { return o.rpm[0] })
	rpmUp         = figure("round-trips per minute, upload", "RPM", report.Higher, func(o *outcome) float64 { return o.rpm[1] })
)

// above returns by how many per cent the highest window is above the rate.
func above(s series, rate float64) float64 { return 100 * (s.windows(long).Max()/rate - 1) }

// below returns by how many per cent the lowest window is below the rate, after the start.
func below(o *outcome) float64 {
	s := o.up.all()
	return 100 * (1 - s.between(settled, bin*1<<30).windows(long).Min()/o.scene.rate)
}

func shares(flows []series) (all []float64) {
	for _, f := range flows {
		all = append(all, f.sum())
	}
	return all
}

// laterRate leaves out the start of the connections.
func laterRate(o *outcome) float64 {
	s := o.up.all().between(found, bin*1<<30)
	if len(s) == 0 {
		return math.NaN()
	}
	return s.rate() / o.scene.rate
}

// cores are how busy each core is.
func cores() (all []judged) {
	for core := range runtime.NumCPU() {
		all = append(all, figure(fmt.Sprintf("core %d busy", core), "%", report.Lower, func(o *outcome) float64 { return 100 * o.busy[core] }))
	}
	return all
}

// weightError is by how much the share of the first class misses what it should be, of that.
func weightError(want float64) judged {
	return figure("error of the shares", "%", report.Lower, func(o *outcome) float64 {
		var first, all float64
		for i, f := range o.scene.flows {
			v := o.settledFlows()[i].sum()
			all += v
			if f.class == "first" {
				first += v
			}
		}
		got := first / all
		return 100 * max(math.Abs(got-want)/want, math.Abs(want-got)/(1-want))
	}).floor(5, 2)
}

// Verdicts on a figure.
const (
	holdsAim   = "aim reached"
	holdsFloor = "holds"
	missed     = "missed"
)

// verdict compares a median with floor and aim; "–" if there are none.
func (j *judged) verdict(s stats.Sample) string {
	v := s.Median()
	switch {
	case math.IsNaN(j.least) || len(s) == 0:
		return "–"
	case !j.reaches(v, j.least):
		return missed
	case j.reaches(v, j.aim):
		return holdsAim
	}
	return holdsFloor
}

func (j *judged) reaches(v, limit float64) bool {
	if j.better == report.Higher {
		return v >= limit
	}
	return v <= limit
}

// limit writes a floor or an aim.
func (j *judged) limit(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	sign := "≤ "
	if j.better == report.Higher {
		sign = "≥ "
	}
	return sign + units.Digits(v, 3)
}

// sentence says what was missed.
func (j *judged) sentence(s *scene, runs stats.Sample) string {
	return fmt.Sprintf("%s, %s: %s is %s, and has to be %s.", s.of, s.name, j.name, withUnit(runs.Median(), j.unit), j.limit(j.least))
}

func withUnit(v float64, unit string) string {
	if unit == "" {
		return units.Digits(v, 3)
	}
	return units.Digits(v, 3) + " " + unit
}
