package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/pf/parser"
	"weir/pf/source"
)

// Limits of load --confirm. Nobody types `weir confirm` faster, and a rollback on the
// next day surprises people.
const (
	minConfirm = time.Second
	maxConfirm = 24 * time.Hour
)

// noDNSUsage is the help text for -N in all commands that read rules.
const noDNSUsage = "do not look up hosts in the DNS"

var errConfirm = errors.New("--confirm takes 1s to 24h")

// loading holds the flags of load.
type loading struct {
	confirm time.Duration // 0: no rollback
	noDNS   bool
	json    bool
	macros  macrosFlag
	without source.Without
}

// loadRecord is the output of load --json.
type loadRecord struct {
	File string `json:"file"`
	*control.LoadResult
	Confirm float64 `json:"confirm_within_s,omitempty"`
}

func newLoadCommand(env *Env) *cobra.Command {
	var o loading
	c := &cobra.Command{
		Use:   "load FILE|-",
		Short: "replace the rules; a file with an error changes nothing",
		Long: `load replaces the rules. Connections go on. A file with an error changes nothing.
With - for FILE it reads standard input.
Included files and the files of tables are read now; later changes to them have no
effect.

With --confirm, the old rules come back unless weir confirm comes in time. Type it in
another session, which proves that you still get in. The daemon keeps the time, so
the end of your session changes nothing. A daemon that is asked to end rolls back
first. If it dies or is replaced, the next start loads the old rules instead of its
file. A second load --confirm starts the time anew; the rules that come back are
still the last confirmed ones. A load without --confirm is final. weir info shows
what waits.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("confirm") && (o.confirm < minConfirm || o.confirm > maxConfirm) {
				return &UsageError{errConfirm}
			}
			return env.load(c.Context(), args[0], &o)
		},
	}
	c.Flags().BoolVarP(&o.noDNS, "no-dns", "N", false, noDNSUsage)
	c.Flags().DurationVar(&o.confirm, "confirm", 0, "roll back after this `time`, such as 60s, unless weir confirm comes first")
	c.Flags().VarP(&o.macros, "define", "D", macrosUsage)
	c.Flags().Var(&o.without, "without", withoutUsage)
	jsonFlag(c, &o.json)
	return c
}

func (e *Env) load(ctx context.Context, file string, o *loading) error {
	folder, err := e.daemonFolder()
	if err != nil {
		return err
	}
	name, text, err := readRules(ctx, e, file)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	path := "/dev/stdin"
	if file != "-" {
		if path, err = filepath.Abs(file); err != nil {
			return fmt.Errorf("find the rule file's folder: %w", err)
		}
	}
	file = name
	beside := parser.Beside(file, text, o.macros, source.Disk{})
	beside.Without = o.without
	request := control.LoadRequest{File: file, Path: path, Text: string(text), Beside: beside, Confirm: o.confirm, NoDNS: o.noDNS}
	a, err := control.NewClient(folder).Load(ctx, request)
	if err != nil {
		return err
	}
	if o.json {
		return e.printJSON(loadRecord{file, a, o.confirm.Seconds()})
	}
	e.warn(a.Warnings)
	fmt.Fprintf(e.Stdout, "%s: %s in force\n", file, rundir.RuleCount(a.Rules))
	if a.Before != "" {
		fmt.Fprintf(e.Stdout, "%[2]s comes back in %[1]v unless you run weir confirm\n", o.confirm, a.Before)
	}
	return nil
}

func newConfirmCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "confirm",
		Short: "keep the rules that weir load --confirm loaded",
	}
	return printing(env, c, func(ctx context.Context, _ []string) (*control.ConfirmResult, error) {
		folder, err := env.daemonFolder()
		if err != nil {
			return nil, err
		}
		return control.NewClient(folder).Confirm(ctx)
	}, func(a *control.ConfirmResult) error {
		_, err := fmt.Fprintf(env.Stdout, "%s stays in force\n", a.File)
		return err
	})
}
