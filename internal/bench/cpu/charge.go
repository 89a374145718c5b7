package cpu

import (
	"context"
	"time"
)

const (
	// Rest is how long interrupts are measured without traffic, before a run and after
	// it.
	Rest = 400 * time.Millisecond
	// MostQuiet is the largest load of interrupts without traffic, as a share of one
	// core, that may be subtracted from a run. If other work causes more, nobody
	// knows how much of it fell into the run.
	MostQuiet = 0.1
)

// Charge is the CPU time of a run: that of its programs, and that of interrupts (the wires
// and the firewall) beyond their load without traffic just before and just after. Other
// programs on the machine do not count.
type Charge struct {
	Before, After float64 // cores busy with interrupts without traffic
	Interrupts    float64 // core seconds of interrupts during the run
	Took          float64 // seconds that the run lasted
	Programs      float64 // core seconds of the run's programs
	Gigabits      float64 // gigabits that arrived
}

// Drowned reports whether other work hides the cost of the run. The cost of the run
// itself must not decide: leaving out only the cheap runs would make the rest look too
// expensive. A negative cost is different: it is known to be wrong.
func (c Charge) Drowned() bool {
	return max(c.Before, c.After) > MostQuiet || c.seconds() <= 0
}

// PerGigabit returns core seconds for a gigabit, without the interrupts that happen anyway.
func (c Charge) PerGigabit() float64 { return c.seconds() / c.Gigabits }

func (c Charge) seconds() float64 {
	return c.Interrupts - (c.Before+c.After)/2*c.Took + c.Programs
}

// Measure charges a run. It returns the core seconds of its programs and the gigabits that
// arrived.
func Measure(ctx context.Context, run func() (programs, gigabits float64, err error)) (c Charge, err error) {
	if c.Before, err = quiet(ctx); err != nil {
		return c, err
	}
	c.Interrupts, c.Took, err = interrupts(func() (err error) {
		c.Programs, c.Gigabits, err = run()
		return err
	})
	if err != nil {
		return c, err
	}
	c.After, err = quiet(ctx)
	return c, err
}

// quiet returns how many cores interrupts take without traffic.
func quiet(ctx context.Context) (cores float64, err error) {
	used, took, err := interrupts(func() error { time.Sleep(Rest); return ctx.Err() })
	return used / took, err
}

// interrupts returns the core seconds that interrupts took while f ran, and how long f
// ran.
func interrupts(f func() error) (used, took float64, err error) {
	before, err := InterruptTime()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := f(); err != nil {
		return 0, 0, err
	}
	took = time.Since(begin).Seconds()
	after, err := InterruptTime()
	return after - before, took, err
}
