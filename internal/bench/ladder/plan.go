package ladder

import (
	"context"

	"weir/internal/bench/cpu"
	"weir/internal/units"
)

// plan lists the tasks of a round.
func (l *ladder) plan() {
	l.boxes = nil
	for _, offloads := range l.options.modes() {
		for _, r := range l.options.chosen() {
			s := spot{r, offloads}
			if l.options.has(PartTCP) {
				l.planTCP(s)
			}
			if r == l.options.control() {
				l.planControl(s)
			}
			if r.route == overLoopback {
				continue // the other parts need something between two hosts
			}
			l.planOthers(s)
		}
	}
}

func (l *ladder) planTCP(s spot) {
	for i, n := range l.options.Connections {
		if i > 0 && l.options.ManyAtTop && s.rung.step != "nat" {
			continue
		}
		l.add(s, connections(n), 1, func(ctx context.Context, s spot) error { return l.throughput(ctx, s, n, false) })
	}
}

// planControl measures the control's rung once more, or twice if TCP is not measured. A
// run of frames alone has the control of "weir bench forward".
func (l *ladder) planControl(s spot) {
	n := l.options.Connections[0]
	if len(l.options.Parts) == 1 && l.options.has(PartFrames) {
		return
	}
	if !l.options.has(PartTCP) {
		l.add(s, connections(n)+" for the control", 1, func(ctx context.Context, s spot) error { return l.throughput(ctx, s, n, false) })
	}
	l.addTo(s, true, connections(n)+" once more", 1, func(ctx context.Context, s spot) error { return l.throughput(ctx, s, n, true) })
}

func (l *ladder) planOthers(s spot) {
	if l.options.has(PartPairs) {
		l.add(s, "one pair and two", 2, l.bothPairs).pairs = true
	}
	if l.options.has(PartCPU) {
		l.add(s, "a fixed rate", 1, l.fixedRate).seconds += 2 * cpu.Rest.Seconds()
	}
	if l.options.has(PartLatency) {
		l.add(s, "round trips", 2, l.latency).seconds += 2 * margin.Seconds()
	}
	if l.options.has(PartRPM) && s.offloads == l.options.modes()[len(l.options.modes())-1] {
		l.add(s, "responsiveness", 2, l.responsiveness)
	}
}

func connections(n int) string { return units.Plural(n, "connection") }
