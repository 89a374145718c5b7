package qoscost

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"time"

	"weir/internal/bench/forward"
	"weir/internal/bench/option"
	"weir/internal/bench/paths"
)

// Options choose what to measure.
type Options struct {
	Cores    []int
	Flows    int
	Runs     int
	Seconds  time.Duration // of each run, and of each rate that is offered
	Command  string
	Version  string
	Program  string    // the weir to measure; "": the running one
	Progress io.Writer // nil: nobody reads it

	name  string // of namespaces and folder; "": the default
	quick bool   // take the first run, even if it was disturbed
}

// Defaults take four minutes.
func Defaults() Options {
	return Options{Cores: []int{1, 2}, Flows: 1000, Runs: 5, Seconds: 500 * time.Millisecond}
}

// Check returns the first error in the options.
func (o *Options) Check() error {
	f := o.forward()
	if !slices.Contains(o.Cores, 1) {
		return errors.New("--cores: want 1 among them, as the line of the story is one that a core of the kernel carries")
	}
	return cmp.Or(option.Runs(o.Runs), f.Check())
}

// Estimate returns about how long it takes.
func (o *Options) Estimate() time.Duration {
	f := o.forward()
	rates := time.Duration(len(shares)+2) * (o.Seconds + 100*time.Millisecond)
	return f.Estimate() + time.Duration(o.Runs*len(o.Cores))*(time.Duration(len(told))*(3*time.Second+rates))
}

// told are the paths of the story, and the benchmark's own part.
var told = []string{paths.Generator, paths.Kernel, paths.KernelHTB, paths.Weir, paths.WeirQoS}

func (o *Options) forward() forward.Options {
	f := forward.Defaults()
	f.Paths = []string{paths.Kernel, paths.KernelHTB, paths.Weir, paths.WeirQoS}
	f.Cores, f.Flows, f.Runs, f.Seconds = o.Cores, []int{o.Flows}, o.Runs, o.Seconds
	f.InTurns()
	f.Command, f.Version, f.Program, f.Progress, f.Name, f.Quick = o.Command, o.Version, o.Program, o.Progress, o.name, o.quick
	return f
}
