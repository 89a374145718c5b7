package probe

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"weir/internal/stats"
)

// Parameters of draft-ietf-ippm-responsiveness (revision 06), with its names for
// them. docs/measuring.md says what is done otherwise, and why.
const (
	averageDistance   = 4    // MAD: intervals that an average moves over
	tolerance         = 0.05 // SDT: deviation of averages that are stable, as a share
	trimmed           = 0.95 // TMP: share of the probes that a trimmed mean keeps
	probesPerSecond   = 100  // MPS: of both kinds together
	probeShare        = 0.05 // PTC: of the goodput that probes may take
	probeBytes        = 3000 // that the draft counts for one: 5000 if foreign, 1000 if not
	initialLoad       = 1    // INP: connections at the beginning
	additionalLoad    = 1    // INC: connections that each interval adds
	mostLoad          = 16   // MNP: connections
	defaultInterval   = time.Second
	defaultMost       = 20 * time.Second
	millisPerMinute   = 60_000
	probeShareForeign = 2 // every second probe is a foreign one
)

// Responsiveness measures round-trips per minute under working conditions, as
// draft-ietf-ippm-responsiveness does: more and more HTTP/2 connections move
// data until that gains nothing, while short requests are timed, on connections
// of their own ("foreign") and on those that are loaded ("self"). The server is
// part of it. Both ends run in this process.
type Responsiveness struct {
	Client, Server Place
	Source         netip.Addr     // the zero Addr: whichever the route gives
	Address        netip.AddrPort // of the server
	Up             bool           // the client sends
	Interval       time.Duration  // between two looks (ID); 0: the draft's 1 s
	Most           time.Duration  // after which it ends, stable or not; 0: 20 s
}

// RPM is what a [Responsiveness] found.
type RPM struct {
	Value   float64 // round-trips per minute: the mean of the next two
	Foreign float64 // on connections of their own
	Loaded  float64 // on the connections that carry the load
	// Trimmed means in milliseconds: of opening a TCP connection, of a TLS
	// handshake, of a request on the new connection, and on a loaded one.
	TCP, TLS, HTTP, HTTPLoaded float64
	Goodput                    float64 // bits per second at the end
	Connections                int     // that carried load at the end
	Probes                     int     // that the means rest on
	// Stable: goodput and responsiveness stopped changing before the time ended.
	Stable bool
}

// probeTimes are the times of one probe in milliseconds; foreign ones have all
// but loaded.
type probeTimes struct {
	at                     time.Time
	foreign                bool
	tcp, tls, http, loaded float64
}

// Run runs the test.
func (r Responsiveness) Run(ctx context.Context) (*RPM, error) {
	if r.Interval == 0 {
		r.Interval = defaultInterval
	}
	if r.Most == 0 {
		r.Most = defaultMost
	}
	rpm, err := r.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure responsiveness: %w", err)
	}
	return rpm, nil
}

func (r *Responsiveness) run(ctx context.Context) (*RPM, error) {
	server, err := newServer(r.Server, r.Address)
	if err != nil {
		return nil, err
	}
	defer server.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	load := &load{test: r, trust: server.trust, failed: make(chan error, 1)}
	defer load.close()
	if err := load.add(ctx, initialLoad); err != nil {
		return nil, err
	}
	prober := startProber(ctx, load)
	found, err := r.watch(ctx, load, prober)
	cancel()
	if failed := prober.wait(); err == nil {
		err = failed
	}
	return found, err
}

// watch looks at goodput and responsiveness in each interval and adds load: until
// goodput is stable to fill the line, then to see how much the line lets wait. It
// ends when responsiveness is stable, too.
func (r *Responsiveness) watch(ctx context.Context, l *load, p *prober) (*RPM, error) {
	var goodput movingAverage
	var responsive stats.Sample
	saturated := false
	before, begin := l.bytes(), time.Now()
	ticks := time.NewTicker(r.Interval)
	defer ticks.Stop()
	last := begin
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-p.failed:
			return nil, err
		case err := <-l.failed:
			return nil, err
		case <-ticks.C:
		}
		now, bytes := time.Now(), l.bytes()
		goodput.add(float64(bytes-before) * 8 / now.Sub(last).Seconds())
		before, last = bytes, now
		found := calculate(p.since(now.Add(-averageDistance * r.Interval)))
		found.Goodput, found.Connections = goodput.now(), l.connections()
		p.setRate(probeRate(found.Goodput))
		if saturated = saturated || steady(goodput.averages); saturated && found.Probes > 0 {
			responsive = append(responsive, found.Value)
		}
		found.Stable = steady(responsive)
		if found.Stable || now.Sub(begin) >= r.Most {
			return found, found.check()
		}
		if l.connections() < mostLoad {
			if err := l.add(ctx, additionalLoad); err != nil {
				return nil, err
			}
		}
	}
}

// check refuses a result that rests on nothing.
func (r *RPM) check() error {
	if r.Foreign == 0 || r.Loaded == 0 {
		return fmt.Errorf("no probe was answered under %d loaded connections", r.Connections)
	}
	return nil
}

// probeRate is how many probes a second a line has room for.
func probeRate(goodput float64) float64 {
	return min(probesPerSecond, max(probeShare*goodput/8/probeBytes, 1))
}

// movingAverage is that of the last intervals, of those there are at first.
type movingAverage struct{ values, averages stats.Sample }

func (m *movingAverage) add(v float64) {
	m.values = append(m.values, v)
	m.averages = append(m.averages, m.values[max(0, len(m.values)-averageDistance):].Mean())
}

func (m *movingAverage) now() float64 { return m.averages[len(m.averages)-1] }

// steady: the standard deviation of the last values is within the tolerance of
// the last one.
func steady(values stats.Sample) bool {
	if len(values) < averageDistance {
		return false
	}
	last := values[len(values)-averageDistance:]
	return math.Sqrt(last.Variance()) < tolerance*last[averageDistance-1]
}

// calculate is the draft's final calculation on some probes.
func calculate(probes []probeTimes) *RPM {
	var tcp, tls, http, loaded []float64
	for _, p := range probes {
		if p.foreign {
			tcp, tls, http = append(tcp, p.tcp), append(tls, p.tls), append(http, p.http)
			continue
		}
		loaded = append(loaded, p.loaded)
	}
	r := &RPM{TCP: trimmedMean(tcp), TLS: trimmedMean(tls), HTTP: trimmedMean(http), HTTPLoaded: trimmedMean(loaded), Probes: len(probes)}
	if mean := (r.TCP + r.TLS + r.HTTP) / 3; mean > 0 {
		r.Foreign = millisPerMinute / mean
	}
	if r.HTTPLoaded > 0 {
		r.Loaded = millisPerMinute / r.HTTPLoaded
	}
	r.Value = (r.Foreign + r.Loaded) / 2
	return r
}

// trimmedMean leaves the largest values out; 0 if there are none.
func trimmedMean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	keep := max(int(float64(len(sorted))*trimmed), 1)
	return stats.Sample(sorted[:keep]).Mean()
}
