package ladder

import (
	"context"
	"fmt"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/probe"
	"weir/internal/stats"
)

// congestion is the congestion control of all TCP here, whatever this machine is set to.
// Nearly all Linux machines use it.
const congestion = "cubic"

// point is a number of connections at a spot.
type point struct {
	spot        spot
	connections int
}

// figures are the results.
type figures struct {
	rates   map[point]stats.Sample // Gbit/s of goodput
	again   map[point]stats.Sample // the same for the control
	hosts   map[point]stats.Sample // share of a core that the busier iperf3 took, if it uses only one
	pairs   map[spot]*pairFigures
	cpu     map[spot]stats.Sample // seconds of the cores per gigabit
	short   map[spot]float64      // Gbit/s of runs that missed the fixed rate
	drowned map[spot]int          // runs left out of cpu because of other work on the machine
	cut     map[spot]int          // runs left out of the delays: too few packets were sent under load
	idle    map[spot][]*probe.Delays
	loaded  map[spot][]*probe.Delays
	oneWay  map[spot][]*probe.Delays
	respond map[direction][]*probe.RPM
	silent  map[spot]int // runs left out of respond: no probe was answered under load
}

// pairFigures are Gbit/s of one pair alone, and of two at the same time.
type pairFigures struct{ alone, first, second stats.Sample }

// direction is one direction of responsiveness at a spot.
type direction struct {
	spot spot
	up   bool
}

func newFigures() figures {
	return figures{map[point]stats.Sample{}, map[point]stats.Sample{}, map[point]stats.Sample{}, map[spot]*pairFigures{},
		map[spot]stats.Sample{}, map[spot]float64{}, map[spot]int{}, map[spot]int{}, map[spot][]*probe.Delays{}, map[spot][]*probe.Delays{},
		map[spot][]*probe.Delays{}, map[direction][]*probe.RPM{}, map[spot]int{}}
}

func (l *ladder) line(s spot, pair int) line {
	return newLine(l.testbed.Lab, pairs[pair], s.rung.route)
}

func (l *ladder) load(s spot, pair, connections int) iperf.Load {
	return iperf.Load{Pair: l.line(s, pair).pair(), Streams: connections, Congestion: congestion,
		Time: time.Duration(l.options.Seconds) * time.Second}
}

// throughput measures a number of connections of one pair.
func (l *ladder) throughput(ctx context.Context, s spot, connections int, control bool) error {
	// The control is watched like its counterpart, so that both cost the same, but
	// not shown.
	part := PartTCP
	if control {
		part = "control"
	}
	found, err := l.carry(ctx, scene{s, part, connections}, l.atServer(s), l.load(s, 0, connections))
	if err != nil {
		return err
	}
	p, r := point{s, connections}, found[0]
	if control {
		l.figures.again[p] = append(l.figures.again[p], r.Rate/1e9)
		return nil
	}
	l.figures.rates[p] = append(l.figures.rates[p], r.Rate/1e9)
	if connections == 1 && !l.tool.Version.Threads() {
		l.figures.hosts[p] = append(l.figures.hosts[p], max(r.HostCPU, r.RemoteCPU)/100)
	}
	return nil
}

// bothPairs measures the first pair alone, and then both pairs, which begin at the same
// moment.
func (l *ladder) bothPairs(ctx context.Context, s spot) error {
	f := l.figures.pairs[s]
	if f == nil {
		f = &pairFigures{}
		l.figures.pairs[s] = f
	}
	hosts := []onlooker{{l.line(s, 0).server, "first pair"}, {l.line(s, 1).server, "second pair"}}
	alone, err := l.carry(ctx, scene{s, "one pair", 1}, hosts, l.load(s, 0, 1))
	if err != nil {
		return fmt.Errorf("one pair: %w", err)
	}
	both, err := l.carry(ctx, scene{s, PartPairs, 0}, hosts, l.load(s, 0, 1), l.load(s, 1, 1))
	if err != nil {
		return fmt.Errorf("two pairs: %w", err)
	}
	f.alone = append(f.alone, alone[0].Rate/1e9)
	f.first, f.second = append(f.first, both[0].Rate/1e9), append(f.second, both[1].Rate/1e9)
	return nil
}
