package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/fw/ruleset"
	"weir/internal/host/hostdb"
	"weir/internal/host/netif"
	"weir/internal/oracle/ruletest"
	"weir/pf/compare"
	"weir/pf/diag"
	"weir/pf/lint"
	"weir/pf/printer"
	"weir/pf/resolve"
	"weir/pf/source"
)

// checkOptions holds the flags of check.
type checkOptions struct {
	host     string
	optimize string
	enforce  bool
	names    bool
	noDNS    bool
	json     bool
	expect   string
	diff     string
	status   bool
	verbose  bool
	macros   macrosFlag
	without  source.Without
}

// settings returns the settings for reading rules.
func (o *checkOptions) settings() resolve.Settings {
	return resolve.Settings{
		Files: source.Disk{}, Macros: o.macros, Without: o.without,
		Optimize: o.optimize == "basic" || o.optimize == "profile", AsSet: o.optimize == "",
	}
}

func newCheckCommand(env *Env) *cobra.Command {
	o := &checkOptions{}
	c := &cobra.Command{
		Use:   "check FILE|-",
		Short: "check a rule file and print it as weir understands it",
		Long: `check reads a rule file and prints it, one rule per line, with lists expanded,
names resolved and defaults filled in, as "pfctl -o none -nv" does. The output can
be loaded and means the same. With - for FILE it reads standard input.

Interfaces and addresses are those of this machine. --host takes them from a file
in the form of "weir interfaces --json".

With --expect, check says whether the rules treat packets as a JSON file expects:
docs/expectations.md. With --diff, it says what changes from an old file to this
one: options, addresses of tables, rules.

Exit status 0: the file is accepted, perhaps with warnings, and all expectations
hold. 1: it is refused, an expectation does not hold, or a file cannot be read.
2: wrong usage. 3: with --diff --status, something changes.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return check(c.Context(), env, o, args[0])
		},
	}
	c.Flags().StringVarP(&o.optimize, "optimize", "o", "", "optimize the rules as pfctl does: none, basic or profile; the default is set ruleset-optimization, or none")
	c.Flags().StringVar(&o.host, "host", "", "check for the machine that a JSON `file` describes")
	c.Flags().BoolVarP(&o.names, "port-names", "P", false, "print ports as names")
	c.Flags().BoolVarP(&o.noDNS, "no-dns", "N", false, noDNSUsage)
	c.Flags().VarP(&o.macros, "define", "D", macrosUsage)
	c.Flags().Var(&o.without, "without", withoutUsage)
	c.Flags().BoolVar(&o.enforce, "enforce", false, "also refuse what this version reads but does not enforce")
	c.Flags().StringVar(&o.expect, "expect", "", "test the rules with the packets of a JSON `file`")
	c.Flags().StringVar(&o.diff, "diff", "", "say what changes from the old rule `file`")
	c.Flags().BoolVar(&o.status, "status", false, "with --diff: exit with status 3 if something changes")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also print, as comments, which engine the queues of each interface get, and why")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON: whether it is accepted, its lines, all errors and warnings, changes")
	return c
}

// checkGarbage is the garbage collector's target for check, in per cent. The rules of a
// large file use most of its memory.
const checkGarbage = 25

// check reads a file and prints it.
func check(ctx context.Context, env *Env, o *checkOptions, name string) error {
	switch o.optimize {
	case "", "none", "basic", "profile":
	default:
		return &UsageError{fmt.Errorf("-o takes none, basic or profile, not %q", o.optimize)}
	}
	if o.status && o.diff == "" {
		return &UsageError{errors.New("--status is for --diff")}
	}
	if o.diff != "" && o.expect != "" {
		return &UsageError{errors.New("use --diff or --expect, not both")}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(checkGarbage))
	host, err := o.machine()
	if err != nil {
		return err
	}
	name, text, err := readRules(ctx, env, name)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	expected, err := o.readExpectations()
	if err != nil {
		return err
	}
	rules, list := resolve.LoadWith(name, text, host, o.settings())
	if rules != nil {
		lint.Warn(rules, &list)
	}
	if o.enforce {
		if list.Enforce(); list.HasErrors() {
			rules = nil
		}
	}
	if !o.json { // an editor needs all places
		list.Fold()
	}
	if rules != nil && o.names {
		resolve.NamePorts(rules.Source, host)
	}
	var report *ruletest.Report
	if rules != nil && expected != nil {
		if report, err = o.test(rules, host, expected); err != nil {
			return err
		}
	}
	var changes []compare.Change
	if rules != nil {
		if changes, err = o.changes(ctx, env, rules, host); err != nil {
			return err
		}
	}
	if o.json {
		return o.differs(printCheckJSON(env, rules, &list, report, changes), changes)
	}
	if err := list.Fprint(env.Stderr); err != nil {
		return fmt.Errorf("print errors and warnings: %w", err)
	}
	if rules == nil {
		return ErrSilent
	}
	if report != nil {
		return printReport(env, report)
	}
	if o.diff != "" {
		return o.differs(printChanges(env, changes), changes)
	}
	if err := printer.Fprint(env.Stdout, rules.Source); err != nil {
		return fmt.Errorf("print the rules: %w", err)
	}
	if o.verbose {
		return printEngines(env, rules.Queues)
	}
	return nil
}

// printEngines prints which engine each tree of queues gets, as far as the file says.
func printEngines(env *Env, trees []*resolve.QueueTree) error {
	for _, t := range trees {
		s := ruleset.ShaperOf(t)
		c := s.Choose(false)
		if _, err := fmt.Fprintf(env.Stdout, "# queues of %s: engine %s: %s; %s\n", s.Name(), c.Engine, c.Why, c.Engine.Cost()); err != nil {
			return fmt.Errorf("print the engines: %w", err)
		}
	}
	return nil
}

// exitDiffers is the status with --diff --status if something changes.
const exitDiffers = 3

// differs returns err. If it is nil, and --status asks for it, it returns whether
// something changes.
func (o *checkOptions) differs(err error, changes []compare.Change) error {
	if err == nil && o.status && len(changes) > 0 {
		return &StatusError{exitDiffers}
	}
	return err
}

func printReport(env *Env, report *ruletest.Report) error {
	if err := report.Fprint(env.Stdout); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if report.Failed() > 0 {
		return ErrSilent
	}
	return nil
}

// readRules reads a file, or standard input under the name stdin.
func readRules(ctx context.Context, env *Env, name string) (string, []byte, error) {
	if name == "-" {
		text, err := interruptible(ctx, func() ([]byte, error) { return source.Read(env.Stdin) })
		return "stdin", text, err
	}
	text, err := interruptible(ctx, func() ([]byte, error) { return source.ReadFile(name) })
	return name, text, err
}

// machine returns the host that the file is checked for.
func (o *checkOptions) machine() (*resolve.Host, error) {
	if o.host != "" {
		return resolve.ReadHost(o.host)
	}
	links, err := netif.Links()
	if err != nil {
		return nil, err
	}
	host, err := hostdb.Host(links)
	if err != nil {
		return nil, err
	}
	if !o.noDNS {
		host.Lookup = hostdb.NewDNS().Lookup
	}
	return host, hostdb.Fill(host, os.DirFS("/"))
}

// checkResult is the output of check --json.
type checkResult struct {
	Accepted    bool                   `json:"accepted"`
	Lines       []string               `json:"lines"`
	Rules       []ruleRecord           `json:"rules"`
	Diagnostics []diag.Record          `json:"diagnostics"`
	Unenforced  []diag.ConstructRecord `json:"unenforced"`

	Expectations []ruletest.Record `json:"expectations,omitempty"` // with --expect
	Changes      []compare.Change  `json:"changes,omitzero"`       // with --diff
}

func printCheckJSON(env *Env, rules *resolve.Ruleset, list *diag.List, report *ruletest.Report, changes []compare.Change) error {
	result := checkResult{
		Accepted: rules != nil, Lines: []string{}, Diagnostics: list.Records(), Changes: changes,
		Rules: ruleRecords(rules), Unenforced: list.Constructs(),
	}
	if rules != nil {
		var text strings.Builder
		if err := printer.Fprint(&text, rules.Source); err != nil {
			return fmt.Errorf("print the rules: %w", err)
		}
		if text.Len() > 0 {
			result.Lines = strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		}
	}
	if report != nil {
		result.Expectations = report.Records()
	}
	if err := env.printJSON(result); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	if rules == nil || report != nil && report.Failed() > 0 {
		return ErrSilent
	}
	return nil
}
