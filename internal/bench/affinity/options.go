package affinity

import (
	"fmt"
	"io"
	"math"

	"weir/internal/bench/paths"
)

// Options say how much is measured.
type Options struct {
	Path    string
	Entry   string // how frames enter the path: gro or xdp-pass
	Flows   int
	Runs    int
	Seconds float64 // of each run
	Times   float64 // what one core carries at most, that is offered

	Program  string    // the weir that judges and mends; "": the one that runs
	Command  string    // repeats this
	Progress io.Writer // hears what is going on; nil: nobody
}

// Defaults are those of weir bench affinity.
func Defaults() Options {
	return Options{Path: paths.NftNAT, Entry: "gro", Flows: 1000, Runs: 5, Seconds: 2, Times: 1.6}
}

// Check tells what is wrong with the options.
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
