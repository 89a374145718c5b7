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
func (b *bench) fresh(ctx context.Context, path, protocol string, n int, use func(*tester.Tester) error) (err error) {
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

// handling does something to n connections of a path at a rate. It returns to how many.
type handling func(ctx context.Context, b *bench, t *tester.Tester, rate float64, n int, f *finding) (done int, err error)

// establish opens connections. It counts those that work.
func establish(ctx context.Context, b *bench, t *tester.Tester, rate float64, n int, f *finding) (int, error) {
	return b.connections("connections", "valid", rate, n, func() (int, error) {
		e, err := t.Establish(ctx, rate)
		f.foreign = max(f.foreign, e.Foreign)
		return e.Valid, err
	})
}

// tearDown opens connections and ends them. It counts the ends that arrive.
func tearDown(ctx context.Context, b *bench, t *tester.Tester, rate float64, n int, _ *finding) (int, error) {
	if err := t.Open(ctx); err != nil {
		return 0, err
	}
	return b.connections("ends of connections", "arrived", rate, n, func() (int, error) { return t.TearDown(ctx, rate) })
}

// measureConnectionRate searches for the highest rate at which an empty path lets every
// connection be handled. nothing says what happens at rates that are too high.
func measureConnectionRate(protocol, name, nothing string, handle handling) measurement {
	return func(ctx context.Context, b *bench, path string, _ int) (f finding, err error) {
		line, err := b.stateLine(ctx, path)
		if err != nil {
			return f, err
		}
		n := rateConnections(b.o)
		trial := func(rate float64) (loss float64, err error) {
			err = b.fresh(ctx, path, protocol, n, func(t *tester.Tester) error {
				done, err := handle(ctx, b, t, rate, n, &f)
				loss = 1 - float64(done)/float64(n)
				return err
			})
			return loss, err
		}
		found, err := SearchFrom(b.start(line), lowest, line, Goal{Precision: max(b.o.Precision, 0.05), Tries: min(b.o.Tries, 2)}, trial)
		b.learn(found)
		f.take(&found, found.nothing(nothing), found.figure(name, "per s", 1))
		return f, err
	}
}

// stateLine returns the highest rate at which the generator can send short frames.
func (b *bench) stateLine(ctx context.Context, path string) (rate float64, err error) {
	if rate := b.lines[lineKey{64, false}]; rate > 0 {
		return rate, nil
	}
	err = b.with(ctx, path, b.udp(64), func(r *tester.Tester) error {
		rate, err = b.line(ctx, r, 64, false)
		return err
	})
	return rate, err
}

// measureValidity opens all connections slowly and then sends a frame on each.
func measureValidity(ctx context.Context, b *bench, path string, _ int) (f finding, err error) {
	err = b.fresh(ctx, path, traffic.UDP, b.o.Connections, func(r *tester.Tester) error {
		valid, err := establish(ctx, b, r, unhurried, b.o.Connections, &f)
		f.figures = []figure{more("valid connections", "%", 100*float64(valid)/float64(b.o.Connections))}
		return err
	})
	return f, err
}

// measureStateThroughput forwards frames of that many connections.
func measureStateThroughput(ctx context.Context, b *bench, path string, connections int) (f finding, err error) {
	c := traffic.Case{Frame: 64, Flows: connections, Family: 4, Protocol: traffic.UDP}
	err = b.with(ctx, path, c, func(r *tester.Tester) error {
		found, err := b.throughput(ctx, r, c.Frame, tolerance, tester.Load{}, &f)
		f.take(&found, found.nothing("over 0.1 % of frames were lost"), found.figure("throughput with 0.1 % loss", "Mpps", 1/mega))
		return err
	})
	return f, err
}

// measureCapacity opens connections and sends one frame of data each way on each. Lost
// frames are sent again, because the test counts what the path holds.
func measureCapacity(protocol string) measurement {
	return func(ctx context.Context, b *bench, path string, _ int) (f finding, err error) {
		err = b.fresh(ctx, path, protocol, b.o.Connections, func(r *tester.Tester) error {
			n, err := b.connections("connections", "valid", unhurried, b.o.Connections, func() (int, error) { return r.OpenMost(ctx, unhurried) })
			f.figures = []figure{more("connections at once", "", float64(n))}
			if n == b.o.Connections {
				f.limit, f.figures[0].bound = limitAsked, true
			}
			return err
		})
		return f, err
	}
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
				About:      "Connections are opened at 100,000 per second and asked by: the share of those by which the answer came, to the right address and port.",
				unsuitable: onlyStates, seconds: onceSeconds, measure: measureValidity},
			{Name: "rate", Title: "Maximum connection establishment rate", Where: "RFC 9693, maximum connection establishment rate",
				About:      "The highest rate at which every one of up to 16,384 connections is made, by search; the path is built anew for each trial.",
				unsuitable: onlyStates, seconds: stateSeconds, measure: measureConnectionRate(traffic.UDP, "connections established", "connections were not established", establish)},
			{Name: "throughput", Title: "Throughput with many states", Where: "RFC 9693, test phase 2", unit: "connections",
				variants: func(o *Options) []int { return slices.Compact([]int{min(1000, o.Connections), o.Connections}) },
				About:    "The highest rate of 64-byte frames with at most 0.1 % loss, every frame another connection's than the one before.",
				seconds:  searchSeconds, measure: measureStateThroughput},
			{Name: "capacity", Title: "Connection tracking capacity", Where: "RFC 9693, connection tracking table capacity",
				About:      "How many of the requested connections work at once. weir's limit of states is raised to that number; conntrack's is the machine's.",
				unsuitable: onlyStates, seconds: onceSeconds, measure: measureCapacity(traffic.UDP)},
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
