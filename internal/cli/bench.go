package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/forward"
	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/rfc"
)

// newBenchCommand makes `weir bench`, which measures this machine.
func newBenchCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "measure weir, nftables and the kernel side by side on this machine",
	}
	for _, s := range rfc.Standards() {
		c.AddCommand(newBenchRFCCommand(env, s))
	}
	c.AddCommand(newBenchForwardCommand(env), newBenchCompareCommand(env), newBenchLadderCommand(env), newBenchGateCommand(env), newBenchMemoryCommand(env), newBenchStagesCommand(env), newBenchLanguageCommand(env), newBenchAffinityCommand(env), newBenchQosCommand(env), newBenchPPPoECommand(env), newBenchVPNCommand(env), newBenchVPNEndCommand(env))
	c.AddCommand(newBenchServerCommand(env), newBenchClientCommand(env)) // between two machines
	return c
}

const benchForwardHelp = `forward measures paths through a firewall in network namespaces of its own, in turn,
several times, with frames that a program writes in the kernel:

  generator  frames end at the firewall's door: what measuring itself costs
  redirect   a bare XDP redirect: the limit of this machine
  kernel     the kernel's routing without rules
  nft        examples/gateway.nft, traffic without NAT
  nft-nat    examples/gateway.nft, traffic with NAT
  weir       examples/gateway.conf, traffic without NAT
  weir-nat   examples/gateway.conf, traffic with NAT

With --paths also kernel-htb, weir-qos and weir-nat-qos: kernel, weir and weir-nat with queues
for the line to the internet, in both directions, at a rate at which nothing is dropped. The
kernel's are HTB and an IFB. And weir-scrub, weir-route-to and weir-limits: weir-nat with
scrub and prio on all packets, with a gateway that a rule chooses, with limits on all
sources. And weir-af-to: from IPv6 to IPv4. The ratios of these four to weir-nat have floors.
And weir-pppoe, weir-nat-pppoe and redirect-pppoe: with a PPPoE session on the wire to the
internet.
And weir-stateless: weir without states. And weir-once: weir with --prefetch off. The ratio
of weir to it has a floor of 0.98, with any --pattern.

With --vlan also weir-vlan and weir-nat-vlan: the same with a VLAN tag on both wires.
Kernels without VLAN devices can measure that, too: other devices stand in for them, and
the benchmark enters these in weir's table itself.

Lists multiply: every combination is measured. Frames are checked on arrival before
any are counted. One path is measured twice as a control. If the two differ by more
than 5 %, figures are printed without verdicts, and the exit status is 1.
docs/measuring.md describes the method. On a machine whose speed changes, as a virtual one's
does, the control fails. --turns 20 cuts each path's second into 20 parts, lets all paths take
turns, and takes out of the figures what they have in common.`

// newBenchForwardCommand makes `weir bench forward`.
func newBenchForwardCommand(env *Env) *cobra.Command {
	o := forward.Defaults()
	seconds := o.Seconds.Seconds()
	vlan := false
	c := &cobra.Command{
		Use:   "forward",
		Short: "measure packets per second, and what each costs",
		Long:  benchForwardHelp,
		Example: `  weir bench forward
  weir bench forward --turns 20
  weir bench forward --flows 1000,65536,1000000 --raise-conntrack --html report.html --json result.json
  weir bench forward --rules 0,100,1000 --paths nft-nat,weir-nat
  weir bench forward --proto udp,tcp --family 4,6 --cores 1,2 --direction one,both
  weir bench forward --paths weir,weir-qos,kernel,kernel-htb --cores 1,2`,
	}
	f := c.Flags()
	f.IntSliceVar(&o.Frames, "frame", o.Frames, "`bytes` of a frame with its checksum, 64 to 1518; raised to the minimum of the kind of frame")
	f.IntSliceVar(&o.Flows, "flows", o.Flows, "`number` of connections at once")
	f.IntSliceVar(&o.Families, "family", o.Families, "`4|6`, the version of IP")
	f.StringSliceVar(&o.Protocols, "proto", o.Protocols, "`udp|tcp`")
	f.IntSliceVar(&o.Cores, "cores", o.Cores, "`number` of cores that send and forward")
	f.StringSliceVar(&o.Directions, "direction", o.Directions, "`one|both`: from the LAN only, or replies too")
	f.StringSliceVar(&o.Sinks, "sink", o.Sinks, "`far|egress`: drop frames after the last wire, or before it if the path can")
	f.IntSliceVar(&o.Rules, "rules", o.Rules, "`number` of extra rules that match none of the traffic")
	f.IntSliceVar(&o.Tables, "tables", o.Tables, "`number` of addresses in an extra table that holds none of the traffic")
	f.IntSliceVar(&o.Limits, "limit", o.Limits, "`states` that weir has room for (set limit states); 0: the example's limit, or twice the connections")
	f.StringSliceVar(&o.Patterns, "pattern", o.Patterns, "order and sizes of frames: `scattered|ordered|bursts|zipf|imix`")
	f.StringSliceVar(&o.Paths, "paths", o.Paths, "`paths` to measure")
	f.BoolVar(&vlan, "vlan", false, "also measure weir with a VLAN tag on both wires; other devices stand in for VLAN devices, and the benchmark enters them in weir's table")
	f.StringVar(&o.Hook, "hook", o.Hook, "hook at which weir is measured: `xdp|tcx`")
	f.StringVar(&o.Prefetch, "prefetch", o.Prefetch, "whether weir handles packets in two passes: `auto|on|off`, as weir run has it")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each path")
	f.Float64Var(&seconds, "seconds", seconds, "`seconds` of steady traffic in each run")
	f.IntVar(&o.Turns, "turns", o.Turns, "`number` of parts of each run: all paths are in place at once and take turns, for machines whose speed changes while they are measured")
	f.StringVar(&o.Against, "against", "", "another build of weir: each of weir's paths is also measured with this `program`, in turns (--turns)")
	f.BoolVar(&o.RaiseConntrack, "raise-conntrack", false, "raise the limits of conntrack during the benchmark; they are the whole machine's")
	f.BoolVar(&o.Flame, "flame", false, "one more run that is sampled, to see where the core's time goes")
	return benchmarking(env, c, func() *benchmark {
		o.Seconds = time.Duration(seconds * float64(time.Second))
		if vlan {
			o.Paths = append(o.Paths, paths.VLAN...)
		}
		o.Progress, o.Command, o.Version = env.Stderr, benchCommand(), benchVersion()
		b := &benchmark{check: o.Check, estimate: o.Estimate}
		b.run = func(ctx context.Context) (*report.Document, error) {
			r, err := forward.Run(ctx, o)
			if r == nil {
				return nil, err
			}
			b.own = ownForms{text: r.WriteText, json: r.WriteJSON}
			return r.Document(), err
		}
		return b
	})
}
