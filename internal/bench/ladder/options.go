package ladder

import (
	"cmp"
	"io"
	"slices"
	"time"

	"weir/internal/bench/option"
	"weir/internal/lab"
)

// Parts of a run.
const (
	PartTCP     = "tcp"     // throughput of TCP connections
	PartPairs   = "pairs"   // two pairs of hosts at the same time
	PartCPU     = "cpu"     // CPU time per gigabit at a fixed rate
	PartLatency = "latency" // round trips and UDP, idle and loaded
	PartRPM     = "rpm"     // round-trips per minute under working conditions
	PartFrames  = "frames"  // frames per second, by the generator of "weir bench forward"
)

// Parts are the names of all parts, in the order of the report.
var Parts = []string{PartTCP, PartPairs, PartCPU, PartLatency, PartRPM, PartFrames}

// Options choose what to measure.
type Options struct {
	Parts       []string
	Connections []int    // numbers of concurrent TCP connections
	Offloads    []string // on, off: offloads of the veth pairs
	Firewalls   []string // kernel, nft, weir
	Runs        int      // runs of each measurement
	Seconds     int      // seconds of traffic in each run
	Rate        float64  // bits per second in the part "cpu"

	// Sketch marks a run that is too short to rely on.
	Sketch bool
	// ManyAtTop measures more than one connection on the last rung only.
	ManyAtTop bool
	// Command repeats this benchmark, and Version is that of this weir. Both are for
	// the report.
	Command, Version string
	// Program is the weir to measure. "" means the running one.
	Program string
	// Progress gets progress messages. nil means nobody does.
	Progress io.Writer

	name string // name of namespaces and folder; "": the default
}

// Defaults measure everything, in about three quarters of an hour.
func Defaults() Options {
	return Options{Parts: slices.Clone(Parts), Connections: []int{1, 4, 64, 1000}, Offloads: []string{"on", "off"},
		Firewalls: []string{Kernel, Nft, Weir}, Runs: 5, Seconds: 3, Rate: 1e9}
}

// Quick is a sketch of the ladder in less than 50 seconds.
func Quick() Options {
	o := Defaults()
	o.Parts, o.Connections, o.Offloads = []string{PartTCP}, []int{1, 64}, []string{"off"}
	o.Runs, o.Seconds, o.Sketch, o.ManyAtTop = 3, 1, true, true
	return o
}

// Limits of the options.
const (
	mostConnections = 10_000
	mostSeconds     = 600
	leastRate       = 1e6
	mostRate        = 400e9
)

// Check returns the first error in the options.
func (o *Options) Check() error {
	return cmp.Or(
		option.Words("--parts", o.Parts, Parts...),
		option.Words("--offloads", o.Offloads, "on", "off"),
		option.Words("--firewalls", o.Firewalls, Kernel, Nft, Weir),
		option.Within("--connections", 1, mostConnections, o.Connections...),
		option.Runs(o.Runs),
		option.Within("--seconds", 1, mostSeconds, o.Seconds),
		option.Each("--rate", []float64{o.Rate / 1e9}, func(gigabits float64) bool {
			return gigabits >= leastRate/1e9 && gigabits <= mostRate/1e9
		}, "0.001 to 400 Gbit/s"),
	)
}

func (o *Options) has(part string) bool { return slices.Contains(o.Parts, part) }

// modes returns the offload settings to measure, each once.
func (o *Options) modes() (modes []lab.Offloads) {
	for _, mode := range []lab.Offloads{lab.OffloadsOn, lab.OffloadsOff} {
		if slices.Contains(o.Offloads, mode.String()) {
			modes = append(modes, mode)
		}
	}
	return modes
}

// Estimate returns about how long the benchmark takes.
func (o *Options) Estimate() time.Duration {
	l := &ladder{options: o}
	l.plan()
	total := 2.0
	for _, b := range l.boxes {
		total += float64(o.Runs) * b.seconds(len(o.modes()) > 1)
	}
	if o.has(PartFrames) {
		f := o.frames()
		total += f.Estimate().Seconds()
	}
	return time.Duration(total * float64(time.Second))
}
