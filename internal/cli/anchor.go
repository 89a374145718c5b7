package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
	"weir/pf/parser"
	"weir/pf/source"
)

const anchorHelp = `anchor changes the rules of single anchors while all others stay in force. A change
is in force on all cores at once. Connections go on under the rules that made them.

What is loaded takes the place of the rules that the rule file has for the anchor. It
outlives the daemon, and loads of the rule file, except of one that has rules for
the anchor itself. weir stop forgets it. It may have filter and translation rules,
tables, macros and further anchors, but no options and no queues.

A rule of the rule file, such as anchor "NAME" or anchor "NAME/*", says where the
rules are evaluated. Without one they are kept, and have no effect.`

func newAnchorCommand(env *Env) *cobra.Command {
	c := &cobra.Command{Use: "anchor", Short: "load, show and flush the rules of single anchors", Long: anchorHelp}
	c.AddCommand(newAnchorLoadCommand(env), newAnchorShowCommand(env), newAnchorListCommand(env), newAnchorFlushCommand(env))
	return c
}

func newAnchorLoadCommand(env *Env) *cobra.Command {
	var o anchorLoading
	c := &cobra.Command{
		Use:   "load PATH FILE|-",
		Short: "replace the rules of one anchor; a file with an error changes nothing",
		Args:  exactly(2, "name an anchor and a file; - is standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			path, _, err := source.ParseAnchor(args[0], false)
			if err != nil {
				return &UsageError{err}
			}
			return env.loadAnchor(c.Context(), path, args[1], &o)
		},
	}
	c.Flags().VarP(&o.macros, "define", "D", macrosUsage)
	c.Flags().BoolVarP(&o.noDNS, "no-dns", "N", false, noDNSUsage)
	c.Flags().BoolVarP(&o.dry, "dry-run", "n", false, "check the rules together with those in force, and print them; change nothing")
	jsonFlag(c, &o.json)
	return c
}

// anchorLoading holds the flags of anchor load.
type anchorLoading struct {
	macros macrosFlag
	noDNS  bool
	dry    bool
	json   bool
}

// loadAnchor replaces the rules of an anchor, or checks them.
func (e *Env) loadAnchor(ctx context.Context, path, file string, o *anchorLoading) error {
	one, err := e.readAnchor(ctx, path, file, o.macros)
	if err != nil {
		return err
	}
	if o.dry {
		return e.checkAnchor(ctx, &control.AnchorChange{Load: one, NoDNS: o.noDNS, Check: true}, o.json)
	}
	done, err := e.changeAnchor(ctx, &control.AnchorChange{Load: one, NoDNS: o.noDNS})
	if err != nil {
		return err
	}
	if o.json {
		return e.printJSON(done)
	}
	e.warn(done.Warnings)
	fmt.Fprintf(e.Stdout, "anchor %s loaded: %s in force\n", path, rundir.RuleCount(done.Rules))
	return nil
}

// checkAnchor prints the rules that a change would load.
func (e *Env) checkAnchor(ctx context.Context, change *control.AnchorChange, asJSON bool) error {
	done, err := e.changeAnchor(ctx, change)
	if err != nil {
		return err
	}
	if asJSON {
		return e.printJSON(done)
	}
	e.warn(done.Warnings)
	return e.printLines(done.Lines)
}

// changeAnchor asks the daemon for a change.
func (e *Env) changeAnchor(ctx context.Context, change *control.AnchorChange) (*control.AnchorChanged, error) {
	folder, err := e.daemonFolder()
	if err != nil {
		return nil, err
	}
	return control.NewClient(folder).ChangeAnchor(ctx, change)
}

// warn prints warnings of a load.
func (e *Env) warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(e.Stderr, w)
	}
}

// printLines prints rules.
func (e *Env) printLines(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(e.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// readAnchor reads the rules of an anchor, and the files that they name.
func (e *Env) readAnchor(ctx context.Context, path, file string, macros macrosFlag) (*source.Anchor, error) {
	name, text, err := readRules(ctx, e, file)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	if file != "-" {
		if name, err = filepath.Abs(file); err != nil {
			return nil, fmt.Errorf("find the rule file's folder: %w", err)
		}
	}
	files := parser.Beside(name, text, macros, source.Disk{}).Files
	return &source.Anchor{Path: path, Name: name, Text: string(text), Files: files, Macros: macros}, nil
}

func newAnchorShowCommand(env *Env) *cobra.Command {
	var verbose int
	var asJSON bool
	c := &cobra.Command{
		Use:   "show PATH|PATH/*",
		Short: "print the rules of an anchor, or of all below it; -v adds their counters, -vv their numbers",
		Args:  exactly(1, "name one anchor, or all below one: NAME/*"),
		RunE: func(_ *cobra.Command, args []string) error {
			return env.showAnchor(args[0], verbose, asJSON)
		},
	}
	c.Flags().CountVarP(&verbose, "verbose", "v", "print evaluations, packets, bytes and states too; twice: also the rule numbers that weir states uses")
	jsonFlag(c, &asJSON)
	return c
}

// anchors returns the anchors with rules, the rules in force, and the process that loaded
// them.
func (e *Env) anchors() (anchors []rundir.Anchor, rules []view.Rule, pid int, err error) {
	r, err := e.reader()
	if err != nil {
		return nil, nil, 0, err
	}
	defer r.Close()
	return r.Anchors()
}

// showAnchor prints the rules of an anchor.
func (e *Env) showAnchor(arg string, verbose int, asJSON bool) error {
	path, below, err := source.ParseAnchor(arg, true)
	if err != nil {
		return &UsageError{err}
	}
	anchors, rules, pid, err := e.anchors()
	if err != nil {
		return err
	}
	if asJSON {
		inside := []view.Rule{}
		for i := range rules {
			if rundir.Within(rules[i].Scope, path, below) {
				inside = append(inside, rules[i])
			}
		}
		return e.printJSON(inside)
	}
	return view.PrintAnchor(e.Stdout, rules, anchors, path, below, verbose, pid)
}

func newAnchorListCommand(env *Env) *cobra.Command {
	var verbose bool
	c := &cobra.Command{
		Use:   "list",
		Short: "print the paths of the anchors with rules; -v says how many, and where they come from",
		Args:  noArgs,
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print how many rules, where they come from, and whether a rule evaluates them")
	return printing(env, c, func(context.Context, []string) ([]rundir.Anchor, error) {
		anchors, _, _, err := env.anchors()
		return anchors, err
	}, func(anchors []rundir.Anchor) error {
		for i := range anchors {
			if err := printAnchor(env, &anchors[i], verbose); err != nil {
				return err
			}
		}
		return nil
	})
}

func printAnchor(env *Env, a *rundir.Anchor, verbose bool) error {
	text := a.Path
	if verbose {
		text = fmt.Sprintf("%-30s  %s, from the rule file", a.Path, rundir.RuleCount(a.Rules))
		if a.AtRunTime {
			text = fmt.Sprintf("%-30s  %s, loaded at run time", a.Path, rundir.RuleCount(a.Rules))
		}
		switch {
		case !a.Called:
			text += "; no rule evaluates them"
		case len(a.Lines) > 0:
			text += "; some of them are never evaluated"
		}
	}
	_, err := fmt.Fprintln(env.Stdout, text)
	return err
}

func newAnchorFlushCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "flush PATH|PATH/*",
		Short: "remove the rules of an anchor, or of all below it",
		Args:  exactly(1, "name one anchor, or all below one: NAME/*"),
	}
	return printing(env, c, func(ctx context.Context, args []string) (*control.AnchorChanged, error) {
		path, below, err := source.ParseAnchor(args[0], true)
		if err != nil {
			return nil, &UsageError{err}
		}
		return env.flushAnchor(ctx, &control.AnchorChange{Flush: path, Below: below})
	}, func(a *control.AnchorChanged) error {
		for _, path := range a.Flushed {
			if _, err := fmt.Fprintf(env.Stdout, "anchor %s flushed\n", path); err != nil {
				return err
			}
		}
		return nil
	})
}

// errNoSuchAnchor means that an anchor to be flushed has no rules.
var errNoSuchAnchor = errors.New("no such anchor has rules")

// flushAnchor removes the rules of an anchor, or of all below it.
func (e *Env) flushAnchor(ctx context.Context, flush *control.AnchorChange) (*control.AnchorChanged, error) {
	a, err := e.changeAnchor(ctx, flush)
	if err == nil && len(a.Flushed) == 0 && !flush.Below {
		return nil, fmt.Errorf("%w: %s", errNoSuchAnchor, flush.Flush)
	}
	return a, err
}
