package cli

import (
	"context"

	"github.com/spf13/cobra"

	"weir/internal/bench/language"
	"weir/internal/bench/report"
)

// newBenchLanguageCommand makes `weir bench language`.
func newBenchLanguageCommand(env *Env) *cobra.Command {
	o := language.Defaults()
	c := &cobra.Command{
		Use:   "language",
		Short: "what it costs to read rules",
		Long: `language reads files of 6,000 and of 60,000 rules, with warnings, with and without
-o basic of "weir check", and a table of 1,000,000 addresses. It prints the CPU time,
garbage collection included, and the memory in use: medians of several rounds. Each
round reads the smaller files ten times. Exit status 1: ten times as many rules take
more than 13 times as long, a rule takes more than 3,000 bytes, or the control (the
first kind of file, measured twice) differs by more than 5 %.`,
		Example: `  weir bench language
  weir bench language --runs 10 --html language.html`,
	}
	c.Flags().IntVar(&o.Runs, "runs", o.Runs, "`number` of rounds")
	return benchmarking(env, c, func() *benchmark {
		o.Progress, o.Command = env.Stderr, benchCommand()
		b := &benchmark{check: o.Check, rootless: true, locks: true}
		b.run = func(ctx context.Context) (*report.Document, error) {
			r, err := language.Run(ctx, o)
			b.exceeded = err == nil && !r.OK()
			return documentOf(r, err)
		}
		return b
	})
}
