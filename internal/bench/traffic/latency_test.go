package traffic

import (
	"math/bits"
	"testing"
)

// TestLatencySteps: each time is in a step that ends at most 1/32 above it.
func TestLatencySteps(t *testing.T) {
	last := -1
	for ns := uint64(0); ns < 1<<38; ns = ns + 1 + ns/97 {
		p := stepOf(ns)
		if p < last {
			t.Fatalf("%d ns is at place %d, after a shorter time at %d", ns, p, last)
		}
		last = p
		if end := stepEnd(p); end < float64(ns) || end > float64(ns)*33/32+1 {
			t.Fatalf("%d ns is in a step that ends at %v ns", ns, end)
		}
	}
	if want := len(measureSeen{}.Times); last >= want {
		t.Errorf("place %d of %d", last, want)
	}
}

func TestLatencyQuantiles(t *testing.T) {
	cores := make([]measureSeen, 2)
	for i := range uint64(1000) {
		c := &cores[i%2]
		ns := 1000 * (i + 1)
		c.Frames++
		c.SumNs += ns
		c.MaxNs = ns
		if c.MinNs == 0 {
			c.MinNs = ns
		}
		c.Times[stepOf(ns)]++
	}
	cores[1].Illegal = 3
	l, illegal := latencyOf(cores)
	if l.Frames != 1000 || illegal != 3 || l.Mean != 500_500 || l.Least != 1000 || l.Most != 1_000_000 {
		t.Errorf("%d frames, %d illegal, mean %v, %v to %v", l.Frames, illegal, l.Mean, l.Least, l.Most)
	}
	for q, want := range map[float64]float64{0.5: 500_000, 0.99: 990_000, 1: 1_000_000} {
		if got := l.Quantile(q); got < want || got > want*33/32 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	cdf := l.CDF()
	if end := cdf[len(cdf)-1]; end.Share != 1 || end.Value != 1_000_000 {
		t.Errorf("the distribution ends at %v", end)
	}
	if none, _ := latencyOf(nil); none.Quantile(0.5) != 0 || none.CDF() != nil {
		t.Error("nothing measured has a distribution")
	}
}

// stepOf returns the step in which bpf/measure.bpf.c counts a time.
func stepOf(ns uint64) int {
	if ns < steps {
		return int(ns)
	}
	power := bits.Len64(ns) - 1
	return (power-stepBits+1)*steps + int(ns>>(power-stepBits)&(steps-1))
}
