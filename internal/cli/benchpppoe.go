package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/pppoe"
	"weir/internal/bench/report"
)

// newBenchPPPoECommand makes `weir bench pppoe`.
func newBenchPPPoECommand(env *Env) *cobra.Command {
	o := pppoe.Defaults()
	seconds := o.Seconds.Seconds()
	spread := false
	c := &cobra.Command{
		Use:   "pppoe",
		Short: "measure what a PPPoE session costs a router in packets per second",
		Long: `pppoe measures in network namespaces of its own what a PPPoE session costs weir, on one
core. Paths, in turn, as "weir bench forward" has them:

  generator       frames end at the firewall's door: what measuring itself costs
  weir-nat        examples/gateway.conf, traffic with NAT
  weir-nat-pppoe  the same with a session of weir's own client on the wire to the internet

Frames go into the session, and then both ways. What a core has to reach with a session stands
beside each figure: 0.95 of what it forwards without at 64 bytes, 0.98 at 1,518, and 15 ns a
frame. With --spread it measures what two cores forward of what comes by one queue, by "set spread",
beside what one does, and checks the order of all frames. One path is measured twice as a control. If the two differ by more than 5 %, figures are
printed without verdicts, and the exit status is 1. docs/measuring.md describes the method.`,
		Example: `  weir bench pppoe
  weir bench pppoe --runs 15 --json pppoe.json
  weir bench pppoe --spread --runs 5 --seconds 2`,
	}
	f := c.Flags()
	f.IntSliceVar(&o.Frames, "frame", o.Frames, "`bytes` of a frame with its checksum, without the session's header, 64 to 1518")
	f.IntVar(&o.Flows, "flows", o.Flows, "`number` of connections at once")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each path")
	f.Float64Var(&seconds, "seconds", seconds, "`seconds` of steady traffic in each run")
	f.BoolVar(&spread, "spread", false, "measure instead what set spread forwards on two cores if all frames come by one queue, in and out of a session")
	return benchmarking(env, c, func() *benchmark {
		o.Seconds = time.Duration(seconds * float64(time.Second))
		o.Progress, o.Command, o.Version = env.Stderr, benchCommand(), benchVersion()
		if spread {
			return &benchmark{check: o.Check, estimate: o.SpreadEstimate,
				run: func(ctx context.Context) (*report.Document, error) { return pppoe.Spread(ctx, o) }}
		}
		return &benchmark{check: o.Check, estimate: o.Estimate,
			run: func(ctx context.Context) (*report.Document, error) { return pppoe.Run(ctx, o) }}
	})
}
