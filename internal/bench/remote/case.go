package remote

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Directions in which data goes.
const (
	Up   = "up"   // from the client to the server
	Down = "down" // from the server to the client
	Both = "both" // both at the same time
)

// Options say what to measure with which server. Lists multiply.
type Options struct {
	Host  string
	Port  uint16
	Owned string // the host that the user says to own
	Key   Key
	// IPerf3 is set where the other side is a stock iperf3 server, which knows no
	// key and no limits.
	IPerf3 bool

	Protocols   []string // TCP, UDP
	Directions  []string // Up, Down, Both
	Connections []int    // of TCP
	TCPRate     Rate     // bound of TCP in each direction; 0: none
	Rates       []Rate   // of UDP, by whole frames
	Frames      []int    // of UDP: bytes of an Ethernet frame with its checksum
	Runs        int
	Seconds     time.Duration

	// Router is a network namespace by its file that is sampled meanwhile, ""
	// the process's own; RouterName is what the report calls it, "" if nobody
	// asked for it.
	Router, RouterName string

	// Loaded is called once, when the first run begins: with how long its beginning
	// does not count, and how long it then lasts; nil: nobody wants to know.
	Loaded func(omitted, span time.Duration)

	Command  string // that repeats it
	Program  string // what runs, with its version
	Progress io.Writer
}

// Defaults measure TCP in both directions, with one connection and with four.
func Defaults() Options {
	return Options{
		Port: DefaultPort, Protocols: []string{TCP}, Directions: []string{Up, Down, Both}, Connections: []int{1, 4},
		Rates: []Rate{10e6}, Frames: []int{1518}, Runs: 5, Seconds: 3 * time.Second,
	}
}

const (
	minFrame   = 64
	maxFrame   = 1518
	maxRuns    = 1000
	maxSeconds = 10 * time.Minute
	// omitted is the beginning of a run, in which TCP finds its rate.
	omitted = time.Second
	// idleSpan is how long the idle round-trip time is measured before each run.
	idleSpan = 500 * time.Millisecond
)

// Check says what is wrong with options.
func (o *Options) Check() error {
	if o.Host == "" {
		return errors.New("name the machine that weir bench server runs on")
	}
	for _, check := range []error{
		every("--proto", o.Protocols, func(p string) bool { return p == TCP || p == UDP }, "tcp or udp"),
		every("--direction", o.Directions, func(d string) bool { return d == Up || d == Down || d == Both }, "up, down or both"),
		every("--connections", o.Connections, func(n int) bool { return n >= 1 && n <= maxConnections }, "1 to 128"),
		every("--rate", o.Rates, func(r Rate) bool { return r >= 1e3 && r <= 100e9 }, "1K to 100G; UDP is always paced"),
		every("--frame", o.Frames, func(n int) bool { return n >= minFrame && n <= maxFrame }, "64 to 1518"),
		every("--runs", []int{o.Runs}, func(n int) bool { return n >= 1 && n <= maxRuns }, "1 to 1000"),
		every("--seconds", []time.Duration{o.Seconds},
			func(d time.Duration) bool { return d > 0 && d <= maxSeconds }, "up to 600"),
	} {
		if check != nil {
			return check
		}
	}
	return nil
}

func every[T any](option string, values []T, good func(T) bool, want string) error {
	if len(values) == 0 {
		return fmt.Errorf("%s: nothing given, want %s", option, want)
	}
	for i, v := range values {
		if !good(v) {
			return fmt.Errorf("%s %v: want %s", option, v, want)
		}
		if slices.ContainsFunc(values[:i], func(w T) bool { return fmt.Sprint(w) == fmt.Sprint(v) }) {
			return fmt.Errorf("%s %v: named twice", option, v)
		}
	}
	return nil
}

// Case is one setting that is measured several times.
type Case struct {
	Protocol    string
	Direction   string
	Connections int
	Rate        Rate
	Frame       int // UDP
}

// Cases are all combinations.
func (o *Options) Cases() []Case {
	var cases []Case
	for _, protocol := range o.Protocols {
		for _, direction := range o.Directions {
			if protocol == TCP {
				for _, n := range o.Connections {
					cases = append(cases, Case{TCP, direction, n, o.TCPRate, 0})
				}
				continue
			}
			for _, frame := range o.Frames {
				for _, rate := range o.Rates {
					cases = append(cases, Case{UDP, direction, 1, rate, frame})
				}
			}
		}
	}
	return cases
}

// String says the case for people.
func (c Case) String() string {
	if c.Protocol == UDP {
		return fmt.Sprintf("UDP %s, %s in frames of %d bytes", c.Direction, c.Rate, c.Frame)
	}
	noun := "connections"
	if c.Connections == 1 {
		noun = "connection"
	}
	return fmt.Sprintf("TCP %s, %d %s", c.Direction, c.Connections, noun)
}

// key is the case's part of the names of measurements.
func (c Case) key() string {
	if c.Protocol == UDP {
		return fmt.Sprintf("udp.%s.%d.%.0f", c.Direction, c.Frame, float64(c.Rate))
	}
	return fmt.Sprintf("tcp.%s.%d", c.Direction, c.Connections)
}

// Bytes that carry a datagram: Ethernet with its checksum, IP, UDP.
const (
	overhead4 = 18 + 20 + 8
	overhead6 = 18 + 40 + 8
)

// request is the case as the protocol asks for it. A frame is at least as large
// as a datagram of the protocol needs: 64 bytes with IPv4, 84 with IPv6.
func (c Case) request(server netip.Addr, span time.Duration) Run {
	r := Run{
		Protocol: c.Protocol, Up: c.Direction != Down, Down: c.Direction != Up, Connections: c.Connections,
		Rate: float64(c.Rate), Omit: omitted, Count: span,
	}
	if c.Protocol == UDP {
		overhead := overhead4
		if server.Is6() {
			overhead = overhead6
		}
		r.Payload = max(c.Frame-overhead, minPayload)
		r.Frame = r.Payload + overhead
	}
	return r
}

// count is how long a run counts: iperf3 takes whole seconds.
func (o *Options) count() time.Duration {
	return (o.Seconds + time.Second - 1).Truncate(time.Second)
}

// describe is a run in the server's log.
func (r *Run) describe() string {
	var ways []string
	if r.Up {
		ways = append(ways, Up)
	}
	if r.Down {
		ways = append(ways, Down)
	}
	text := fmt.Sprintf("%s %s, %d connections", r.Protocol, strings.Join(ways, " and "), r.Connections)
	if r.Protocol == UDP {
		text = fmt.Sprintf("%s %s, frames of %d bytes", r.Protocol, strings.Join(ways, " and "), r.Frame)
	}
	return fmt.Sprintf("%s, %s, %s", text, Rate(r.Rate), r.Count)
}

// Estimate is about how long the benchmark takes. The first case is measured
// twice.
func (o *Options) Estimate() time.Duration {
	const setUp = 500 * time.Millisecond
	total := 2 * time.Second
	for i := range o.Cases() {
		one := setUp + idleSpan + omitted + o.count()
		if i == 0 {
			one *= 2
		}
		total += time.Duration(o.Runs) * one
	}
	return total
}
