package ladder

import (
	"context"

	"weir/internal/bench/cpu"
	"weir/internal/bench/iperf"
)

// reached is the share of a fixed rate that has to arrive for the run to count.
const reached = 0.95

// fixedRate measures the CPU time of a gigabit.
func (l *ladder) fixedRate(ctx context.Context, s spot) error {
	load := l.load(s, 0, 1)
	load.Rate = l.options.Rate
	var r *iperf.Result
	c, err := cpu.Measure(ctx, func() (programs, gigabits float64, err error) {
		found, err := l.carry(ctx, scene{s, PartCPU, 0}, l.atServer(s), load)
		if err != nil {
			return 0, 0, err
		}
		r = found[0]
		return r.CPU(), r.Received * 8 / 1e9, nil
	})
	switch {
	case err != nil:
		return err
	case r.Rate < reached*l.options.Rate:
		l.figures.short[s] = max(l.figures.short[s], r.Rate/1e9)
	case c.Drowned():
		l.figures.drowned[s]++
	default:
		l.figures.cpu[s] = append(l.figures.cpu[s], c.PerGigabit())
	}
	return nil
}
