package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"weir/internal/stats"
)

// Parameters of draft-ietf-ippm-responsiveness (revision 06) with its names for them.
// docs/measuring.md lists the differences and their reasons.
const (
	averageDistance   = 4    // MAD: intervals in a moving average
	tolerance         = 0.05 // SDT: deviation of stable averages, as a share
	trimmed           = 0.95 // TMP: share of the probes that a trimmed mean keeps
	probesPerSecond   = 100  // MPS: of both kinds together
	probeShare        = 0.05 // PTC: share of the goodput that probes may use
	probeBytes        = 3000 // bytes that the draft counts for one: 5000 if foreign, 1000 if not
	initialLoad       = 1    // INP: connections at the start
	additionalLoad    = 1    // INC: connections added by each interval
	mostLoad          = 16   // MNP: maximum of connections
	defaultInterval   = time.Second
	defaultMost       = 20 * time.Second
	millisPerMinute   = 60_000
	probeShareForeign = 2 // every second probe is foreign
)

// Responsiveness measures round-trips per minute under working conditions, by
// draft-ietf-ippm-responsiveness. It adds HTTP/2 connections that move data until more of
// them gain nothing. Meanwhile it times short requests, on connections of their own
// ("foreign") and on loaded ones ("self"). It includes the server. Both ends run in this
// process.
type Responsiveness struct {
	Client, Server Place
	Source         netip.Addr     // the zero Addr: the route chooses
	Address        netip.AddrPort // the server's address
	Up             bool           // the client sends
	Interval       time.Duration  // length of an interval (ID); 0: the draft's 1 s
	Most           time.Duration  // time limit, stable or not; 0: 20 s
}

// RPM is the result of a [Responsiveness].
type RPM struct {
	Value   float64 // round-trips per minute: the mean of the next two
	Foreign float64 // on new connections
	Loaded  float64 // on the connections that carry the load
	// Trimmed means in milliseconds: opening a TCP connection, a TLS handshake, a
	// request on the new connection, and a request on a loaded one.
	TCP, TLS, HTTP, HTTPLoaded float64
	Goodput                    float64 // bits per second at the end
	Connections                int     // loaded connections at the end
	Probes                     int     // probes in the means
	// Stable says that goodput and responsiveness stopped changing before the time
	// limit.
	Stable bool
}

// probeTimes are the times of one probe in milliseconds. Foreign probes set all fields
// except loaded.
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	load := &load{test: r, trust: server.trust, fail: cancel}
	defer load.close()
	if err := load.add(ctx, initialLoad); err != nil {
		return nil, err
	}
	prober := startProber(ctx, load)
	found, err := r.watch(ctx, load, prober)
	err = cmp.Or(context.Cause(ctx), err)
	cancel(nil)
	<-prober.done
	return found, err
}

// watch checks goodput and responsiveness in each interval and adds load. At first this
// fills the line, until goodput is stable. Then it shows how long packets wait. It ends
// when responsiveness is stable, too.
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
			return nil, context.Cause(ctx)
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

// ErrUnanswered is returned (wrapped) if no probe was answered while there was load.
var ErrUnanswered = errors.New("no probe was answered")

// check rejects a result without enough data.
func (r *RPM) check() error {
	if r.Foreign == 0 || r.Loaded == 0 {
		return fmt.Errorf("%w under %d loaded connections", ErrUnanswered, r.Connections)
	}
	return nil
}

// probeRate returns how many probes per second a line has room for.
func probeRate(goodput float64) float64 {
	return min(probesPerSecond, max(probeShare*goodput/8/probeBytes, 1))
}

// movingAverage averages the last intervals, or fewer at the start.
type movingAverage struct{ values, averages stats.Sample }

func (m *movingAverage) add(v float64) {
	m.values = append(m.values, v)
	m.averages = append(m.averages, m.values[max(0, len(m.values)-averageDistance):].Mean())
}

func (m *movingAverage) now() float64 { return m.averages[len(m.averages)-1] }

// steady reports whether the standard deviation of the last values is within the
// tolerance of the last one.
func steady(values stats.Sample) bool {
	if len(values) < averageDistance {
		return false
	}
	last := values[len(values)-averageDistance:]
	return math.Sqrt(last.Variance()) < tolerance*last[averageDistance-1]
}

// calculate is the draft's final calculation.
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

// trimmedMean returns the mean without the largest values, or 0 if there are none.
func trimmedMean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	keep := max(int(float64(len(sorted))*trimmed), 1)
	return stats.Sample(sorted[:keep]).Mean()
}
