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
	spread, tcp, rate := false, false, o.Rate/1e9
	c := &cobra.Command{
		Use:   "pppoe",
		Short: "measure what a PPPoE session costs a router in packets per second",
		Long: `pppoe measures in network namespaces of its own what a PPPoE session costs weir, on one
core. Paths, in turn, as "weir bench forward" has them:

  generator       frames end at the firewall's door: what measuring itself costs
  redirect        a bare XDP redirect
  redirect-pppoe  the same, and the session's header put in front or taken off: what it costs at least
  weir-nat        examples/gateway.conf, traffic with NAT
  weir-nat-pppoe  the same with a session of weir's own client on the wire to the internet

Frames go into the session, and then both ways. What a core has to reach with a session stands
beside each figure: 0.95 of what it forwards without at 64 bytes, 0.98 at 1,518, and 15 ns a
frame. With --spread it measures what two cores forward of what comes by one queue, by "set spread",
beside what one does, and checks the order of all frames. With --tcp it measures what real
connections (iperf3) carry at an offered rate, with a session and without, and what a gigabit
takes of the cores: one connection has to carry 0.95 of what 64 do, and a gigabit may take 1.05
times the CPU time that it takes without a session. One path is measured twice as a control. If the two differ by more than 5 %, figures are
printed without verdicts, and the exit status is 1. docs/measuring.md describes the method.`,
		Example: `  weir bench pppoe
  weir bench pppoe --runs 15 --json pppoe.json
  weir bench pppoe --spread --runs 5 --seconds 2
  weir bench pppoe --tcp --runs 5 --seconds 3`,
	}
	f := c.Flags()
	f.IntSliceVar(&o.Frames, "frame", o.Frames, "`bytes` of a frame with its checksum, without the session's header, 64 to 1518")
	f.IntVar(&o.Flows, "flows", o.Flows, "`number` of connections at once")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each path")
	f.Float64Var(&seconds, "seconds", seconds, "`seconds` of steady traffic in each run")
	f.BoolVar(&spread, "spread", false, "measure instead what set spread forwards on two cores if all frames come by one queue, in and out of a session")
	f.BoolVar(&tcp, "tcp", false, "measure instead what TCP connections carry at an offered rate, and their CPU time")
	f.IntSliceVar(&o.Connections, "connections", o.Connections, "with --tcp: `number` of connections; the first is compared with the last")
	f.Float64Var(&rate, "rate", rate, "with --tcp: `Gbit/s` that all connections together offer")
	c.MarkFlagsMutuallyExclusive("spread", "tcp")
	return benchmarking(env, c, func() *benchmark {
		o.Rate = rate * 1e9
		o.Seconds = time.Duration(seconds * float64(time.Second))
		o.Progress, o.Command, o.Version = env.Stderr, benchCommand(), benchVersion()
		if spread {
			return &benchmark{check: o.Check, estimate: o.SpreadEstimate,
				run: func(ctx context.Context) (*report.Document, error) { return pppoe.Spread(ctx, o) }}
		}
		if tcp {
			o.Seconds = max(o.Seconds, time.Second)
			return &benchmark{check: o.CheckTCP, estimate: o.TCPEstimate,
				run: func(ctx context.Context) (*report.Document, error) { return pppoe.TCP(ctx, o) }}
		}
		return &benchmark{check: o.Check, estimate: o.Estimate,
			run: func(ctx context.Context) (*report.Document, error) { return pppoe.Run(ctx, o) }}
	})
}
