package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/report"
	"weir/internal/bench/stages"
)

// newBenchStagesCommand makes `weir bench stages`.
func newBenchStagesCommand(env *Env) *cobra.Command {
	o := stages.Defaults()
	seconds := o.Seconds.Seconds()
	var out reportFlags
	var record, table bool
	dir := "docs/performance"
	c := &cobra.Command{
		Use:   "stages",
		Short: "what each stage of weir's packet path costs: parse, look-up, track, NAT, counters, redirect",
		Long: `stages forwards frames as "weir bench forward" does and samples the forwarding core.
Each sample is a line of the running program, and each line belongs to a stage. So
the program is measured as it ships. --record keeps the result under the checked-out
commit. --table only writes the table of the kept results again.
Exit status 1: the control failed.`,
		Example: `  weir bench stages
  weir bench stages --paths weir,weir-qos --runs 10
  weir bench stages --flows 1000,1000000 --json stages.json
  weir bench stages --record     # in weir's source tree`,
		RunE: func(c *cobra.Command, _ []string) error {
			if table {
				return stages.WriteTable(dir)
			}
			o.Seconds = time.Duration(seconds * float64(time.Second))
			o.Progress, o.Command = env.Stderr, benchCommand()
			return runStages(c.Context(), env, o, &out, recording{record, dir})
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Paths, "paths", o.Paths, "`paths` of weir to measure, as weir bench forward has them")
	f.IntSliceVar(&o.Flows, "flows", o.Flows, "`number` of connections at once")
	f.IntVar(&o.Runs, "runs", o.Runs, "`number` of runs of each path")
	f.Float64Var(&seconds, "seconds", seconds, "`seconds` of steady traffic in each run")
	f.BoolVar(&record, "record", false, "keep the result under the commit that is checked out, and rewrite the table")
	f.BoolVar(&table, "table", false, "measure nothing, only rewrite the table")
	f.StringVar(&dir, "dir", dir, "`folder` of the records and their table")
	out.add(c)
	return c
}

// recording says whether and where to keep a result.
type recording struct {
	wanted bool
	dir    string
}

func runStages(ctx context.Context, env *Env, o stages.Options, out *reportFlags, keep recording) error {
	var commit string
	var recorded error // reported after the report
	check := func() (err error) {
		if err := o.Check(); err != nil || !keep.wanted {
			return err
		}
		if commit, err = checkedOut(ctx); err != nil {
			return fmt.Errorf("--record: %w", err)
		}
		return nil
	}
	b := &benchmark{name: "stages", check: check, estimate: o.Estimate,
		run: func(ctx context.Context) (*report.Document, error) {
			r, err := stages.Run(ctx, o)
			if err == nil && keep.wanted {
				recorded = r.Record(keep.dir, commit)
			}
			return documentOf(r, err)
		}}
	return errors.Join(b.do(ctx, env, out), recorded)
}

// checkedOut returns the commit of the working folder, with a + if the sources differ
// from it.
func checkedOut(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--dirty=+").Output()
	if err != nil {
		return "", fmt.Errorf("ask git for the commit that is checked out: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
