package ladder

import (
	"math"
	"testing"

	"weir/internal/stats"
)

// TestDrowned: runs are left out because of other work and not because of their own cost,
// so the mean of the rest is the mean of all.
func TestDrowned(t *testing.T) {
	calm := charge{before: 0.02, after: 0.04, interrupts: 1, took: 10, programs: 2, gigabits: 10}
	if calm.drowned() || math.Abs(calm.seconds()-2.7) > 1e-9 {
		t.Errorf("%v s, drowned %v; want 2.7 s of a calm machine", calm.seconds(), calm.drowned())
	}
	for name, spoil := range map[string]func(*charge){
		"busy before":       func(c *charge) { c.before = 0.2 },
		"busy after":        func(c *charge) { c.after = 0.2 },
		"less than nothing": func(c *charge) { c.programs, c.interrupts = 0, 0.1 },
	} {
		c := calm
		if spoil(&c); !c.drowned() {
			t.Errorf("%s: counted with %v s", name, c.seconds())
		}
	}
	var all, kept stats.Sample
	for i := range 20 {
		c := calm
		c.interrupts = 0.5 + float64(i%5)/4 // the cost of a run varies ...
		if i/5 == 3 {
			c.before = 0.3 // ... and a quarter of the runs meet other work, which adds to both
			c.after, c.interrupts = 0.3, c.interrupts+2.7
		}
		all = append(all, c.seconds())
		if !c.drowned() {
			kept = append(kept, c.seconds())
		}
	}
	if len(kept) != 15 || math.Abs(kept.Mean()-all.Mean()) > 1e-9 {
		t.Errorf("%d of 20 are left with a mean of %v, all have %v", len(kept), kept.Mean(), all.Mean())
	}
}
