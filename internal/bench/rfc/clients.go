package rfc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/bench/paths"
	"weir/internal/bench/tester"
	"weir/internal/bench/traffic"
	"weir/internal/bench/web"
	"weir/internal/lab"
	"weir/internal/stats"
)

const (
	small = 1 << 10
	large = 256 << 10
)

// plan returns what clients do in all tests of HTTP. Tests differ in what they fetch.
func (b *bench) plan(secure bool, perConnection int, sizes ...int) web.Plan {
	return web.Plan{TLS: secure, Clients: b.o.Clients, PerConnection: perConnection, Sizes: sizes,
		RampUp: b.o.Ramp, Sustain: b.o.Sustain, RampDown: b.o.Ramp}
}

// invalidOr discards the figures of a run that RFC 9411 calls invalid.
func invalidOr(r *web.Result, f finding) finding {
	if why := r.Invalid(); why != "" {
		return invalid("%s", why)
	}
	return f
}

// measureCPS: every connection fetches one small object.
func measureCPS(secure bool) measurement {
	return func(ctx context.Context, b *bench, path string, _ int) (finding, error) {
		r, err := b.clients(ctx, path, b.plan(secure, 1, small))
		if err != nil {
			return finding{}, err
		}
		f := finding{times: r.Connect, figures: []figure{
			more("connections", "per s", float64(r.Connections)/r.Seconds),
			less("set-up, least", "ms", r.Connect.Min()),
			less("set-up, mean", "ms", r.Connect.Mean()),
			less("set-up, most", "ms", r.Connect.Max()),
		}}
		if secure {
			f.times = r.Handshake
			f.figures = append(f.figures, less("TLS agreed, median", "ms", r.Handshake.Median()))
		}
		return invalidOr(&r, f), nil
	}
}

// measureTransfer: each connection fetches ten large objects.
func measureTransfer(secure bool) measurement {
	return func(ctx context.Context, b *bench, path string, size int) (finding, error) {
		r, err := b.clients(ctx, path, b.plan(secure, 10, size))
		if err != nil {
			return finding{}, err
		}
		return invalidOr(&r, finding{times: r.LastByte, figures: []figure{
			more("goodput", "Gbit/s", float64(r.Bytes)*8/r.Seconds/1e9),
			more("transactions", "per s", float64(r.Transactions)/r.Seconds),
		}}), nil
	}
}

// measureTransactions: lasting connections fetch as many small objects as they can.
func measureTransactions(ctx context.Context, b *bench, path string, _ int) (finding, error) {
	r, err := b.clients(ctx, path, b.plan(false, 1000, small))
	if err != nil {
		return finding{}, err
	}
	return invalidOr(&r, finding{times: r.LastByte, figures: []figure{
		more("transactions", "per s", float64(r.Transactions)/r.Seconds),
	}}), nil
}

// measureResponse: all paths get half of the load that the first path carried at most.
func measureResponse(secure bool, size int) measurement {
	return func(ctx context.Context, b *bench, path string, _ int) (finding, error) {
		rate, err := b.halfRate(ctx, secure, size)
		if err != nil {
			return finding{}, err
		}
		p := b.plan(secure, 1, size)
		p.Rate = rate
		r, err := b.clients(ctx, path, p)
		if err != nil {
			return finding{}, err
		}
		return invalidOr(&r, finding{times: r.LastByte, figures: []figure{
			less("TTLB, median", "ms", r.LastByte.Median()),
			less("TTLB, p99", "ms", r.LastByte.Quantile(0.99)),
			less("TTFB, median", "ms", r.FirstByte.Median()),
			less("TTFB, p99", "ms", r.FirstByte.Quantile(0.99)),
		}}), nil
	}
}

// halfRate returns half of the connection rate that bare routing carries.
func (b *bench) halfRate(ctx context.Context, secure bool, size int) (float64, error) {
	key := fmt.Sprint(secure, size)
	if rate := b.half[key]; rate > 0 {
		return rate, nil
	}
	r, err := b.clients(ctx, paths.Kernel, b.plan(secure, 1, size))
	if err != nil {
		return 0, err
	}
	if r.Connections == 0 {
		return 0, fmt.Errorf("learn how much load clients can make: no connection was made: %w", r.FirstError)
	}
	b.half[key] = float64(r.Connections) / r.Seconds / 2
	return b.half[key], nil
}

// measureHeld: connections stay open, and each fetches an object at the start and at the
// end.
func measureHeld(secure bool) measurement {
	return func(ctx context.Context, b *bench, path string, _ int) (finding, error) {
		p := b.plan(secure, 1, small)
		p.Hold, p.Connections = true, heldConnections(b.o)
		r, err := b.clients(ctx, path, p)
		if err != nil {
			return finding{}, err
		}
		f := finding{times: r.LastByte, figures: []figure{more("connections at once", "", float64(r.Held))}}
		if r.Held == p.Connections {
			f.limit, f.figures[0].bound = limitAsked, true
		}
		return f, nil
	}
}

// heldConnections is limited by the sockets that this program may have, two for each
// connection.
func heldConnections(o *Options) int { return min(o.Connections/4, 8000) }

// measureFlood sets up connections while SYNs of others arrive that nobody completes.
func measureFlood(ctx context.Context, b *bench, path string, rate int) (f finding, err error) {
	if b.server == nil {
		if _, err := b.halfRate(ctx, false, small); err != nil { // starts the server
			return f, err
		}
	}
	err = b.fresh(ctx, path, traffic.TCP, b.o.Flows, func(r *tester.Tester) error {
		p := b.plan(false, 1, small)
		whole := p.RampUp + p.Sustain + p.RampDown
		flood := make(chan error, 1)
		go func() {
			if rate == 0 {
				flood <- nil
				return
			}
			flood <- r.Flood(ctx, float64(rate), uint32(float64(rate)*(whole+100*time.Millisecond).Seconds()))
		}()
		result, err := b.run(ctx, path, p)
		if err = errors.Join(err, <-flood); err != nil {
			return err
		}
		f = finding{figures: []figure{
			more("connections", "per s", float64(result.Connections)/result.Seconds),
			less("refused or lost", "%", 100*float64(result.Broken)/float64(max(1, result.Broken+result.Connections))),
		}}
		return nil
	})
	return f, err
}

// measureFragments sends datagrams that need two fragments each.
func measureFragments(ctx context.Context, b *bench, path string, _ int) (f finding, err error) {
	err = b.standing(ctx, path, func() error {
		var r web.DatagramResult
		err := b.watch(lab.WAN, func() (err error) {
			r, err = web.Datagrams(ctx, b.lanHost(), b.wanHost(), web.DatagramPlan{
				Source: source(path), Target: firstServer, Size: 2800, Sustain: b.o.Sustain})
			return err
		})
		if err != nil {
			return err
		}
		f.figures = []figure{
			more("whole datagrams", "per s", float64(r.Arrived)/b.o.Sustain.Seconds()),
			less("lost", "%", 100*r.Loss()),
		}
		if r.Arrived == 0 {
			f = invalid("no datagram arrived")
		}
		return nil
	})
	return f, err
}

// objectSizes are spread as document sizes of web sites are, from 24 to 350 kilobytes.
func objectSizes() []int {
	return []int{24 << 10, 32 << 10, 48 << 10, 64 << 10, 96 << 10, 128 << 10, 180 << 10, 256 << 10, 350 << 10}
}

// measureObjects: nginx serves what a browser asks for.
func measureObjects(ctx context.Context, b *bench, path string, _ int) (finding, error) {
	rate, err := b.nginxRate(ctx)
	if err != nil {
		return finding{}, err
	}
	p := b.plan(false, 1, objectSizes()...)
	p.Rate, p.Target = rate, b.nginxAddress()
	r, err := b.clients(ctx, path, p)
	if err != nil {
		return finding{}, err
	}
	f := finding{times: r.Whole, figures: []figure{
		more("under 100 ms", "%", 100*r.Whole.AtMost(100)),
		less("median", "ms", r.Whole.Median()),
		less("p90", "ms", r.Whole.Quantile(0.9)),
		less("p99", "ms", r.Whole.Quantile(0.99)),
		more("objects", "per s", float64(r.Transactions)/r.Seconds),
	}}
	if r.Late > 0.05 {
		f.limit = "clients"
	}
	return invalidOr(&r, f), nil
}

// joined returns the durations of all runs.
func joined(runs []finding) (all stats.Sample) {
	for _, f := range runs {
		all = append(all, f.times...)
	}
	return all
}
