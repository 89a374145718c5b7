package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/pf/resolve"
	"weir/pf/source"
)

// tableTask is a command for a table, as weir table and weir pfctl take it.
type tableTask struct {
	table   string
	anchor  string
	command control.TableCommand
	words   []string // addresses, or the lifetime of expire
	files   []string // with addresses; "-" is standard input
	dry     bool
	quiet   bool
	noDNS   bool
	json    bool
	names   bool // of addresses, as pfctl -r
	verbose int
}

// exitNoMatch is the status of table test if not all addresses are in the table.
const exitNoMatch = 2

func newTableCommand(env *Env) *cobra.Command {
	t := &tableTask{}
	c := &cobra.Command{
		Use:   "table",
		Short: "show and change tables while rules that name them are in force",
		Long: `table shows and changes tables, as "pfctl -t NAME -T COMMAND" does. A change is in
force for the next new connection. Established connections go on: weir kill ends them.

An address is an address, a network, a host, an interface, a group or self. "!" before
it excludes it from a shorter network of the table. -f reads addresses from a file:
blanks and line ends separate them, # and ; begin comments.

Each command changes the table at once and as a whole: of two programs that change it,
neither loses what it did. Changes outlive the daemon. A load keeps them, unless the file
says what the table holds: docs/language.md, Tables.

What was done is said on standard error; -q leaves it out. -v prints the addresses that
were changed, -vv all addresses, with a letter before them: A added, D deleted, C changed,
Z cleared, M match, X twice in the request, Y not changed, because only one of entry and
address has a "!".`,
	}
	flags := c.PersistentFlags()
	flags.StringVarP(&t.table, "table", "t", "", "`name` of the table")
	flags.StringVarP(&t.anchor, "anchor", "a", "", "`path` of the anchor that the table is in")
	flags.BoolVarP(&t.dry, "dry-run", "n", false, "say what would be done, and change nothing")
	flags.BoolVarP(&t.quiet, "quiet", "q", false, "say nothing about what was done")
	flags.CountVarP(&t.verbose, "verbose", "v", "print the addresses that were changed; of show: times and counters; twice: all addresses")
	flags.BoolVar(&t.json, "json", false, "print JSON")
	add := func(command control.TableCommand, use, short string) *cobra.Command {
		sub := &cobra.Command{Use: use, Short: short, RunE: func(c *cobra.Command, args []string) error {
			task := *t
			task.command, task.words = command, args
			return env.table(c.Context(), &task)
		}}
		c.AddCommand(sub)
		return sub
	}
	for _, sub := range []*cobra.Command{
		add(control.TableAdd, "add [ADDRESS...]", "add addresses; make the table if there is none"),
		add(control.TableDelete, "delete [ADDRESS...]", "delete addresses"),
		add(control.TableReplace, "replace [ADDRESS...]", "make these addresses all that the table holds; make the table if there is none"),
		add(control.TableTest, "test [ADDRESS...]", "look up addresses; exit status 2 if the table lacks one"),
		add(control.TableZero, "zero [ADDRESS...]", "clear the statistics of the table, or of some addresses"),
	} {
		sub.Args = cobra.ArbitraryArgs
		sub.Flags().StringArrayVarP(&t.files, "file", "f", nil, "read addresses from a `file`; - is standard input")
		sub.Flags().BoolVarP(&t.noDNS, "no-dns", "N", false, noDNSUsage)
	}
	add(control.TableExpire, "expire SECONDS", "delete the addresses that were added, or whose statistics were cleared, so long ago").
		Args = exactly(1, "name one number of seconds")
	add(control.TableFlush, "flush", "delete all addresses")
	add(control.TableShow, "show", "print the addresses; -v adds times and counters")
	add(control.TableKill, "kill", "remove a table that was made by add or replace and that no rule names")
	add(control.TableList, "list", "print the tables; -v adds what they are: c const, p persistent, a active, r named by rules, C with counters; -vv: numbers")
	c.AddCommand(newTableLoadCommand(env, t))
	return c
}

// name returns the name that the daemon knows the table by.
func (t *tableTask) name() (string, error) {
	const most = 31 // as in a file
	switch {
	case t.table == "":
		return "", &UsageError{errors.New("name the table: -t NAME")}
	case len(t.table) > most:
		return "", &UsageError{fmt.Errorf("the name of a table has at most %d characters", most)}
	case strings.ContainsAny(t.table, "@<>{}(),!=;#\\\"/") || strings.ContainsFunc(t.table, func(r rune) bool { return r <= ' ' || r == 0x7f || !unicode.IsPrint(r) }):
		return "", &UsageError{fmt.Errorf("%q is no name of a table", t.table)}
	}
	if anchor := strings.Trim(t.anchor, "/"); anchor != "" {
		return t.table + "@" + anchor, nil
	}
	return t.table, nil
}

// table does a command with a table.
func (e *Env) table(ctx context.Context, t *tableTask) error {
	folder, err := e.daemonFolder()
	if err != nil {
		return err
	}
	request, err := e.tableRequest(ctx, t)
	if err != nil {
		return err
	}
	if t.command == control.TableShow && t.verbose > 0 || t.command == control.TableList && t.verbose > 1 {
		return e.tableCounters(ctx, folder, t, request)
	}
	result, err := control.NewClient(folder).Table(ctx, request)
	if err != nil {
		return err
	}
	if t.json {
		err = e.printJSON(t.record(request, result))
	} else {
		err = e.printTable(ctx, t, request, result)
	}
	if err == nil && t.command == control.TableTest && result.Matched < result.Total {
		return &StatusError{exitNoMatch}
	}
	return err
}

// tableRequest reads the addresses of a command.
func (e *Env) tableRequest(ctx context.Context, t *tableTask) (r *control.TableRequest, err error) {
	r = &control.TableRequest{Command: t.command, DryRun: t.dry, Marks: t.verbose > 0 || t.json && t.command == control.TableTest}
	if t.command == control.TableList {
		return r, nil
	}
	if r.Table, err = t.name(); err != nil {
		return nil, err
	}
	switch t.command {
	case control.TableExpire:
		r.Lifetime, err = lifetime(t.words)
	case control.TableFlush, control.TableShow, control.TableKill:
		if len(t.words)+len(t.files) > 0 {
			err = &UsageError{fmt.Errorf("table %s takes no address", t.command)}
		}
	case control.TableZero:
		r.Only = len(t.words)+len(t.files) > 0
		r.Entries, err = e.tableEntries(ctx, t)
	default:
		r.Entries, err = e.tableEntries(ctx, t)
	}
	return r, err
}

// lifetime reads the argument of expire, in seconds.
func lifetime(words []string) (time.Duration, error) {
	if len(words) != 1 {
		return 0, &UsageError{errors.New("name one number of seconds")}
	}
	seconds, err := strconv.ParseUint(words[0], 10, 32)
	if err != nil {
		return 0, &UsageError{fmt.Errorf("%q is no number of seconds from 0 to %d", words[0], uint32(math.MaxUint32))}
	}
	return time.Duration(seconds) * time.Second, nil
}

// tableEntries reads the addresses on the command line, then those of files.
func (e *Env) tableEntries(ctx context.Context, t *tableTask) ([]control.TableEntry, error) {
	host, err := (&checkOptions{noDNS: t.noDNS}).machine()
	if err != nil {
		return nil, err
	}
	var all []control.TableEntry
	take := func(entries []resolve.TableEntry) {
		if all == nil {
			all = make([]control.TableEntry, 0, len(entries))
		}
		for _, e := range entries {
			all = append(all, control.TableEntry(e))
		}
	}
	if len(t.words) > 0 {
		entries, list := resolve.Entries("", []byte(strings.Join(t.words, "\n")), host)
		for i := range list.Items {
			if list.HasErrors() {
				return nil, errors.New(list.Items[i].Text())
			}
		}
		take(entries)
	}
	for _, file := range t.files {
		name, text, err := readRules(ctx, e, file)
		if err != nil {
			return nil, fmt.Errorf("read addresses: %w", err)
		}
		entries, list := resolve.Entries(name, bytes.TrimPrefix(text, []byte("\ufeff")), host)
		if err := list.Err(); err != nil {
			return nil, err
		}
		take(entries)
	}
	return all, nil
}

func newTableLoadCommand(env *Env, t *tableTask) *cobra.Command {
	var macros macrosFlag
	var noDNS bool
	c := &cobra.Command{
		Use:   "load FILE",
		Short: "give tables the contents that a rule file defines, and leave the rules as they are",
		Args:  oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return env.loadTables(c.Context(), t, args[0], macros, noDNS)
		},
	}
	c.Flags().VarP(&macros, "define", "D", macrosUsage)
	c.Flags().BoolVarP(&noDNS, "no-dns", "N", false, noDNSUsage)
	return c
}

// loadTables gives tables what a rule file says that they hold. Tables whose definition
// gives nothing stay as they are, and are made if there are none.
func (e *Env) loadTables(ctx context.Context, t *tableTask, file string, macros macrosFlag, noDNS bool) error {
	name, text, err := readRules(ctx, e, file)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	host, err := (&checkOptions{noDNS: noDNS}).machine()
	if err != nil {
		return err
	}
	rules, list := resolve.LoadWith(name, text, host, resolve.Settings{Files: source.Disk{}, Macros: macros})
	if rules == nil {
		return list.Err()
	}
	only := ""
	if t.table != "" {
		if only, err = t.name(); err != nil {
			return err
		}
	}
	var requests []control.TableRequest
	for _, table := range rules.Tables {
		if strings.HasPrefix(table.Name, "__automatic_") || only != "" && table.Name != only && table.Name+"@"+table.Anchor != only {
			continue
		}
		requests = append(requests, t.contents(table))
	}
	if len(requests) == 0 && only != "" {
		return fmt.Errorf("%s defines no table <%s>", file, t.table)
	}
	return e.fillTables(ctx, t, requests)
}

// contents returns the request that gives a table what its definition says.
func (t *tableTask) contents(table *resolve.Table) control.TableRequest {
	r := control.TableRequest{Table: table.Name, Command: control.TableAdd, DryRun: t.dry, Marks: t.verbose > 0, Given: true}
	if table.Given {
		r.Command = control.TableReplace
	}
	for _, entry := range table.Entries {
		r.Entries = append(r.Entries, control.TableEntry(entry))
	}
	return r
}

// fillTables fills all tables, or none if one of them would be refused.
func (e *Env) fillTables(ctx context.Context, t *tableTask, requests []control.TableRequest) error {
	folder, err := e.daemonFolder()
	if err != nil {
		return err
	}
	client := control.NewClient(folder)
	for i := range requests {
		if t.dry || len(requests) == 1 {
			break
		}
		asked := requests[i]
		asked.DryRun, asked.Marks = true, false
		if _, err := client.Table(ctx, &asked); err != nil {
			return err
		}
	}
	for i := range requests {
		r := &requests[i]
		result, err := client.Table(ctx, r)
		if err != nil {
			return err
		}
		one := *t
		one.table, one.anchor, _ = strings.Cut(r.Table, "@")
		one.command = r.Command
		if t.json {
			err = e.printJSON(one.record(r, result))
		} else {
			err = e.printTable(ctx, &one, r, result)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
