package rfc

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"weir/internal/bench/option"
	"weir/internal/bench/paths"
)

// Paths are the paths that the tests compare.
var Paths = []string{paths.Kernel, paths.Nft, paths.NftNAT, paths.Weir, paths.WeirNAT}

// Options choose the tests and how long they run.
type Options struct {
	Standard string   // name of a [Standard]
	Tests    []string // none: all tests of the standard
	Paths    []string
	Hook     string // weir's hook: xdp or tcx
	Runs     int    // runs of each path in each test
	Frames   []int  // sizes in bytes with the frame's checksum, for tests that count frames
	Flows    int    // connections that the frames rotate over
	// Connections is the number of connections that the tests of connections open.
	Connections int
	Clients     int           // clients that fetch objects at once
	Trial       time.Duration // length of a trial with frames
	Sustain     time.Duration // how long clients sustain their load
	Ramp        time.Duration // how long clients take to start, and to stop
	Precision   float64       // step of searches, as a share of the rate
	Tries       int           // trials for each rate of a search
	// Full selects the durations that the RFCs ask for.
	Full bool

	Command  string    // command that repeats the run, for the report
	Program  string    // the weir to measure; "": the running one
	Version  string    // weir's version, for the report
	Progress io.Writer // progress messages go here; nil: nowhere

	name string // name of namespaces and folder; "": the default
}

// Defaults are short. They show the same as the RFCs' own durations, with less precision.
func Defaults(standard string) Options {
	o := Options{
		Standard: standard, Paths: slices.Clone(Paths), Hook: "xdp", Runs: 5, Frames: []int{64, 1518}, Flows: 1000,
		Connections: 16_384, Clients: 32, Trial: 200 * time.Millisecond, Sustain: time.Second, Ramp: 200 * time.Millisecond,
		Precision: 0.02, Tries: 3,
	}
	if standard == "rfc3511" { // rfc2544 has other sizes; the smallest show best what rules cost
		o.Frames = []int{64}
	}
	return o
}

// Lengthen sets the durations and sizes of the RFCs: trials of 60 s (RFC 2544,
// section 24), 300 s of sustained load with 180 s before and after (RFC 9411,
// section 4.3.4), all frame sizes of Ethernet, 1,000,000 connections.
func (o *Options) Lengthen() {
	o.Full = true
	o.Frames = []int{64, 128, 256, 512, 1024, 1280, 1518}
	o.Trial, o.Sustain, o.Ramp = 60*time.Second, 300*time.Second, 180*time.Second
	o.Connections, o.Precision, o.Tries = 1_000_000, 0.01, 1
}

// Limits of the options.
const (
	maxConnections = 4_000_000
	maxClients     = 1000
)

// Check returns the first error in the options.
func (o *Options) Check() error {
	s, err := Named(o.Standard)
	if err != nil {
		return err
	}
	if len(o.Tests) > 0 {
		err = option.Words("--test", o.Tests, s.TestNames()...)
	}
	return cmp.Or(err,
		option.Words("--paths", o.Paths, Paths...),
		option.Within("--frame", 64, 1518, o.Frames...),
		option.Runs(o.Runs),
		option.Within("--flows", 1, 1_000_000, o.Flows),
		option.Within("--connections", 100, maxConnections, o.Connections),
		option.Within("--clients", 1, maxClients, o.Clients),
		option.Words("--hook", []string{o.Hook}, "xdp", "tcx"),
		o.checkTimes())
}

func (o *Options) checkTimes() error {
	if o.Trial < 20*time.Millisecond || o.Trial > 2*time.Minute || o.Sustain < 50*time.Millisecond || o.Sustain > time.Hour {
		return fmt.Errorf("--seconds: want 0.05 to 120 for frames, 0.05 to 3600 for clients")
	}
	return nil
}

// Estimate returns about how long the tests take.
func (o *Options) Estimate() time.Duration {
	s, err := Named(o.Standard)
	if err != nil {
		return 0
	}
	total := 2.0
	for _, t := range s.chosen(o) {
		total += t.seconds(o) * float64(t.measurements(o))
	}
	return time.Duration(total * float64(time.Second))
}
