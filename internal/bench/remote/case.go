package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"weir/internal/bench/option"
	"weir/internal/units"
)

// Protocols that carry data.
const (
	TCP = "tcp"
	UDP = "udp"
)

// Directions of data.
const (
	Up   = "up"   // from the client to the server
	Down = "down" // from the server to the client
	Both = "both" // both at the same time
)

// Rate is a number of bits per second.
type Rate = option.Rate

// Options choose the server and what to measure. All combinations of the lists are
// measured.
type Options struct {
	Host  string
	Port  uint16
	Owned string // host that the user claims to own
	Key   Key
	// IPerf3 is set if the other side is a stock iperf3 server, which has no key and
	// no limits.
	IPerf3 bool

	Protocols   []string // TCP, UDP
	Directions  []string // Up, Down, Both
	Connections []int    // TCP connections
	TCPRate     Rate     // TCP's limit in each direction; 0: none
	Rates       []Rate   // UDP rates, counting whole frames
	Frames      []int    // UDP: bytes of an Ethernet frame with its checksum
	Runs        int
	Seconds     time.Duration

	// Router is the file of a network namespace that is sampled during the runs. ""
	// is the process's own. RouterName is its name in the report, "" if the user
	// asked for none.
	Router, RouterName string

	// Loaded is called once, when the first run begins. Its arguments are how long
	// the uncounted beginning lasts, and how long the run lasts after it. It may be
	// nil.
	Loaded func(omitted, span time.Duration)

	Command  string // command that repeats it
	Program  string // program and version
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
	maxSeconds = 10 * time.Minute
	// omitted is the beginning of a run, in which TCP finds its rate. It does not
	// count.
	omitted = time.Second
	// idleSpan is how long the idle round-trip time is measured before each run.
	idleSpan = 500 * time.Millisecond
)

// Check returns the first error in the options.
func (o *Options) Check() error {
	if o.Host == "" {
		return errors.New("name the machine that weir bench server runs on")
	}
	return cmp.Or(
		option.Words("--proto", o.Protocols, TCP, UDP),
		option.Words("--direction", o.Directions, Up, Down, Both),
		option.Within("--connections", 1, maxConnections, o.Connections...),
		option.Each("--rate", o.Rates, func(r Rate) bool { return r >= 1e3 && r <= 100e9 }, "1K to 100G; UDP is always paced"),
		option.Within("--frame", minFrame, maxFrame, o.Frames...),
		option.Runs(o.Runs),
		option.Each("--seconds", []time.Duration{o.Seconds}, func(d time.Duration) bool { return d > 0 && d <= maxSeconds }, "up to 600"),
	)
}

// Case is one setting that is measured several times.
type Case struct {
	Protocol    string
	Direction   string
	Connections int
	Rate        Rate
	Frame       int // UDP
}

// Cases returns all combinations, each once.
func (o *Options) Cases() (cases []Case) {
	add := func(c Case) {
		if !slices.Contains(cases, c) {
			cases = append(cases, c)
		}
	}
	for _, protocol := range o.Protocols {
		for _, direction := range o.Directions {
			if protocol == TCP {
				for _, n := range o.Connections {
					add(Case{TCP, direction, n, o.TCPRate, 0})
				}
				continue
			}
			for _, frame := range o.Frames {
				for _, rate := range o.Rates {
					add(Case{UDP, direction, 1, rate, frame})
				}
			}
		}
	}
	return cases
}

// String describes the case for people.
func (c Case) String() string {
	if c.Protocol == UDP {
		return fmt.Sprintf("UDP %s, %s, %s bytes", c.Direction, c.Rate, units.Thousands(c.Frame))
	}
	return fmt.Sprintf("TCP %s, %s", c.Direction, units.Plural(c.Connections, "connection"))
}

// key returns the case's part of measurement names.
func (c Case) key() string {
	if c.Protocol == UDP {
		return fmt.Sprintf("udp.%s.%d.%.0f", c.Direction, c.Frame, float64(c.Rate))
	}
	return fmt.Sprintf("tcp.%s.%d", c.Direction, c.Connections)
}

// Bytes around a datagram: Ethernet with its checksum, IP, UDP.
const (
	overhead4 = 18 + 20 + 8
	overhead6 = 18 + 40 + 8
)

// request returns the case as the protocol requests it. The frame is enlarged if the
// smallest datagram of the protocol needs it: 64 bytes with IPv4, 84 with IPv6.
func (c Case) request(server netip.Addr, span time.Duration) Run {
	r := Run{Case: c, Omit: omitted, Count: span}
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

// count returns how long a run counts. iperf3 takes whole seconds.
func (o *Options) count() time.Duration {
	return (o.Seconds + time.Second - 1).Truncate(time.Second)
}

// Estimate returns about how long the benchmark takes. The first case is measured twice.
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
