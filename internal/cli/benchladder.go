package cli

import (
	"context"

	"github.com/spf13/cobra"

	"weir/internal/bench/ladder"
	"weir/internal/bench/report"
)

// ladderFlags holds the command line's flags.
type ladderFlags struct {
	ladder.Options
	gigabits float64
	quick    bool
}

// newBenchLadderCommand makes `weir bench ladder`.
func newBenchLadderCommand(env *Env) *cobra.Command {
	given := &ladderFlags{Options: ladder.Defaults()}
	given.gigabits = given.Rate / 1e9
	c := &cobra.Command{
		Use:   "ladder",
		Short: "what routing, a stateful firewall and NAT cost real traffic, step by step",
		Long: `ladder measures what each step between two hosts costs: loopback, a wire, the
kernel's routing, a stateful firewall, NAT. The firewall is nft or weir. The traffic
is iperf3 and other real programs, in network namespaces of their own. Parts:

  tcp      throughput of 1, 4, 64 and 1,000 connections
  pairs    two pairs of hosts that start together, and what holds them back
  cpu      CPU time per gigabit at a fixed rate
  latency  round trips on an idle and on a full line; delay and jitter of UDP
  rpm      round-trips per minute under working conditions
  frames   frames per second, as "weir bench forward" measures them

Everything runs with the wires' offloads on and off, in random order. One step is
measured twice as a control. If the two differ by more than 5 %, figures are printed
without verdicts, and the exit status is 1. --quick is a sketch in less than 50
seconds: TCP up to NAT, offloads off; other flags change it. docs/measuring.md
describes the method.`,
		Example: `  weir bench ladder --quick
  weir bench ladder --html ladder.html --json ladder.json
  weir bench ladder --parts tcp,pairs --connections 1,64 --offloads off --seconds 10`,
	}
	f := c.Flags()
	f.BoolVar(&given.quick, "quick", false, "a sketch in less than 50 seconds")
	f.StringSliceVar(&given.Parts, "parts", given.Parts, "`parts` to measure")
	f.IntSliceVar(&given.Connections, "connections", given.Connections, "`number` of TCP connections at once; the first is the one that steps are compared with")
	f.StringSliceVar(&given.Offloads, "offloads", given.Offloads, "`on|off`: of the wires")
	f.StringSliceVar(&given.Firewalls, "firewalls", given.Firewalls, "`kernel|nft|weir`")
	f.IntVar(&given.Runs, "runs", given.Runs, "`number` of runs of each")
	f.IntVar(&given.Seconds, "seconds", given.Seconds, "`seconds` of traffic in each run")
	f.Float64Var(&given.gigabits, "rate", given.gigabits, "`Gbit/s` of the part cpu")
	return benchmarking(env, c, func() *benchmark {
		o := given.options(c.Flags().Changed)
		o.Command, o.Version, o.Progress = benchCommand(), benchVersion(), env.Stderr
		return &benchmark{check: o.Check, estimate: o.Estimate,
			run: func(ctx context.Context) (*report.Document, error) { return ladder.Run(ctx, o) }}
	})
}

// options returns the options of --quick, if it is given, overridden by the other flags.
func (l *ladderFlags) options(changed func(string) bool) ladder.Options {
	l.Rate = l.gigabits * 1e9
	if !l.quick {
		return l.Options
	}
	o := ladder.Quick()
	for flag, take := range map[string]func(){
		"parts":       func() { o.Parts = l.Parts },
		"connections": func() { o.Connections, o.ManyAtTop = l.Connections, false },
		"offloads":    func() { o.Offloads = l.Offloads },
		"firewalls":   func() { o.Firewalls = l.Firewalls },
		"runs":        func() { o.Runs = l.Runs },
		"seconds":     func() { o.Seconds = l.Seconds },
		"rate":        func() { o.Rate = l.Rate },
	} {
		if changed(flag) {
			take()
		}
	}
	return o
}
