package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"weir/internal/bench/gate"
	"weir/internal/bench/report"
)

// newBenchGateCommand makes `weir bench gate`.
func newBenchGateCommand(env *Env) *cobra.Command {
	record := false
	var out reportFlags
	file := "docs/performance/gate.json"
	c := &cobra.Command{
		Use:   "gate",
		Short: "whether weir has become slower than its recorded ratios",
		Long: `gate measures weir : redirect and weir-nat : nft-nat at 1,000 flows and compares these
ratios with recorded ones. Absolute figures do not matter. If nothing is slower, one
run of less than a minute is enough. Exit status 1: in three runs with a valid control,
a ratio is more than 15 % below the recorded one (30 % on a CPU without records). A
failed control, or a machine that is too busy to judge, is only a notice. A path that
cannot be measured, such as nftables without nft, is an error.`,
		Example: `  weir bench gate             # in weir's source tree
  weir bench gate --record    # replaces what is recorded for this CPU`,
		RunE: func(c *cobra.Command, _ []string) error {
			if record {
				return recordGate(c.Context(), env, file, out)
			}
			return watchGate(c.Context(), env, file, &out)
		},
	}
	c.Flags().StringVar(&file, "file", file, "`file` with the recorded ratios")
	c.Flags().BoolVar(&record, "record", false, "measure three runs and record their ratios instead")
	out.add(c)
	return c
}

func recordGate(ctx context.Context, env *Env, name string, out reportFlags) error {
	if out != (reportFlags{}) {
		return &UsageError{benchError("gate", errors.New("--record makes no report: it writes what it has found to --file"))}
	}
	f, err := gate.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = &gate.File{}, nil
	}
	if err != nil {
		return &UsageError{benchError("gate", err)}
	}
	if err := needBPF(); err != nil {
		return err
	}
	ctx, stop := outlive(ctx) // its network is removed, however the run ends
	defer stop()
	record, err := gate.Measure(ctx, env.Stderr)
	if err != nil {
		return benchError("gate", err)
	}
	f.Put(record)
	if err := f.Write(name); err != nil {
		return benchError("gate", err)
	}
	for _, r := range record.Ratios {
		fmt.Fprintf(env.Stdout, "%s : %s: %.3f\n", r.Of, r.To, r.Mpps)
	}
	return nil
}

func watchGate(ctx context.Context, env *Env, name string, out *reportFlags) error {
	var f *gate.File
	var result *gate.Result
	b := &benchmark{name: "gate",
		check: func() (err error) {
			f, err = gate.ReadFile(name)
			return err
		}}
	b.run = func(ctx context.Context) (*report.Document, error) {
		r, err := gate.Watch(ctx, f, env.Stderr)
		if err != nil {
			return nil, err
		}
		result, b.own = r, ownForms{text: r.WriteText}
		return r.Document(benchCommand()), nil
	}
	err := b.do(ctx, env, out)
	switch {
	case result == nil || err != nil && !errors.Is(err, ErrSilent):
		return err
	case !result.OK():
		return ErrSilent
	}
	return nil // a failed control is only a notice
}
