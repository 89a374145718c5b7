package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/forward"
	"weir/internal/demo"
)

func newDemoCommand(env *Env) *cobra.Command {
	var name string
	var noBench bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "show a home gateway between two networks, then measure it",
		Long: `demo builds a home gateway from network namespaces, loads examples/gateway.conf and
uses it with ping, iperf3 and curl, under TCX and under XDP. Every line is a check.
The first check that fails ends the demo with status 1. Then demo measures weir beside
nftables and the bare kernel. It needs root and leaves nothing behind.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkLab(name); err != nil {
				return err
			}
			if err := needBPF(); err != nil {
				return err
			}
			ctx, stop := outlive(c.Context()) // its networks are removed, however the command ends
			defer stop()
			if err := demo.Run(ctx, demo.Options{Name: name, Stdout: env.Stdout}); err != nil || noBench {
				return err
			}
			return measure(ctx, env)
		},
	}
	c.Flags().StringVar(&name, "name", demo.DefaultName, "`prefix` of the namespaces' names")
	c.Flags().BoolVar(&noBench, "no-bench", false, "leave out the measurement")
	return c
}

// measure runs the short benchmark. A failed control means that the machine was too
// busy to measure; the demonstration still counts.
func measure(ctx context.Context, env *Env) error {
	o := forward.Short()
	fmt.Fprintf(env.Stdout, "\nhow fast, on this machine (weir bench forward, short form, about %s):\n", o.Estimate().Round(time.Second))
	report, err := forward.Run(ctx, o)
	if errors.Is(err, context.Canceled) {
		return errors.New("measure: interrupted")
	}
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	var only reportFlags // only the table on standard output
	err = only.write(env, report.Document(), ownForms{text: report.WriteText})
	if errors.Is(err, ErrSilent) {
		fmt.Fprintln(env.Stdout, "\nevery check above passed; this machine was too busy for the figures to say anything")
		return nil
	}
	return err
}
