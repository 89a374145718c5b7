package traffic

import (
	"weir/internal/stats"
)

// stepBits is as in bpf/measure.bpf.c: times are sorted into 32 steps for each power of
// two.
const (
	stepBits = 5
	steps    = 1 << stepBits
)

// Latency is how long the frames of one run were under way, as a distribution in steps of
// 3 %.
type Latency struct {
	Frames      uint64
	Mean        float64 // ns
	Least, Most float64 // ns
	counts      []uint64
}

// Quantile returns the time, in ns, that a share q (0 to 1) of the frames did not exceed.
// It is the upper end of the step, limited to the longest time. It is 0 if no frame
// arrived.
func (l *Latency) Quantile(q float64) float64 {
	want, sum := q*float64(l.Frames), uint64(0)
	for step, n := range l.counts {
		sum += n
		if n > 0 && float64(sum) >= want {
			return min(stepEnd(step), l.Most)
		}
	}
	return l.Most
}

// CDF returns the whole distribution, in ns, with a point for each step that has frames.
func (l *Latency) CDF() []stats.Point {
	var points []stats.Point
	sum := uint64(0)
	for step, n := range l.counts {
		if n > 0 {
			sum += n
			points = append(points, stats.Point{Value: min(stepEnd(step), l.Most), Share: float64(sum) / float64(l.Frames)})
		}
	}
	return points
}

// stepEnd returns the longest time, in ns, that is counted in a step.
func stepEnd(step int) float64 {
	if step < steps {
		return float64(step)
	}
	shift := step/steps - 1
	return float64((uint64(steps+step%steps)+1)<<shift - 1)
}

// latencyOf merges the counts of all cores.
func latencyOf(cores []measureSeen) (l Latency, illegal uint64) {
	var sum uint64
	for i := range cores {
		c := &cores[i]
		illegal += c.Illegal
		if c.Frames == 0 {
			continue
		}
		if l.Frames == 0 || float64(c.MinNs) < l.Least {
			l.Least = float64(c.MinNs)
		}
		l.Frames += c.Frames
		sum += c.SumNs
		l.Most = max(l.Most, float64(c.MaxNs))
		if l.counts == nil {
			l.counts = make([]uint64, len(c.Times))
		}
		for step, n := range c.Times {
			l.counts[step] += n
		}
	}
	if l.Frames > 0 {
		l.Mean = float64(sum) / float64(l.Frames)
	}
	return l, illegal
}
