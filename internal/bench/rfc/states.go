package rfc

import (
	"context"
	"errors"
	"slices"

	"weir/internal/bench/tester"
	"weir/internal/bench/traffic"
)

// unhurried is a rate in frames per second that every path keeps up with.
const unhurried = 100_000

// fresh builds a path without connections, for n of them, uses it and takes it down.
func (b *bed) fresh(ctx context.Context, path, protocol string, n int, use func(*tester.Tester) error) (err error) {
	c := traffic.Case{Frame: 64, Flows: n, Family: 4, Protocol: protocol}
	r, err := b.startFor(ctx, path, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	return use(r)
}

// rateConnections is the number of connections in one trial of a rate. It is small
// because each trial builds the path again.
func rateConnections(o *Options) int { return min(o.Connections, 16_384) }

// establishRate searches for the highest rate at which an empty path establishes every
// connection.
func (b *bed) establishRate(ctx context.Context, path, protocol string, f *finding) (Found, error) {
	n := rateConnections(b.o)
	trial := func(rate float64) (loss float64, err error) {
		err = b.fresh(ctx, path, protocol, n, func(r *tester.Tester) error {
			e, err := b.establish(ctx, r, rate, n)
			f.foreign = max(f.foreign, e.Foreign)
			loss = 1 - float64(e.Valid)/float64(n)
			return err
		})
		return loss, err
	}
	line, err := b.stateLine(ctx, path)
	if err != nil {
		return Found{}, err
	}
	found, err := SearchFrom(b.start(line), lowest, line, Goal{Precision: max(b.o.Precision, 0.05), Tries: min(b.o.Tries, 2)}, trial)
	b.learn(found)
	f.limit = found.limit()
	return found, err
}

// stateLine returns the highest rate at which the generator can send short frames.
func (b *bed) stateLine(ctx context.Context, path string) (rate float64, err error) {
	if rate := b.lines[lineKey{64, false}]; rate > 0 {
		return rate, nil
	}
	err = b.with(ctx, path, b.udp(64), func(r *tester.Tester) error {
		rate, err = b.line(ctx, r, 64, false)
		return err
	})
	return rate, err
}

func measureStateRate(ctx context.Context, b *bed, path string, _ int) (f finding, err error) {
	found, err := b.establishRate(ctx, path, traffic.UDP, &f)
	if found.Rate == 0 && err == nil {
		return invalid("%s", found.nothing("connections were not established")), nil
	}
	f.figures = []figure{found.figure("connections established", "per s", 1)}
	return f, err
}

// measureValidity opens all connections slowly and then sends a frame on each.
func measureValidity(ctx context.Context, b *bed, path string, _ int) (f finding, err error) {
	err = b.fresh(ctx, path, traffic.UDP, b.o.Connections, func(r *tester.Tester) error {
		e, err := b.establish(ctx, r, unhurried, b.o.Connections)
		f.foreign = e.Foreign
		f.figures = []figure{more("valid connections", "%", 100*float64(e.Valid)/float64(b.o.Connections))}
		return err
	})
	return f, err
}

// measureStateThroughput forwards frames of that many connections.
func measureStateThroughput(ctx context.Context, b *bed, path string, connections int) (f finding, err error) {
	c := traffic.Case{Frame: 64, Flows: connections, Family: 4, Protocol: traffic.UDP}
	err = b.with(ctx, path, c, func(r *tester.Tester) error {
		found, err := b.throughput(ctx, r, c.Frame, tolerance, tester.Load{}, &f)
		f.figures = []figure{found.figure("throughput with 0.1 % loss", "Mpps", 1/mega)}
		f.limit = found.limit()
		if found.Rate == 0 {
			f.figures, f.invalid = nil, found.nothing("over 0.1 % of frames were lost")
		}
		return err
	})
	return f, err
}

// measureCapacity opens connections and sends one frame of data each way on each. Lost
// frames are sent again, because the test counts what the path holds.
func measureCapacity(protocol string) func(context.Context, *bed, string, int) (finding, error) {
	return func(ctx context.Context, b *bed, path string, _ int) (f finding, err error) {
		err = b.fresh(ctx, path, protocol, b.o.Connections, func(r *tester.Tester) error {
			n, err := b.openMost(ctx, r, unhurried, b.o.Connections)
			f.figures = []figure{more("connections at once", "", float64(n))}
			if n == b.o.Connections {
				f.limit, f.figures[0].bound = limitAsked, true
			}
			return err
		})
		return f, err
	}
}

// measureTearDown searches for the highest rate at which all connections can be ended.
func measureTearDown(ctx context.Context, b *bed, path string, _ int) (f finding, err error) {
	n := rateConnections(b.o)
	line, err := b.stateLine(ctx, path)
	if err != nil {
		return f, err
	}
	trial := func(rate float64) (loss float64, err error) {
		err = b.fresh(ctx, path, traffic.TCP, n, func(r *tester.Tester) error {
			if err := r.Open(ctx); err != nil {
				return err
			}
			ended, err := b.tearDown(ctx, r, rate, n)
			loss = 1 - float64(ended)/float64(n)
			return err
		})
		return loss, err
	}
	found, err := SearchFrom(b.start(line), lowest, line, Goal{Precision: max(b.o.Precision, 0.05), Tries: min(b.o.Tries, 2)}, trial)
	b.learn(found)
	f.limit = found.limit()
	f.figures = []figure{found.figure("connections ended", "per s", 1)}
	if found.Rate == 0 && err == nil {
		return invalid("%s", found.nothing("ends of connections were lost")), nil
	}
	return f, err
}

// stateSeconds estimates a search that builds the path for each trial.
func stateSeconds(o *Options) float64 {
	const trials, build = 9, 2.4 // weir takes 3 s and more to start, nftables no time
	return trials * (build + float64(rateConnections(o))*2e-5)
}

func onceSeconds(o *Options) float64 { return 2 + float64(o.Connections)*2.5e-5 }

func rfc9693() Standard {
	return Standard{
		Name: "rfc9693", Connections: true, Title: "RFC 9693: states with pseudorandom ports",
		About: "how fast states are made, whether each of them works, how fast frames of many of them are forwarded, how many fit",
		Tests: []Test{
			{Name: "validity", Title: "Validity of connections", Where: "RFC 9693, validation of connection establishment",
				About: "Connections are opened at 100,000 per second and asked by: the share of those by which the answer came, to the right address and port.",
				unfit: onlyStates, seconds: onceSeconds, measure: measureValidity},
			{Name: "rate", Title: "Maximum connection establishment rate", Where: "RFC 9693, maximum connection establishment rate",
				About: "The highest rate at which every one of up to 16,384 connections is made, by search; the path is built anew for each trial.",
				unfit: onlyStates, seconds: stateSeconds, measure: measureStateRate},
			{Name: "throughput", Title: "Throughput with many states", Where: "RFC 9693, test phase 2", unit: "connections",
				variants: func(o *Options) []int { return slices.Compact([]int{min(1000, o.Connections), o.Connections}) },
				About:    "The highest rate of 64-byte frames with at most 0.1 % loss, every frame another connection's than the one before.",
				seconds:  searchSeconds, measure: measureStateThroughput},
			{Name: "capacity", Title: "Connection tracking capacity", Where: "RFC 9693, connection tracking table capacity",
				About: "How many of the requested connections work at once. weir's limit of states is raised to that number; conntrack's is the machine's.",
				unfit: onlyStates, seconds: onceSeconds, measure: measureCapacity(traffic.UDP)},
		},
		Differs: []string{
			"Addresses and ports of every connection come from a permutation of 24 bits: no two are alike, and none follows from the one before (RFC 9693 asks for that of ports; here hosts vary as well).",
			"The state table is empty at the beginning of each trial because the path is built anew.",
			"Capacity is counted, not searched. The requested number of connections is opened, and lost frames are sent again as long as that helps. The connections that work are the capacity.",
			"Tear-down is left out: RFC 9693 deletes all states at once by a command, which weir does not have; rfc3511 --test teardown ends connections by the network.",
			"Frames of the throughput test go one way.",
		},
	}
}
