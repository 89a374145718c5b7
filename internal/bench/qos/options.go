package qos

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/option"
)

// Paths that are measured.
const (
	PathNone    = "none"     // weir without queues
	PathWeir    = "weir"     // weir with queues, by the engine phantom
	PathHeld    = "held"     // the same by the engine queue
	PathHTB     = "htb"      // the kernel's forwarding, HTB and IFB
	PathFqCodel = "fq_codel" // the same, TBF with fq_codel
	PathCake    = "cake"     // the same, CAKE
)

// Paths are all paths, in the order of the report.
var Paths = []string{PathNone, PathWeir, PathHeld, PathHTB, PathFqCodel, PathCake}

// Cases.
const (
	CaseOne     = "one"     // one CUBIC connection
	CaseBBR     = "bbr"     // one BBR connection
	CaseMixed   = "mixed"   // CUBIC and BBR, three round-trip times
	CaseFlood   = "flood"   // a sparse stream beside a flood
	CaseWeights = "weights" // classes by weight, and by priority with a floor
	CasePing    = "ping"    // what queues add to a round trip
	CaseECN     = "ecn"     // loss of CUBIC if packets are marked
	CaseRRUL    = "rrul"    // four connections each way, with probes
	CaseRPM     = "rpm"     // round-trips per minute
)

// Cases are the names of all cases, in the order of the report.
var Cases = []string{CaseOne, CaseBBR, CaseMixed, CaseFlood, CaseWeights, CasePing, CaseECN, CaseRRUL, CaseRPM}

// Options choose what to measure.
type Options struct {
	Cases []string
	Paths []string
	// Rates and RTTs are those of rrul and rpm. They multiply.
	Rates      []option.Rate
	RTTs       []time.Duration
	Congestion string // congestion control of rrul: cubic or bbr
	Hook       string // at which weir runs
	Runs       int
	Seconds    int // of traffic in each run; three times as many at 1 Gbit/s and more
	Quick      bool

	Command, Version string
	Program          string // the weir to measure; "": the running one
	Progress         io.Writer

	name string // of namespaces and folder; "": the default
}

// Defaults measure all cases.
func Defaults() Options {
	return Options{Cases: slices.Clone(Cases), Paths: slices.Clone(Paths), Rates: []option.Rate{50e6}, RTTs: []time.Duration{20 * time.Millisecond},
		Congestion: "cubic", Hook: "xdp", Runs: 3, Seconds: 20}
}

// Short is what --quick changes: one short run of each.
func (o *Options) Short() { o.Runs, o.Seconds, o.Quick = 1, 6, true }

const (
	leastRate   = 1e6
	mostRate    = 10e9
	mostRTT     = time.Second
	mostSeconds = 200
)

// Check returns the first error in the options.
func (o *Options) Check() error {
	return cmp.Or(
		option.Words("--cases", o.Cases, Cases...),
		option.Words("--paths", o.Paths, Paths...),
		option.Words("--congestion", []string{o.Congestion}, "cubic", "bbr"),
		option.Words("--hook", []string{o.Hook}, "xdp", "tcx"),
		option.Each("--rate", o.Rates, func(r option.Rate) bool { return r >= leastRate && r <= mostRate }, "1M to 10G"),
		option.Each("--rtt", o.RTTs, func(d time.Duration) bool { return d >= 0 && d <= mostRTT }, "0 to 1s"),
		option.Runs(o.Runs),
		option.Within("--seconds", 3, mostSeconds, o.Seconds),
	)
}

func (o *Options) has(name string) bool { return slices.Contains(o.Cases, name) }

// start is about how long it takes to start and stop a path, and iperf3.
const start = 6 * time.Second

// Estimate returns about how long it takes.
func (o *Options) Estimate() time.Duration {
	total := 2 * time.Second
	for _, t := range o.tasks(nil) {
		total += time.Duration(o.Runs) * (t.scene.length + t.scene.omit + start)
	}
	return total
}

// slugs are short forms in names of measurements.
var slugs = strings.NewReplacer(" Mbit/s", "M", "÷", "to", "/", "-", ",", "", " ", "-")

// slug returns a name as part of a measurement's.
func slug(text string) string { return slugs.Replace(text) }
