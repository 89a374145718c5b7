package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weir/internal/bench"
)

// newBenchLanguageCommand is "weir bench language".
func newBenchLanguageCommand(env *Env) *cobra.Command {
	rounds := 5
	var jsonFile string
	c := &cobra.Command{
		Use:   "language",
		Short: "what it costs to read rules",
		Long: `language reads files of 10,000 and of 100,000 rules, with warnings, with and
without -o basic of "weir check", and a table of 1,000,000 addresses. It says
how much time of the cores that takes, with collecting garbage, and how much
memory is in use then: medians of several rounds, in each of which the smaller
files are read ten times. Exit status 1: ten times as many rules take more than
13 times as long, or a rule takes more than 3,000 bytes.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if rounds < 1 {
				return &UsageError{benchError("language", errors.New("--runs must be 1 at least"))}
			}
			report, err := bench.Language(rounds, env.Stderr)
			if err != nil {
				return benchError("language", err)
			}
			if jsonFile != "" {
				if err := writeFile(jsonFile, report.WriteJSON); err != nil {
					return err
				}
			}
			if err := report.WriteText(env.Stdout); err != nil {
				return fmt.Errorf("print the report: %w", err)
			}
			if !report.OK() {
				return ErrSilent
			}
			return nil
		},
	}
	c.Flags().IntVar(&rounds, "runs", rounds, "`number` of rounds")
	c.Flags().StringVar(&jsonFile, "json", "", "also write the report to this `file`")
	return c
}
