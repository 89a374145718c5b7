package cpu

import (
	"math"
	"testing"

	"weir/internal/stats"
)

// TestDrowned: runs are left out because of other work and not because of their own cost,
// so the mean of the rest is the mean of all.
func TestDrowned(t *testing.T) {
	calm := Charge{Before: 0.02, After: 0.04, Interrupts: 1, Took: 10, Programs: 2, Gigabits: 10}
	if calm.Drowned() || math.Abs(calm.seconds()-2.7) > 1e-9 {
		t.Errorf("%v s, drowned %v; want 2.7 s of a calm machine", calm.seconds(), calm.Drowned())
	}
	for name, spoil := range map[string]func(*Charge){
		"busy before":       func(c *Charge) { c.Before = 0.2 },
		"busy after":        func(c *Charge) { c.After = 0.2 },
		"less than nothing": func(c *Charge) { c.Programs, c.Interrupts = 0, 0.1 },
	} {
		c := calm
		if spoil(&c); !c.Drowned() {
			t.Errorf("%s: counted with %v s", name, c.seconds())
		}
	}
	var all, kept stats.Sample
	for i := range 20 {
		c := calm
		c.Interrupts = 0.5 + float64(i%5)/4 // the cost of a run varies ...
		if i/5 == 3 {
			c.Before = 0.3 // ... and a quarter of the runs meet other work, which adds to both
			c.After, c.Interrupts = 0.3, c.Interrupts+2.7
		}
		all = append(all, c.seconds())
		if !c.Drowned() {
			kept = append(kept, c.seconds())
		}
	}
	if len(kept) != 15 || math.Abs(kept.Mean()-all.Mean()) > 1e-9 {
		t.Errorf("%d of 20 are left with a mean of %v, all have %v", len(kept), kept.Mean(), all.Mean())
	}
}
