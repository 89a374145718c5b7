package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench"
)

// newBenchCommand is "weir bench": figures of this machine.
func newBenchCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "measure weir, nftables and the kernel side by side on this machine",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchForwardCommand(env), newBenchLanguageCommand(env))
	return c
}

// newBenchForwardCommand is "weir bench forward".
func newBenchForwardCommand(env *Env) *cobra.Command {
	o := bench.Defaults()
	seconds := o.Seconds.Seconds()
	var jsonFile string
	var markdown bool
	c := &cobra.Command{
		Use:   "forward",
		Short: "how many packets per second are forwarded, and at what cost",
		Long: `forward measures paths through a firewall in network namespaces of its own, in
turn and several times, with frames that a program writes in the kernel:

  generator  frames end at the firewall's door: what the measuring itself costs
  redirect   a bare XDP redirect: the limit of this machine
  kernel     the kernel's routing without rules
  nft        examples/gateway.nft, traffic that is not translated
  nft-nat    examples/gateway.nft, traffic that is
  weir       examples/gateway.conf, traffic that is not translated
  weir-nat   examples/gateway.conf, traffic that is

Lists multiply: every combination is measured. Frames are checked on arrival
before any are counted, and one path is measured twice as if it were two: if
these differ by more than 5 %, figures are printed but nothing is concluded
from them, and the exit status is 1. docs/measuring.md describes the method.`,
		Example: `  weir bench forward
  weir bench forward --flows 1000,65536,1000000 --raise-conntrack --json result.json
  weir bench forward --proto udp,tcp --family 4,6 --cores 1,2 --direction one,both`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			o.Seconds = time.Duration(seconds * float64(time.Second))
			o.Progress, o.Command = env.Stderr, "weir "+strings.Join(os.Args[1:], " ")
			if err := o.Check(); err != nil {
				return &UsageError{err}
			}
			if err := needRoot(); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "this takes about %s\n", o.Estimate().Round(time.Second))
			report, err := bench.Forward(c.Context(), o)
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("bench forward: interrupted (%w)", err)
			}
			if err != nil {
				return fmt.Errorf("bench forward: %w", err)
			}
			return writeReport(env, report, jsonFile, markdown)
		},
	}
	f := c.Flags()
	f.IntSliceVar(&o.Frames, "frame", o.Frames, "`bytes` of a frame with its checksum, 64 to 1518; raised to the least that a kind of frame needs")
	f.IntSliceVar(&o.Flows, "flows", o.Flows, "`number` of connections at once")
	f.IntSliceVar(&o.Families, "family", o.Families, "`4|6`, the version of IP")
	f.StringSliceVar(&o.Protocols, "proto", o.Protocols, "`udp|tcp`")
	f.IntSliceVar(&o.Cores, "cores", o.Cores, "`number` of cores that send and forward")
	f.StringSliceVar(&o.Directions, "direction", o.Directions, "`one|both`: from the LAN, or also the answers")
	f.StringSliceVar(&o.Sinks, "sink", o.Sinks, "`far|egress`: frames are dropped behind the last wire, or before it where a path can")
	f.StringSliceVar(&o.Paths, "paths", o.Paths, "`paths` to measure")
	f.StringVar(&o.Hook, "hook", o.Hook, "hook at which weir is measured: `xdp|tcx`")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each path")
	f.Float64Var(&seconds, "seconds", seconds, "`seconds` of steady traffic in each run")
	f.BoolVar(&o.RaiseConntrack, "raise-conntrack", false, "make room for the flows in conntrack while the benchmark runs; its limits are the whole machine's")
	f.StringVar(&jsonFile, "json", "", "also write the report to this `file`")
	f.BoolVar(&markdown, "markdown", false, "print the table in Markdown")
	return c
}

// writeReport prints the report; where its control failed that is said by the
// exit status as well.
func writeReport(env *Env, report *bench.Report, jsonFile string, markdown bool) error {
	if jsonFile != "" {
		if err := writeFile(jsonFile, report); err != nil {
			return err
		}
	}
	write := report.WriteText
	if markdown {
		write = report.WriteMarkdown
	}
	if err := write(env.Stdout); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if !report.Control.OK {
		return ErrSilent
	}
	return nil
}

// jsonWriter is a report that can be written as JSON.
type jsonWriter interface{ WriteJSON(w io.Writer) error }

func writeFile(name string, report jsonWriter) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	defer func() {
		if closing := f.Close(); err == nil && closing != nil {
			err = fmt.Errorf("write the report: %w", closing)
		}
	}()
	return report.WriteJSON(f)
}
