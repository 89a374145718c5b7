package cli

import (
	"context"

	"github.com/spf13/cobra"

	"weir/internal/bench/memory"
	"weir/internal/bench/report"
)

// newBenchMemoryCommand makes `weir bench memory`.
func newBenchMemoryCommand(env *Env) *cobra.Command {
	o := memory.Defaults()
	c := &cobra.Command{
		Use:   "memory",
		Short: "what a random memory access costs, which limits the rate with a million connections",
		Long: `memory reads a cache line of an array in the kernel, as a packet reads its state, and
writes the next one. What it reads decides where it goes on, so each access must wait
for the one before. A packet of a connection that was not seen lately costs at least
one such access.
Exit status 1: the largest array, measured twice, differs by more than 5 %.`,
		Example: `  weir bench memory
  weir bench memory --mib 1,640 --json memory.json`,
	}
	f := c.Flags()
	f.IntSliceVar(&o.Sizes, "mib", o.Sizes, "sizes of the array in `MiB`")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each size")
	return benchmarking(env, c, func() *benchmark {
		o.Progress, o.Command = env.Stderr, benchCommand()
		return &benchmark{check: o.Check, run: func(ctx context.Context) (*report.Document, error) { return documentOf(memory.Run(ctx, o)) }}
	})
}
