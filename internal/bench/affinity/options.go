package affinity

import (
	"cmp"
	"fmt"
	"io"

	"weir/internal/bench/option"
	"weir/internal/bench/paths"
)

// Options choose the length of the measurement.
type Options struct {
	Path    string
	Entry   string // entry of the frames into the path: gro or xdp-pass
	Flows   int
	Runs    int
	Seconds float64 // length of a run
	Times   float64 // offered rate as a multiple of one core's capacity

	Program  string    // the weir to use; "": the running one
	Command  string    // command that repeats this
	Progress io.Writer // gets progress messages; nil: nobody does
}

// Defaults are the options of weir bench affinity without flags.
func Defaults() Options {
	return Options{Path: paths.NftNAT, Entry: "gro", Flows: 1000, Runs: 5, Seconds: 2, Times: 1.6}
}

// Check returns the first error in the options.
func (o *Options) Check() error {
	if o.Path != paths.NftNAT && o.Path != paths.Nft && o.Path != paths.Kernel {
		return fmt.Errorf("--path %s: want kernel, nft or nft-nat, whose packets the stack takes", o.Path)
	}
	return cmp.Or(option.Runs(o.Runs), option.Within("--flows", 1, 65536, o.Flows),
		option.Within("--seconds", 0.2, 60, o.Seconds), option.Within("--times", 1.1, 4, o.Times))
}
