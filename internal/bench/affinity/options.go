package affinity

import (
	"fmt"
	"io"
	"math"

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
	switch {
	case o.Path != paths.NftNAT && o.Path != paths.Nft && o.Path != paths.Kernel:
		return fmt.Errorf("--path %s: want kernel, nft or nft-nat, whose packets the stack takes", o.Path)
	case o.Runs < 1 || o.Runs > 1000:
		return fmt.Errorf("--runs %d: want 1 to 1000", o.Runs)
	case o.Flows < 1 || o.Flows > 65536:
		return fmt.Errorf("--flows %d: want 1 to 65536", o.Flows)
	case math.IsNaN(o.Seconds) || o.Seconds < 0.2 || o.Seconds > 60:
		return fmt.Errorf("--seconds %g: want 0.2 to 60", o.Seconds)
	case math.IsNaN(o.Times) || o.Times < 1.1 || o.Times > 4:
		return fmt.Errorf("--times %g: want 1.1 to 4", o.Times)
	}
	return nil
}
