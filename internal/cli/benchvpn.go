package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"weir/internal/bench/report"
	"weir/internal/bench/vpn"
)

// newBenchVPNCommand makes `weir bench vpn`.
func newBenchVPNCommand(env *Env) *cobra.Command {
	o := vpn.Defaults()
	c := &cobra.Command{
		Use:   "vpn",
		Short: "measure WireGuard in user space: weir's path of data beside wireguard-go",
		Long: `vpn measures tunnels of WireGuard in network namespaces of its own, both ends on this
machine's cores: weir's engine in user space, and wireguard-go as it is released. Cases:

  gso    TCP, and the wires carry super-packets, as veth does
  nic    TCP, and the wires carry frames of 1,500 bytes, as a network card does
  udp    datagrams of 1,372 bytes
  tcx    with weir's rules at TCX, and without
  wide   TCP as with nic, over a link of several ports and of one
  rpm    how many short requests a minute are answered one after the other beside a load
  alone  one end of weir's alone, encrypting and decrypting: two workers beside one, 100 peers
         beside one

What weir has to reach stands beside each ratio, and what both ends' CPU is beside that of
ChaCha20-Poly1305. One case is measured twice as a control. If the two differ by more than 5 %,
figures are printed without verdicts, and the exit status is 1. docs/measuring.md describes the
method.`,
		Example: `  weir bench vpn
  weir bench vpn --cases gso,nic --runs 9 --json vpn.json`,
	}
	f := c.Flags()
	f.StringSliceVar(&o.Cases, "cases", o.Cases, "`cases` to measure")
	f.IntVar(&o.Flows, "flows", o.Flows, "`number` of connections of TCP at once; one alone is measured, too")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each")
	f.IntVar(&o.Seconds, "seconds", o.Seconds, "`seconds` of traffic in each run")
	return benchmarking(env, c, func() *benchmark {
		o.Progress, o.Command, o.Version = env.Stderr, benchCommand(), benchVersion()
		return &benchmark{check: o.Check, estimate: o.Estimate,
			run: func(ctx context.Context) (*report.Document, error) { return vpn.Run(ctx, o) }}
	})
}

// newBenchVPNEndCommand makes the command by which `weir bench vpn` runs the ends of its tunnels.
func newBenchVPNEndCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:    vpn.EndCommand,
		Short:  "run an end of a tunnel for weir bench vpn",
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return vpn.RunEnd(c.Context(), os.Stdin, env.Stdout) },
	}
}
