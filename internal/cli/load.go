package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/pf/parser"
	"weir/pf/source"
)

// Spans that load --confirm takes: nobody types weir confirm faster, and a
// rollback the next day surprises.
const (
	minConfirm = time.Second
	maxConfirm = 24 * time.Hour
)

// noDNSUsage is what -N means, of all commands that read rules.
const noDNSUsage = "do not look hosts up in the DNS"

var errConfirm = errors.New("--confirm takes 1s to 24h")

// loading is what load is asked for, besides the file.
type loading struct {
	confirm time.Duration // 0: nothing comes back
	noDNS   bool
	json    bool
	macros  macrosFlag
}

// loadRecord is what load prints with --json.
type loadRecord struct {
	File string `json:"file"`
	*control.LoadAnswer
	Confirm float64 `json:"confirm_within_s,omitempty"`
}

func newLoadCommand(env *Env) *cobra.Command {
	var o loading
	c := &cobra.Command{
		Use:   "load FILE",
		Short: "replace the rules by those in a file; a file that does not load changes nothing",
		Long: `load puts the rules in a file in force; connections go on. A file that does not
load changes nothing. The files that it includes, and those of its tables, are
read now and sent with it: what changes in them later changes nothing.

With --confirm the rules before come back by themselves unless weir confirm
comes in time: from another session, to see that one still gets in. The daemon
keeps the time, so the end of the session that typed it changes nothing. A
daemon that is asked to end meanwhile rolls back before it does. If it dies or
is replaced, its next start loads the rules before,
not its file. A second load --confirm starts the time anew, and what comes back
are still the rules that were confirmed last. A load without --confirm stays, and
nothing comes back any more. weir info says what waits.`,
		Args: usageArgs(oneFile),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("confirm") && (o.confirm < minConfirm || o.confirm > maxConfirm) {
				return &UsageError{errConfirm}
			}
			return env.load(c, args[0], &o)
		},
	}
	c.Flags().BoolVarP(&o.noDNS, "no-dns", "N", false, noDNSUsage)
	c.Flags().DurationVar(&o.confirm, "confirm", 0, "roll back by itself after this `span`, such as 60s, unless weir confirm comes before")
	c.Flags().VarP(&o.macros, "define", "D", macrosUsage)
	jsonFlag(c, &o.json)
	return c
}

func (e *Env) load(c *cobra.Command, file string, o *loading) error {
	folder, err := e.folder()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("find the rule file's folder: %w", err)
	}
	beside := parser.Beside(file, text, o.macros, source.Disk{})
	request := control.LoadRequest{File: file, Path: path, Text: string(text), Beside: beside, Confirm: o.confirm, NoDNS: o.noDNS}
	a, err := control.NewClient(folder).Load(c.Context(), request)
	if err != nil {
		return err
	}
	if o.json {
		return e.printJSON(loadRecord{file, a, o.confirm.Seconds()})
	}
	for _, w := range a.Warnings {
		fmt.Fprintln(e.Stderr, w)
	}
	fmt.Fprintf(e.Stdout, "%s: %s in force\n", file, rundir.RuleCount(a.Rules))
	if a.Before != "" {
		fmt.Fprintf(e.Stdout, "unless weir confirm comes within %v, %s comes back\n", o.confirm, a.Before)
	}
	return nil
}

func newConfirmCommand(env *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "confirm",
		Short: "keep the rules that weir load --confirm has loaded",
		Args:  usageArgs(noArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			folder, err := env.folder()
			if err != nil {
				return err
			}
			a, err := control.NewClient(folder).Confirm(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return env.printJSON(a)
			}
			fmt.Fprintf(env.Stdout, "%s stays in force\n", a.File)
			return nil
		},
	}
	jsonFlag(c, &asJSON)
	return c
}
