package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"weir/internal/bench/gate"
)

// newBenchGateCommand is "weir bench gate".
func newBenchGateCommand(env *Env) *cobra.Command {
	var asJSON, record bool
	file := "docs/performance/gate.json"
	c := &cobra.Command{
		Use:   "gate",
		Short: "whether weir has become slower than its recorded ratios",
		Long: `gate measures weir : redirect and weir-nat : nft-nat at 1,000 flows and compares
these ratios with recorded ones; absolute figures do not matter. One run of less
than a minute is enough where nothing is slower. Exit status 1: in three runs
whose A/A control holds, each, a ratio lies more than 15 % under the recorded
one (30 % on a CPU that nothing was recorded on). A control that fails is a
notice, and so is a machine too restless to judge. A path that cannot be
measured, such as nftables where nft is missing, is an error.`,
		Example: `  weir bench gate             # in weir's source tree
  weir bench gate --record    # replaces what is recorded for this CPU`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := gate.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) && record {
				f, err = &gate.File{}, nil
			}
			if err != nil {
				return &UsageError{fmt.Errorf("bench gate: %w", err)}
			}
			if err := needRoot(); err != nil {
				return err
			}
			ctx, stop := outlive(c.Context()) // its network is removed whatever ends it
			defer stop()
			if record {
				return recordGate(ctx, env, f, file)
			}
			return watchGate(ctx, env, f, asJSON)
		},
	}
	c.Flags().StringVar(&file, "file", file, "`file` with the recorded ratios")
	c.Flags().BoolVar(&record, "record", false, "measure three runs and record their ratios instead")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func recordGate(ctx context.Context, env *Env, f *gate.File, name string) error {
	record, err := gate.Measure(ctx, env.Stderr)
	if err != nil {
		return benchError("gate", err)
	}
	f.Put(record)
	if err := f.Write(name); err != nil {
		return benchError("gate", err)
	}
	for _, r := range record.Ratios {
		fmt.Fprintf(env.Stdout, "%s: %.3f\n", r.Name(), r.Mpps)
	}
	return nil
}

func watchGate(ctx context.Context, env *Env, f *gate.File, asJSON bool) error {
	result, err := gate.Watch(ctx, f, env.Stderr)
	if err != nil {
		return benchError("gate", err)
	}
	write := result.WriteText
	if asJSON {
		write = result.WriteJSON
	}
	if err := write(env.Stdout); err != nil {
		return err
	}
	if !result.OK {
		return ErrSilent
	}
	return nil
}
