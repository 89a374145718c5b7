package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"weir/internal/bench/compare"
)

// newBenchCompareCommand makes `weir bench compare`.
func newBenchCompareCommand(env *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare A.json B.json",
		Short: "what differs between two reports by more than chance",
		Long: `compare pairs the measurements of two reports by name. For each pair it prints a block
as FreeBSD's ministat does: dots for runs, averages (A), medians (M), standard
deviations, the difference with its 95 % interval, and the smallest effect that these
runs could have shown.

Among many comparisons some seem proven by chance, so verdicts are corrected for their
number (Holm). Machines differ too: compare says if the reports are from different ones.

Exit status 1: B is proven worse than A. 3: nothing is decided, because a report's own
control failed, because of every measurement one report has too few runs, or because who
measured was the limit in both. 2: a file is no report, or the two have nothing in
common. --json prints an object in all these cases; refused says why there is no result.`,
		Example: `  weir bench forward --json before.json
  weir bench forward --json after.json
  weir bench compare before.json after.json`,
		Args: exactly(2, "bench compare: name two files that --json of weir bench wrote"),
		RunE: func(_ *cobra.Command, names []string) error {
			result, err := compareFiles(names[0], names[1])
			if err != nil {
				err = fmt.Errorf("bench compare: %w", err)
				if asJSON {
					err = errors.Join(env.printJSON(map[string]string{"refused": err.Error()}), err)
				}
				if errors.Is(err, compare.ErrUntrusted) {
					fmt.Fprintf(env.Stderr, "weir: %v\n", err)
					return &StatusError{exitUndecided}
				}
				return &UsageError{err}
			}
			if err := env.print(asJSON, result, result.WriteText); err != nil {
				return err
			}
			switch {
			case result.Regressions > 0:
				return ErrSilent
			case !result.Decided():
				return &StatusError{exitUndecided}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func compareFiles(first, second string) (*compare.Result, error) {
	a, err := readSource(first)
	if err != nil {
		return nil, err
	}
	b, err := readSource(second)
	if err != nil {
		return nil, err
	}
	return compare.Compare(a, b)
}

func readSource(name string) (*compare.Source, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	defer f.Close()
	return compare.Read(name, f)
}
