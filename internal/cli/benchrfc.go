package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/report"
	"weir/internal/bench/rfc"
)

// newBenchRFCCommand makes `weir bench rfc2544`, rfc3511, rfc9411, rfc9693 or web. They
// differ only in their tests.
func newBenchRFCCommand(env *Env, s rfc.Standard) *cobra.Command {
	o := rfc.Defaults(s.Name)
	var seconds float64
	var full bool
	c := &cobra.Command{
		Use:   s.Name,
		Short: s.Title + ": " + s.About,
		Long:  rfcHelp(s),
		Example: fmt.Sprintf("  weir bench %[1]s\n  weir bench %[1]s --test %[2]s --html report.html --json result.json\n  weir bench %[1]s --full",
			s.Name, s.Tests[0].Name),
	}
	f := c.Flags()
	f.StringSliceVar(&o.Tests, "test", nil, "`tests` to do, all without: "+strings.Join(s.TestNames(), ", "))
	f.StringSliceVar(&o.Paths, "paths", o.Paths, "`paths` to test")
	f.StringVar(&o.Hook, "hook", o.Hook, "hook at which weir is tested: `xdp|tcx`")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each path in each test")
	f.Float64Var(&seconds, "seconds", 0, "`seconds` for which frames are offered in each trial (0.2 without) and clients sustain their load (1 without)")
	f.BoolVar(&full, "full", false, "the durations, frame sizes and numbers of connections that the RFC asks for: hours")
	if s.Frames {
		f.IntSliceVar(&o.Frames, "frame", o.Frames, "`bytes` of a frame with its checksum, 64 to 1518")
		f.IntVar(&o.Flows, "flows", o.Flows, "`number` of connections that frames are spread over")
	}
	if s.Connections {
		f.IntVar(&o.Connections, "connections", o.Connections, "`number` of connections to open in tests of how many fit")
	}
	if s.Clients {
		f.IntVar(&o.Clients, "clients", o.Clients, "`number` of clients at once in tests with HTTP")
	}
	return benchmarking(env, c, func() *benchmark {
		chosen := o
		if full {
			chosen = withDurations(c, o)
		}
		if c.Flags().Changed("seconds") {
			chosen.Trial = time.Duration(seconds * float64(time.Second))
			chosen.Sustain = chosen.Trial
		}
		chosen.Progress, chosen.Version, chosen.Command = env.Stderr, release, benchCommand()
		return &benchmark{check: chosen.Check, estimate: chosen.Estimate,
			run: func(ctx context.Context) (*report.Document, error) { return rfc.Run(ctx, chosen) }}
	})
}

// withDurations sets the RFC's durations, except those that a flag sets.
func withDurations(c *cobra.Command, o rfc.Options) rfc.Options {
	full := o
	full.Lengthen()
	for name, keep := range map[string]func(){
		"frame":       func() { full.Frames = o.Frames },
		"connections": func() { full.Connections = o.Connections },
	} {
		if c.Flags().Changed(name) {
			keep()
		}
	}
	return full
}

func rfcHelp(s rfc.Standard) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s tests the kernel's routing, nftables and weir in turn, in network namespaces\nof its own: %s.\n\n", s.Name, s.About)
	width := 0
	for _, t := range s.Tests {
		width = max(width, len(t.Name))
	}
	for _, t := range s.Tests {
		fmt.Fprintf(&b, "  %-*s  %s (%s)\n", width, t.Name, t.Title, t.Where)
	}
	b.WriteString(`
In each test the last path is tested twice as if it were two: if these differ by
more than 5 %, the test's figures are printed but nothing is concluded from them.
Where that is so in all tests the exit status is 1. What was measured before
Ctrl-C, or before something went wrong, is reported without verdicts. docs/measuring.md says what is done differently from the RFC, and why.`)
	return b.String()
}
