package ladder

import (
	"context"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/iperf"
)

const (
	// reached is the share of a fixed rate that has to arrive for the run to count.
	reached = 0.95
	// rest is how long interrupts are measured without traffic, before the run and
	// after it.
	rest = 400 * time.Millisecond
	// mostQuiet is the largest load of interrupts without traffic, as a share of one
	// core, that may be subtracted from a run. If other work causes more, nobody
	// knows how much of it fell into the run.
	mostQuiet = 0.1
)

// charge is a run at a fixed rate.
type charge struct {
	before, after float64 // cores busy with interrupts without traffic
	interrupts    float64 // core seconds of interrupts during the run
	took          float64 // seconds that the run lasted
	programs      float64 // core seconds of both programs
	gigabits      float64 // gigabits that arrived
}

// drowned reports whether other work hides the cost of the run. The cost of the run
// itself must not decide: leaving out only the cheap runs would make the rest look too
// expensive. A negative cost is different: it is known to be wrong.
func (c charge) drowned() bool {
	return max(c.before, c.after) > mostQuiet || c.seconds() <= 0
}

// seconds returns core seconds without the interrupts that happen anyway.
func (c charge) seconds() float64 {
	return c.interrupts - (c.before+c.after)/2*c.took + c.programs
}

// fixedRate measures the CPU time of a gigabit: that of the two programs, and that of
// interrupts (the wires and the firewall) beyond their load without traffic just before
// and just after. Other programs on the machine do not count.
func (l *ladder) fixedRate(ctx context.Context, s spot) error {
	c, rate, err := l.charge(ctx, s)
	switch {
	case err != nil:
		return err
	case rate < reached*l.options.Rate:
		l.figures.short[s] = max(l.figures.short[s], rate/1e9)
	case c.drowned():
		l.figures.drowned[s]++
	default:
		l.figures.cpu[s] = append(l.figures.cpu[s], c.seconds()/c.gigabits)
	}
	return nil
}

func (l *ladder) charge(ctx context.Context, s spot) (c charge, rate float64, err error) {
	if c.before, err = quiet(ctx); err != nil {
		return c, 0, err
	}
	load := l.load(s, 0, 1)
	load.Rate = l.options.Rate
	var found []*iperf.Result
	c.interrupts, c.took, err = interrupts(func() (err error) {
		found, err = l.carry(ctx, scene{s, PartCPU, 0}, l.atServer(s), load)
		return err
	})
	if err != nil {
		return c, 0, err
	}
	r := found[0]
	c.programs, c.gigabits = (r.HostCPU+r.RemoteCPU)/100*r.Seconds, r.Received*8/1e9
	c.after, err = quiet(ctx)
	return c, r.Rate, err
}

// quiet returns how many cores interrupts take without traffic.
func quiet(ctx context.Context) (cores float64, err error) {
	used, took, err := interrupts(func() error { time.Sleep(rest); return ctx.Err() })
	return used / took, err
}

// interrupts returns the core seconds that interrupts took while f ran, and how long f
// ran.
func interrupts(f func() error) (used, took float64, err error) {
	before, err := cpu.InterruptTime()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := f(); err != nil {
		return 0, 0, err
	}
	took = time.Since(begin).Seconds()
	after, err := cpu.InterruptTime()
	return after - before, took, err
}
