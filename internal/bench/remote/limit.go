package remote

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"weir/internal/bench/option"
)

// Limits are what a server allows. It reduces requests to them and tells the client.
type Limits struct {
	Rate        Rate          // in each direction; 0: no limit
	Run         time.Duration // one run, with its uncounted beginning
	Session     time.Duration // everything that one client does
	Data        uint64        // bytes of one client, both directions together
	Connections int           // concurrent TCP connections in each direction
}

// DefaultLimits suit links of 10 Gbit/s: a whole session of the client's default cases
// fits into them.
func DefaultLimits() Limits {
	return Limits{Rate: 10e9, Run: 30 * time.Second, Session: 15 * time.Minute, Data: 1e12, Connections: 64}
}

// Limits of any run, whatever the server allows, so that no number can overflow.
const (
	maxRun         = time.Hour
	maxConnections = 128 // iperf3 -P
	minPayload     = 18  // fits a frame of 64 bytes; iperf3's own header has 16
	maxPayload     = 9000
)

// Check returns the first error in the limits.
func (l Limits) Check() error {
	return cmp.Or(
		option.Within("rate", 0, option.MaxRate, l.Rate),
		option.Within("time of a run", time.Second, maxRun, l.Run),
		option.Within("time of a session", time.Second, 24*time.Hour, l.Session),
		option.Within("connections", 1, maxConnections, l.Connections),
		option.Within("bytes of data", 1, math.MaxInt64, l.Data),
	)
}

var errBudget = errors.New("the server's bound on data is reached (its --max-data)")

// Run is one run: the client's request, or the server's grant.
type Run struct {
	Case
	Payload int           // bytes of a UDP datagram; 0: TCP
	Omit    time.Duration // beginning that does not count
	Count   time.Duration
}

// check rejects an impossible run, from either side.
func (r *Run) check() error {
	err := cmp.Or(
		option.Words("protocol", []string{r.Protocol}, TCP, UDP),
		option.Words("direction", []string{r.Direction}, Up, Down, Both),
		option.Within("connections", 1, maxConnections, r.Connections),
		option.Within("rate", 0, option.MaxRate, r.Rate),
		option.Within("time that does not count", 0, maxRun, r.Omit),
		option.Within("time", time.Second, maxRun, r.Count),
	)
	switch {
	case err != nil || r.Protocol == TCP:
		return err
	case r.Rate < 1 || r.Connections != 1:
		return errors.New("UDP has one flow and a rate")
	case r.Payload < minPayload || r.Payload > maxPayload || r.Frame != r.Payload+overhead4 && r.Frame != r.Payload+overhead6:
		return fmt.Errorf("datagrams of %d bytes in frames of %d", r.Payload, r.Frame)
	}
	return nil
}

// time returns how long a run lasts.
func (r *Run) time() time.Duration { return r.Omit + r.Count }

// total returns the rate of all directions together.
func (r *Run) total() float64 {
	if r.Direction == Both {
		return 2 * float64(r.Rate)
	}
	return float64(r.Rate)
}

// grant reduces a request to the limits and to the client's remaining data, and returns
// what it reduced. Times are whole seconds, as in iperf3.
func (l Limits) grant(asked Run, left int64) (granted Run, cut []string, err error) {
	granted = asked
	if granted.Connections = min(asked.Connections, l.Connections); granted.Connections < asked.Connections {
		cut = append(cut, fmt.Sprintf("connections from %d to %d", asked.Connections, l.Connections))
	}
	if l.Rate > 0 && (granted.Rate == 0 || granted.Rate > l.Rate) {
		granted.Rate = l.Rate
		if asked.Rate > 0 {
			cut = append(cut, fmt.Sprintf("rate from %s to %s", asked.Rate, l.Rate))
		}
	}
	most := l.Run
	if granted.Rate > 0 {
		seconds := float64(left) * 8 / granted.total()
		most = min(most, time.Duration(min(seconds, maxRun.Seconds())*float64(time.Second)))
	}
	if most = most.Truncate(time.Second); left <= 0 || most == 0 {
		return granted, nil, errBudget
	}
	if granted.time() > most {
		if granted.Omit = min(granted.Omit, time.Second); most < 2*time.Second {
			granted.Omit = 0
		}
		granted.Count = most - granted.Omit
		cut = append(cut, fmt.Sprintf("time from %s to %s", asked.time(), most))
	}
	return granted, cut, nil
}

// noMore rejects a grant that exceeds the request.
func (r *Run) noMore(asked *Run) error {
	same := r.Protocol == asked.Protocol && r.Direction == asked.Direction && r.Payload == asked.Payload && r.Frame == asked.Frame
	if r.check() != nil || !same || r.Connections > asked.Connections || asked.Rate > 0 && r.Rate > asked.Rate ||
		r.Omit > asked.Omit || r.time() > asked.time() {
		return errors.New("the server grants what was not asked for")
	}
	return nil
}
