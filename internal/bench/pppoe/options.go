package pppoe

import (
	"cmp"
	"io"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/option"
	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
)

// Options choose what to measure.
type Options struct {
	Frames   []int // bytes with the frame's checksum, without the session's header
	Flows    int
	Runs     int
	Seconds  time.Duration // of each run
	Command  string
	Version  string
	Program  string    // the weir to measure; "": the running one
	Progress io.Writer // nil: nobody reads it

	// Of TCP alone.
	Connections []int   // the first is compared with the last
	Rate        float64 // bits a second that all connections together offer

	directions []string
	name       string // of namespaces and folder; "": the default
	quick      bool   // take the first run, even if it was disturbed
}

// Defaults take eight minutes.
func Defaults() Options {
	return Options{Frames: []int{64, 1518}, Flows: 1000, Runs: 9, Seconds: 500 * time.Millisecond, Connections: []int{1, 64}, Rate: 1e9,
		directions: []string{traffic.OneWay, traffic.Both}}
}

// Check returns the first error in the options.
func (o *Options) Check() error {
	f := o.forward()
	return cmp.Or(option.Runs(o.Runs), f.Check())
}

// Estimate returns about how long it takes.
func (o *Options) Estimate() time.Duration {
	f := o.forward()
	return f.Estimate()
}

func (o *Options) forward() forward.Options {
	f := forward.Defaults()
	f.Paths = []string{paths.Generator, paths.Redirect, paths.RedirectPPPoE, paths.WeirNAT, paths.WeirNATPPPoE}
	f.Directions, f.Grows = o.directions, true
	f.Frames, f.Flows, f.Runs, f.Seconds = o.Frames, []int{o.Flows}, o.Runs, o.Seconds
	f.InTurns()
	f.Command, f.Version, f.Program, f.Progress, f.Name, f.Quick = o.Command, o.Version, o.Program, o.Progress, o.name, o.quick
	return f
}
