package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/option"
	"weir/internal/bench/qos"
	"weir/internal/bench/qoscost"
	"weir/internal/bench/report"
)

// qosFlags holds the command line's flags.
type qosFlags struct {
	qos.Options
	rates []string
	quick bool

	forwarding bool
	cores      []int
}

// newBenchQosCommand makes `weir bench qos`.
func newBenchQosCommand(env *Env) *cobra.Command {
	given := &qosFlags{Options: qos.Defaults(), rates: []string{"50M"}, cores: qoscost.Defaults().Cores}
	c := &cobra.Command{
		Use:   "qos",
		Short: "measure queues with real TCP: rate, fairness, bursts and what waits",
		Long: `qos measures queues with real TCP (iperf3) over a delay line, in network namespaces of
its own: weir's, and the kernel's as an administrator sets them up. Paths, in turn:

  none      weir without queues, with the same load at the same pace
  weir      weir's queues, which hold no packets (engine phantom)
  held      the same, held by the kernel's (engine queue)
  htb       the kernel's forwarding, HTB on the way out and on an IFB for the way in
  fq_codel  the same with TBF and fq_codel
  cake      the same with CAKE

A path that this kernel does not have is named with the reason. Cases:

  one      one CUBIC connection at four rates and round-trip times
  bbr      one BBR connection
  mixed    4 CUBIC and 4 BBR at 10, 50 and 100 ms, without and with ECN
  flood    a stream of 1 Mbit/s beside a flood of twice the rate, from 1 and 1,000 ports
  weights  classes 3:1, and by priority with a floor
  ping     what queues add to a round trip
  ecn      loss of CUBIC if packets are marked
  rrul     four connections each way, ICMP and UDP probes, at --rate and --rtt
  rpm      round-trips per minute, at --rate and --rtt

With --forwarding it measures instead what queues cost a router in packets per second and CPU,
as "weir bench forward" does: weir and the kernel without queues and with them, on each number
of cores, at full speed and at rising rates.

What weir has to reach stands beside each figure. One scene is measured twice as a
control. If the two differ by more than 5 %, figures are printed without verdicts, and
the exit status is 1. docs/measuring.md describes the method.`,
		Example: `  weir bench qos --quick
  weir bench qos --cases one,mixed --paths weir,htb --json qos.json
  weir bench qos --cases rrul --rate 10M,100M --rtt 20ms,100ms --congestion bbr
  weir bench qos --forwarding --html cost.html`,
	}
	f := c.Flags()
	f.StringSliceVar(&given.Cases, "cases", given.Cases, "`cases` to measure")
	f.StringSliceVar(&given.Paths, "paths", given.Paths, "`paths` to measure")
	f.StringSliceVar(&given.rates, "rate", given.rates, "`rates` of the line in rrul and rpm")
	f.DurationSliceVar(&given.RTTs, "rtt", given.RTTs, "`round-trip times` in rrul and rpm")
	f.StringVar(&given.Congestion, "congestion", given.Congestion, "congestion control in rrul: `cubic|bbr`")
	f.StringVar(&given.Hook, "hook", given.Hook, "hook at which weir is measured: `xdp|tcx`; super-packets cross the wires with tcx")
	f.IntVar(&given.Runs, "runs", given.Runs, "`number` of runs of each")
	f.IntVar(&given.Seconds, "seconds", given.Seconds, "`seconds` of traffic in each run; three times as many at 1 Gbit/s and more")
	f.BoolVar(&given.quick, "quick", false, "one run of 6 seconds of each; other flags change it")
	f.BoolVar(&given.forwarding, "forwarding", false, "measure instead what queues cost to forward; of the other flags --runs and --cores count")
	f.IntSliceVar(&given.cores, "cores", given.cores, "with --forwarding: `number` of cores that send and forward")
	return benchmarking(env, c, func() *benchmark {
		if given.forwarding {
			return given.forward(env, c.Flags().Changed)
		}
		var o qos.Options
		check := func() (err error) {
			o, err = given.options(c.Flags().Changed)
			o.Command, o.Version, o.Progress = benchCommand(), benchVersion(), env.Stderr
			return err
		}
		return &benchmark{check: check, estimate: func() time.Duration { return o.Estimate() },
			run: func(ctx context.Context) (*report.Document, error) { return qos.Run(ctx, o) }}
	})
}

// forward returns the benchmark of what queues cost to forward.
func (q *qosFlags) forward(env *Env, changed func(string) bool) *benchmark {
	o := qoscost.Defaults()
	o.Cores, o.Command, o.Version, o.Progress = q.cores, benchCommand(), benchVersion(), env.Stderr
	if changed("runs") {
		o.Runs = q.Runs
	}
	return &benchmark{check: o.Check, estimate: o.Estimate,
		run: func(ctx context.Context) (*report.Document, error) { return qoscost.Run(ctx, o) }}
}

// options returns what the flags say.
func (q *qosFlags) options(changed func(string) bool) (qos.Options, error) {
	o := q.Options
	o.Rates = nil
	for _, text := range q.rates {
		r, err := option.ParseRate(text)
		if err != nil {
			return o, err
		}
		o.Rates = append(o.Rates, r)
	}
	if q.quick {
		o.Short()
		if changed("runs") {
			o.Runs = q.Runs
		}
		if changed("seconds") {
			o.Seconds = q.Seconds
		}
	}
	return o, o.Check()
}
