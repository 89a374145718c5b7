package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// pfctlName is the name under which weir takes pfctl's options: a link to it.
const pfctlName = "pfctl"

// Arguments returns the arguments of a command line. Called as pfctl, weir is weir pfctl.
func Arguments(line []string) []string {
	if len(line) > 0 && filepath.Base(line[0]) == pfctlName {
		return append([]string{pfctlName}, line[1:]...)
	}
	return line[min(1, len(line)):]
}

func newPfctlCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "pfctl [OPTION]...",
		Short: "take pfctl's options, for scripts and fingers that know them",
		Long: `pfctl does what the options of pfctl(8) say, and prints what pfctl prints. A link named
pfctl to weir does the same.

  -f FILE [-n] [-v] [-D MACRO=VALUE] [-N]   load rules; -n: only check them
  -s rules|nat|states|info|Tables|Interfaces|Sources|memory|timeouts|labels|Running|all
                                            show; -v, -vv: more; also abbreviated: -sr
  -t TABLE -T add|delete|replace|test|expire|flush|zero|reset|show|kill [-f FILE] [ADDRESS...]
  -T load -f FILE                           only the tables of FILE
  -k HOST [-k HOST], -k label|id -k VALUE   end connections; -i INTERFACE: only those
  -K HOST [-K HOST]                         forget sources; second: those that keep this address
  -F states|Sources|Tables                  end all, forget all, remove tables that commands made
  -d, -F rules|nat|Reset|all                only with set pfctl-may-open yes: see below
  -e                                        take -d and -F back; fails if there is nothing to take back
  -E, -X TOKEN                              macOS': the same, also if there is nothing, with a token; give it back
  -n, -q, -v, -r                            change nothing; say nothing; say more; names of addresses in tables

What would open the box is refused: -d, -F rules, -F nat, -F Reset, -F all. weir stop does
that. If the rules in force say set pfctl-may-open yes, these do what they do in pf, until -e
or the next load of a file: weir load, or a start.
A connection that is forwarded is one state here, and two in pf.`,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			p := &pfctl{env: env}
			if err := p.parse(args); err != nil {
				return &UsageError{err}
			}
			if p.help {
				return c.Help()
			}
			if p.netns != nil {
				env.Netns = *p.netns
				if err := env.enter(); err != nil {
					return err
				}
			}
			if err := p.run(c.Context()); err != nil {
				return &pfctlError{err}
			}
			return nil
		},
	}
}

// pfctlError is an error that is said as pfctl says it: scripts look for "pfctl: pf already enabled".
type pfctlError struct{ error }

func (e *pfctlError) Unwrap() error { return e.error }

// pfctl holds the options of one call.
type pfctl struct {
	env     *Env
	netns   *string
	help    bool
	anchor  string
	file    string // -f
	show    string // -s, in full
	clear   string // -F
	table   string // -t
	command string // -T
	iface   string // -i
	kill    []string
	forget  []string
	macros  macrosFlag
	words   []string
	verbose int
	dry     bool
	quiet   bool
	enable  bool
	hold    bool   // -E
	release string // -X
	disable bool
	noDNS   bool
	names   bool // -r
	zero    bool
	part    byte   // -A, -O or -R
	debug   string // -x
}

// The words of options, in pfctl's order: an abbreviation means the first that it begins.
var (
	pfctlShows = []string{
		"ether", "nat", "queue", "rules", "Anchors", "Sources", "states", "info", "Interfaces", "labels", "timeouts", "memory", "Tables",
		"osfp", "Running", "all", "creatorids",
	}
	pfctlClears = []string{"ethernet", "nat", "queue", "rules", "Sources", "states", "info", "Tables", "osfp", "Reset", "all"}
	pfctlLevels = []string{
		"none", "urgent", "misc", "loud", "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
	}
	pfctlTables = []string{"kill", "flush", "add", "delete", "load", "replace", "show", "test", "zero", "expire", tableReset}
)

// pfctlParts are the parts of a file that FreeBSD's and macOS' options load alone.
var pfctlParts = map[byte]string{'A': "queues", 'O': "options", 'R': "filter rules"}

// pfctlValues are the options with a value, pfctlFlags those without.
const (
	pfctlValues = "aDFfiKkopsTtXx"
	pfctlFlags  = "deEgnNqrvzPhRAOMmS"
)

// parse reads options as getopt(3) does: several in one word, and a value in the same word
// or in the next. They end with the first word that is none.
func (p *pfctl) parse(args []string) error {
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--help":
			p.help = true
			return nil
		case word == "--netns" && len(args) > 1:
			p.netns, args = &args[1], args[2:]
			continue
		case strings.HasPrefix(word, "--netns="):
			value := strings.TrimPrefix(word, "--netns=")
			p.netns, args = &value, args[1:]
			continue
		case word == "--":
			p.words = args[1:]
			return p.check()
		case len(word) < 2 || word[0] != '-':
			p.words = args
			return p.check()
		}
		args = args[1:]
		for i := 1; i < len(word); i++ {
			if strings.IndexByte(pfctlFlags, word[i]) >= 0 {
				if err := p.flag(word[i]); err != nil {
					return err
				}
				continue
			}
			if strings.IndexByte(pfctlValues, word[i]) < 0 {
				return fmt.Errorf("weir pfctl has no option -%c; weir pfctl --help lists them", word[i])
			}
			value := word[i+1:]
			if value == "" {
				if len(args) == 0 {
					return fmt.Errorf("-%c must be followed by a value", word[i])
				}
				value, args = args[0], args[1:]
			}
			if err := p.option(word[i], value); err != nil {
				return err
			}
			break
		}
	}
	return p.check()
}

func (p *pfctl) flag(letter byte) error {
	switch letter {
	case 'd':
		p.disable = true
	case 'e':
		p.enable = true
	case 'E':
		p.hold = true
	case 'A', 'O', 'R':
		p.part = letter
	case 'n':
		p.dry = true
	case 'N', 'S': // FreeBSD's -S
		p.noDNS = true
	case 'q':
		p.quiet = true
	case 'v':
		p.verbose++
	case 'z':
		p.zero = true
	case 'h':
		p.help = true
	case 'r':
		p.names = true
	case 'g', 'P': // more about the kernel; names of ports (OpenBSD) or numbers (FreeBSD): as without
	case 'M': // states of the other side end, too: a connection is one state in any case
	case 'm':
		return errors.New("weir pfctl has no option -m: write the option into the rule file, and load that")
	}
	return nil
}

func (p *pfctl) option(letter byte, value string) (err error) {
	switch letter {
	case 'a':
		p.anchor = value
	case 'D':
		err = p.macros.Set(value)
	case 'F':
		p.clear, err = inFull('F', value, pfctlClears)
	case 'f':
		p.file = value
	case 'i':
		p.iface = value
	case 'k':
		p.kill = append(p.kill, value)
	case 'K':
		p.forget = append(p.forget, value)
	case 'o':
		_, err = inFull('o', value, []string{"none", "basic", "profile"}) // weir never changes what it loads
	case 's':
		p.show, err = inFull('s', value, pfctlShows)
	case 'T':
		p.command, err = inFull('T', value, pfctlTables)
	case 't':
		p.table = value
	case 'p': // pf's device
		err = fmt.Errorf("weir pfctl has no option -%c", letter)
	case 'X':
		if _, wrong := strconv.ParseUint(value, 10, 64); wrong != nil {
			err = fmt.Errorf("-X takes a token that -E has printed, not %q", value)
		}
		p.release = value
	case 'x':
		p.debug, err = inFull('x', strings.ToLower(value), pfctlLevels)
	}
	return err
}

// inFull completes an abbreviated word.
func inFull(letter byte, value string, words []string) (string, error) {
	for _, w := range words {
		if value != "" && strings.HasPrefix(w, value) {
			return w, nil
		}
	}
	return "", fmt.Errorf("-%c takes %s, not %q", letter, strings.Join(words, ", "), value)
}

// check refuses options that mean nothing together.
func (p *pfctl) check() error {
	switch {
	case p.command != "" && p.command != "load" && p.table == "":
		return errors.New("-T must be used with -t TABLE")
	case p.table != "" && p.command == "":
		return errors.New("-t must be used with -T COMMAND")
	case p.command == "load" && p.file == "":
		return errors.New("-T load must be used with -f FILE")
	case p.zero && p.anchor != "":
		return errors.New("-z clears the counters of all rules: leave out -a")
	case len(p.words) > 0 && p.command == "":
		return fmt.Errorf("%q: addresses are for -T", p.words[0])
	case p.part != 0 && !p.dry && p.file != "":
		return fmt.Errorf("-%c loads only the %s of a file: weir pfctl replaces all rules at once. Leave it out, and load a file with all of them", p.part, pfctlParts[p.part])
	case len(p.kill) > 2, len(p.forget) > 2:
		return errors.New("-k and -K are given twice at most")
	case p.file == "" && p.show == "" && p.clear == "" && p.command == "" && len(p.kill)+len(p.forget) == 0 && !p.enable && !p.hold && p.release == "" &&
		!p.disable && !p.zero && p.debug == "":
		p.help = true
	}
	return nil
}

// run does what the options say, in pfctl's order.
func (p *pfctl) run(ctx context.Context) error {
	if p.disable {
		if err := p.doDisable(ctx); err != nil {
			return err
		}
	}
	if p.debug != "" {
		p.say("-x %s changes nothing: the kernel's part of weir logs no messages; weir log and weir capture show packets", p.debug)
	}
	if p.anchor != "" && p.command == "" && p.show != "Tables" {
		done, err := p.runAnchor(ctx)
		if err == nil && done && (p.enable || p.hold) {
			p.file = "" // a load of an anchor enables nothing
			return p.doEnable(ctx)
		}
		if done || err != nil {
			return err
		}
	}
	for _, step := range []struct {
		asked bool
		do    func(context.Context) error
	}{
		{p.show != "", p.doShow},
		{p.zero, p.zeroRules},
		{p.clear != "" && !p.replaces(), p.doClear},
		{len(p.kill) > 0, p.doKill},
		{len(p.forget) > 0, p.doForget},
		{p.command != "", p.doTable},
		{p.file != "" && p.command == "", p.doLoad},
		{p.enable || p.hold, p.doEnable},
		{p.release != "", p.doRelease},
	} {
		if !step.asked {
			continue
		}
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// replaces reports whether the rules that -F names are replaced by those of -f.
func (p *pfctl) replaces() bool {
	return p.file != "" && p.command == "" && slices.Contains([]string{"rules", "nat", "all"}, p.clear)
}

// say prints a sentence on standard error, as pfctl does, unless -q is given.
func (p *pfctl) say(format string, args ...any) {
	if !p.quiet {
		fmt.Fprintf(p.env.Stderr, format+"\n", args...)
	}
}

// doLoad checks or loads a rule file.
func (p *pfctl) doLoad(ctx context.Context) error {
	quiet := *p.env
	if p.verbose == 0 {
		quiet.Stdout = io.Discard
	}
	file, again := p.file, func() {}
	if file == "/dev/stdin" {
		file = "-"
	}
	if file == "-" { // check and load each read it
		_, text, err := readRules(ctx, p.env, file)
		if err != nil {
			return fmt.Errorf("read the rules: %w", err)
		}
		again = func() { quiet.Stdin = bytes.NewReader(text) }
	}
	if p.dry || p.verbose > 0 {
		o := &checkOptions{noDNS: p.noDNS, macros: p.macros, enforce: true}
		if !p.dry { // the load prints the warnings, and what is wrong
			quiet.Stderr = io.Discard
		}
		again()
		err := check(ctx, &quiet, o, file)
		if p.dry {
			return err
		}
		quiet.Stderr = p.env.Stderr
	}
	quiet.Stdout = io.Discard
	again()
	if err := quiet.load(ctx, file, &loading{noDNS: p.noDNS, macros: p.macros}); err != nil || p.clear != "all" {
		return err
	}
	p.clear = "states" // the load has replaced the rules
	return p.doClear(ctx)
}

// doClear does -F for what is harmless.
func (p *pfctl) doClear(ctx context.Context) error {
	switch p.clear {
	case "states":
		done, err := p.env.killed(&killTask{dry: p.dry, spare: ownSession(), filter: state.Filter{Leaves: p.iface}})
		if err == nil {
			p.say("%d states cleared", done.Killed)
		}
		return err
	case "Sources":
		done, err := p.env.killed(&killTask{dry: p.dry, sources: true})
		switch {
		case err == nil && done.Stay > 0:
			p.say("source tracking entries cleared, but for %d with states", done.Stay)
		case err == nil:
			p.say("source tracking entries cleared")
		}
		return err
	case "Tables":
		return p.clearTables(ctx, "", true)
	case "info":
		return p.zeroInfo()
	}
	return p.clearRules(ctx)
}

// hosts returns the addresses of an argument of -k.
func (p *pfctl) hosts(word string) ([]netip.Prefix, error) {
	host, err := (&checkOptions{noDNS: p.noDNS}).machine()
	if err != nil {
		return nil, err
	}
	entries, list := resolve.Entries("", []byte(word), host)
	if list.HasErrors() {
		return nil, errors.New(list.Items[0].Text())
	}
	var all []netip.Prefix
	for _, e := range entries {
		if e.Not {
			return nil, fmt.Errorf("%q: connections of all but an address cannot be named", word)
		}
		all = append(all, e.Prefix)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q has no address", word)
	}
	return all, nil
}

// doKill does -k.
func (p *pfctl) doKill(context.Context) (err error) {
	t := &killTask{dry: p.dry}
	f := &t.filter
	f.Leaves = p.iface
	sources, destinations := 0, 0
	switch p.kill[0] {
	case "label", "id", "key", "gateway", "nat":
		err = p.killBy(f, p.kill[0])
	default:
		if f.From, err = p.hosts(p.kill[0]); err == nil && len(p.kill) == 2 {
			f.To, err = p.hosts(p.kill[1])
		}
		sources, destinations = len(f.From), len(f.To)
	}
	if err != nil {
		return err
	}
	done, err := p.env.killed(t)
	switch {
	case err != nil:
	case sources > 0:
		p.say("killed %d states from %d sources and %d destinations", done.Killed, sources, destinations)
	default:
		p.say("killed %d states", done.Killed)
	}
	return err
}

// killBy reads the value of -k label and its like.
func (p *pfctl) killBy(f *state.Filter, what string) (err error) {
	if len(p.kill) != 2 {
		return &UsageError{fmt.Errorf("-k %s must be followed by -k VALUE", what)}
	}
	value := p.kill[1]
	if value == "" {
		return &UsageError{fmt.Errorf("-k %s is followed by an empty value", what)}
	}
	switch what {
	case "label":
		f.Label = value
	case "id":
		id, _, _ := strings.Cut(value, "/") // the rest is the creator, which weir does not have
		f.Handle = new(state.Handle)
		err = f.Handle.UnmarshalText([]byte(id))
	case "key":
		leaves := f.Leaves
		*f, err = state.ParseKey(value)
		f.Leaves = leaves
	case "nat":
		f.NAT, err = p.hosts(value)
	case "gateway":
		f.Gateways, err = p.hosts(value)
	}
	if err != nil {
		return &UsageError{fmt.Errorf("-k %s -k %s: %w", what, value, err)}
	}
	return nil
}

// doForget does -K. The second host is an address that a source keeps by sticky-address.
func (p *pfctl) doForget(context.Context) (err error) {
	t := &killTask{dry: p.dry, sources: true}
	if t.filter.From, err = p.hosts(p.forget[0]); err != nil {
		return err
	}
	if len(p.forget) == 2 {
		if t.filter.To, err = p.hosts(p.forget[1]); err != nil {
			return err
		}
	}
	done, err := p.env.killed(t)
	if err == nil {
		p.say("killed %d src nodes from %d sources and %d destinations", done.Forgotten, len(t.filter.From), len(t.filter.To))
	}
	if err == nil && done.Stay > 0 {
		p.say("%d with states stay until these end; their rates begin anew", done.Stay)
	}
	return err
}
