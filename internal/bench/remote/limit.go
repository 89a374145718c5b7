package remote

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Limits are what a server gives. A client asks, the server cuts to these and
// says what it has cut.
type Limits struct {
	Rate        float64       `json:"rate"`        // bit/s in each direction; 0: no bound
	Run         time.Duration `json:"run_ns"`      // of one run, with its beginning that is not counted
	Session     time.Duration `json:"session_ns"`  // of all that one client does
	Data        uint64        `json:"data"`        // bytes of one client, both directions together
	Connections int           `json:"connections"` // of TCP at once, in each direction
}

// DefaultLimits do no harm on a gigabit link whoever has found the key.
func DefaultLimits() Limits {
	return Limits{Rate: 1e9, Run: 30 * time.Second, Session: 15 * time.Minute, Data: 100e9, Connections: 64}
}

// Bounds of any run, whatever the limits. A message with more is refused, so
// that no number in it can overflow.
const (
	maxRate        = 1e12
	maxRun         = time.Hour
	maxConnections = 1024
	minPayload     = dataHeader
	maxPayload     = 9000
	maxText        = 512
)

// Check says what is wrong with limits.
func (l Limits) Check() error {
	switch {
	case !within(l.Rate, 0, maxRate):
		return fmt.Errorf("rate %g bit/s: 0 to %g", l.Rate, maxRate)
	case l.Run < time.Second || l.Run > maxRun:
		return fmt.Errorf("run of %s: 1s to %s", l.Run, maxRun)
	case l.Session < time.Second || l.Session > 24*time.Hour:
		return fmt.Errorf("session of %s: 1s to 24h", l.Session)
	case l.Connections < 1 || l.Connections > maxConnections:
		return fmt.Errorf("%d connections: 1 to %d", l.Connections, maxConnections)
	case l.Data == 0 || l.Data > math.MaxInt64:
		return errors.New("data: 1 byte at least")
	}
	return nil
}

// Run is one run: what the client asks for, and what the server grants.
type Run struct {
	Protocol    string        `json:"protocol"` // TCP or UDP
	Up          bool          `json:"up"`       // client to server
	Down        bool          `json:"down"`     // server to client
	Connections int           `json:"connections"`
	Rate        float64       `json:"rate"`    // bit/s in each direction; 0: as fast as it goes (TCP)
	Payload     int           `json:"payload"` // bytes of a UDP datagram, 0 for TCP
	Frame       int           `json:"frame"`   // bytes of the frame that carries it, by which UDP's rate counts
	Omit        time.Duration `json:"omit_ns"` // at the beginning, not counted
	Count       time.Duration `json:"count_ns"`
}

// Protocols of a run.
const (
	TCP = "tcp"
	UDP = "udp"
)

// check refuses what is no run, from whichever side it comes.
func (r *Run) check() error {
	switch {
	case r.Protocol != TCP && r.Protocol != UDP:
		return errors.New("run: protocol is neither tcp nor udp")
	case !r.Up && !r.Down:
		return errors.New("run: no direction")
	case r.Connections < 1 || r.Connections > maxConnections:
		return fmt.Errorf("run: %d connections", r.Connections)
	case !within(r.Rate, 0, maxRate):
		return fmt.Errorf("run: rate %g", r.Rate)
	case r.Omit < 0 || r.Omit > maxRun || r.Count < 50*time.Millisecond || r.Count > maxRun:
		return fmt.Errorf("run: %s after %s", r.Count, r.Omit)
	case r.Protocol == UDP && (r.Rate < 1 || r.Connections != 1):
		return errors.New("run: UDP has one flow and a rate")
	case r.Protocol == UDP && (r.Payload < minPayload || r.Payload > maxPayload || r.Frame != r.Payload+overhead4 && r.Frame != r.Payload+overhead6):
		return fmt.Errorf("run: datagrams of %d bytes in frames of %d", r.Payload, r.Frame)
	}
	return nil
}

// flows is how many TCP connections a run needs.
func (r *Run) flows() int {
	n := 0
	for _, direction := range []bool{r.Up, r.Down} {
		if direction {
			n += r.Connections
		}
	}
	return n
}

// grant cuts what is asked for to the limits, and says what it has cut.
func (l Limits) grant(asked Run) (granted Run, cut []string) {
	granted = asked
	if granted.Connections > l.Connections {
		granted.Connections = l.Connections
		cut = append(cut, fmt.Sprintf("connections from %d to %d", asked.Connections, l.Connections))
	}
	if l.Rate > 0 && (granted.Rate == 0 || granted.Rate > l.Rate) {
		granted.Rate = l.Rate
		if asked.Rate > 0 {
			cut = append(cut, fmt.Sprintf("rate from %s to %s", Rate(asked.Rate), Rate(l.Rate)))
		}
	}
	if granted.Omit+granted.Count > l.Run {
		granted.Omit = min(granted.Omit, l.Run/4)
		granted.Count = l.Run - granted.Omit
		cut = append(cut, fmt.Sprintf("time from %s to %s", asked.Omit+asked.Count, l.Run))
	}
	return granted, cut
}

// within is false for a NaN.
func within(v, least, most float64) bool { return v >= least && v <= most }
