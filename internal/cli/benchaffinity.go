package cli

import (
	"context"

	"github.com/spf13/cobra"

	"weir/internal/bench/affinity"
	"weir/internal/bench/report"
)

// newBenchAffinityCommand makes `weir bench affinity`.
func newBenchAffinityCommand(env *Env) *cobra.Command {
	o := affinity.Defaults()
	c := &cobra.Command{
		Use:   "affinity",
		Short: "what weir affinity auto is worth where one core is full",
		Long: `affinity builds a router where one queue gets all packets, and offers it more than one
core carries. It asks weir doctor what limits the router, and counts what arrives
before and after weir affinity auto, in turn, with weir affinity revert between.
Exit status 1: there is no verdict, because the first setting, measured twice, differs
by more than 5 %, the generator had no room, or doctor saw no full core.`,
		Example: `  weir bench affinity
  weir bench affinity --runs 8 --json affinity.json`,
	}
	f := c.Flags()
	f.StringVar(&o.Path, "path", o.Path, "`path` of the router: kernel, nft, nft-nat")
	f.StringVar(&o.Entry, "entry", o.Entry, "how frames enter it: `gro|xdp-pass`")
	f.IntVar(&o.Flows, "flows", o.Flows, "`number` of connections")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each setting")
	f.Float64Var(&o.Seconds, "seconds", o.Seconds, "`seconds` of each run")
	f.Float64Var(&o.Times, "times", o.Times, "offered load, in `times` what one core carries")
	return benchmarking(env, c, func() *benchmark {
		o.Progress, o.Command = env.Stderr, benchCommand()
		return &benchmark{check: o.Check, run: func(ctx context.Context) (*report.Document, error) { return affinity.Run(ctx, o) }}
	})
}
