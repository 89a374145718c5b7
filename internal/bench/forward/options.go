package forward

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/option"
	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/pf/resolve"
)

// Options choose what to measure. All combinations of the lists are measured; each is a
// case.
type Options struct {
	Frames     []int // bytes with the frame's checksum; raised to the minimum of the frame's kind
	Flows      []int
	Families   []int // 4, 6
	Protocols  []string
	Cores      []int
	Directions []string
	Sinks      []string
	Rules      []int    // rules before those of the examples, which no traffic matches
	Tables     []int    // addresses of a table before these, which no traffic matches
	Limits     []int    // weir's set limit states; 0: the example's, or twice the flows
	Patterns   []string // of steady traffic: traffic.Patterns

	Paths    []string
	Hook     string        // weir's hook: xdp or tcx
	Prefetch string        // weir run --prefetch: auto, on or off
	Runs     int           // runs of each path in each case
	Seconds  time.Duration // steady traffic in each run
	// Turns is the number of parts of each run's steady traffic. With more than one, all
	// paths are in place at once, each in a lab of its own, and take turns part by part. What
	// they have in common in a turn is taken out of the figures: the machine's own changes.
	Turns int

	// RaiseConntrack raises conntrack's limit for the flows while the benchmark runs.
	// The limit applies to the whole machine.
	RaiseConntrack bool
	// Flame adds one run that is sampled, which shows where the time goes.
	Flame bool
	// Command repeats this benchmark, for the report.
	Command string
	// Program is the weir to measure. "" means the running one.
	Program string
	// Against is another weir, which takes turns with Program on each of weir's paths. ""
	// means none.
	Against string
	// Version is that of this weir, for the report.
	Version string
	// Progress gets progress messages. nil means nobody does.
	Progress io.Writer

	Name  string // name of namespaces and folder; "": the default
	Quick bool   // take the first run, even if it was disturbed
	// Split samples in which stage the time goes while frames are forwarded.
	Split bool
	// Grows is [traffic.Setup.Grows].
	Grows bool
}

// Defaults measure all paths in the README's case.
func Defaults() Options {
	return Options{
		Frames: []int{64}, Flows: []int{1000}, Families: []int{4}, Protocols: []string{traffic.UDP}, Cores: []int{1},
		Directions: []string{traffic.OneWay}, Sinks: []string{traffic.Far}, Rules: []int{0}, Tables: []int{0}, Limits: []int{0},
		Patterns: []string{traffic.Scattered},
		Paths:    slices.Clone(paths.All), Hook: "xdp", Prefetch: "auto", Runs: 5, Seconds: time.Second, Turns: 1,
	}
}

// InTurns divides each run into turns of usualTurn, or longer ones if there would be too many.
func (o *Options) InTurns() {
	o.Turns = min(max(int(o.Seconds/usualTurn), 1), mostUsual)
}

// Short returns options for a benchmark of less than a minute, which shows the same as
// the whole one with less precision.
func Short() Options {
	o := Defaults()
	o.Runs, o.Seconds = 3, 300*time.Millisecond
	return o
}

// Limits of the options.
const (
	maxFrame   = 1518
	maxFlows   = 1<<traffic.FlowBits - traffic.NewFlows
	maxSeconds = 60 * time.Second
	maxTurns   = 1000
	// leastTurn is the shortest turn. Less of it would be its start.
	leastTurn = 5 * time.Millisecond
	usualTurn = 25 * time.Millisecond
	mostUsual = 20
)

// Check returns the first error in the options.
func (o *Options) Check() error {
	err := cmp.Or(
		option.Within("--frame", traffic.LeastFrame, maxFrame, o.Frames...),
		option.Within("--flows", 1, maxFlows, o.Flows...),
		option.Each("--family", o.Families, func(n int) bool { return n == 4 || n == 6 }, "4 or 6"),
		option.Words("--proto", o.Protocols, traffic.UDP, traffic.TCP),
		option.Each("--cores", o.Cores, func(n int) bool { return n >= 1 }, "1 or more"),
		option.Words("--direction", o.Directions, traffic.OneWay, traffic.Both),
		option.Words("--sink", o.Sinks, traffic.Far, traffic.Egress),
		option.Within("--rules", 0, paths.MaxRules, o.Rules...),
		option.Within("--tables", 0, paths.MaxTable, o.Tables...),
		option.Each("--limit", o.Limits, func(n int) bool { return n == 0 || n >= o.needed() && n <= resolve.MostStates },
			fmt.Sprintf("0, or %d to %d with these connections", o.needed(), resolve.MostStates)),
		option.Words("--pattern", o.Patterns, traffic.Patterns...),
		option.Words("--paths", o.Paths, paths.Known...),
		option.Words("--hook", []string{o.Hook}, "xdp", "tcx"),
		option.Words("--prefetch", []string{o.Prefetch}, "auto", "on", "off"),
		option.Runs(o.Runs),
		option.Within("--seconds", 0.05, maxSeconds.Seconds(), o.Seconds.Seconds()),
		option.Within("--turns", 1, maxTurns, o.Turns),
	)
	if err != nil {
		return err
	}
	session := slices.ContainsFunc(o.Paths, func(p string) bool { return slices.Contains(paths.PPPoE, p) })
	switch {
	case o.Turns > 1 && o.Seconds < time.Duration(o.Turns)*leastTurn:
		return fmt.Errorf("--turns %d: each would be shorter than %v: --seconds %g is enough", o.Turns, leastTurn, (time.Duration(o.Turns) * leastTurn).Seconds())
	case o.Turns > 1 && (o.Split || o.Flame):
		return errors.New("--turns: only one path is in place while a core is sampled: without it")
	}
	if o.Against != "" {
		if err := o.checkAgainst(); err != nil {
			return err
		}
	}
	if o.Hook == "tcx" && session {
		return errors.New("--hook tcx: packets of a session are measured at xdp only")
	}
	if o.Hook == "tcx" && slices.ContainsFunc(o.Paths, func(p string) bool { return slices.Contains(paths.VLAN, p) }) {
		return errors.New("--hook tcx: frames with tags are measured at xdp only, which judges them itself")
	}
	return nil
}

// checkAgainst returns why the other weir cannot be measured. Its name gets a folder, as it is started
// from elsewhere.
func (o *Options) checkAgainst() error {
	if o.Turns < 2 {
		return errors.New("--against: two programs are compared in turns: --turns 2 or more")
	}
	if !slices.ContainsFunc(o.Paths, ours) {
		return errors.New("--against: none of the paths is weir's")
	}
	if out, err := exec.Command(o.Against, "version").Output(); err != nil || !strings.HasPrefix(string(out), "weir ") {
		return fmt.Errorf("--against %s: it is no weir: %w", o.Against, cmp.Or(err, errors.New("it does not say so when it is asked for its version")))
	}
	whole, err := exec.LookPath(o.Against)
	if err == nil {
		whole, err = filepath.Abs(whole)
	}
	o.Against = whole
	return err
}

// places returns how many paths are measured in each case, without the control.
func (o *Options) places() int {
	n := len(o.Paths)
	for _, path := range o.Paths {
		if o.Against != "" && ours(path) {
			n++
		}
	}
	return n
}

// needed returns the number of connections of the largest case.
func (o *Options) needed() int {
	if len(o.Flows) == 0 {
		return traffic.NewFlows
	}
	return traffic.Case{Flows: slices.Max(o.Flows)}.Needed()
}

// Cases returns all combinations. Frame sizes below the minimum of their kind are raised
// to it, and equal cases are merged.
func (o *Options) Cases() []traffic.Case {
	var cases []traffic.Case
	for _, family := range o.Families {
		for _, protocol := range o.Protocols {
			for _, frame := range o.Frames {
				for _, flows := range o.Flows {
					for _, cores := range o.Cores {
						for _, direction := range o.Directions {
							for _, sink := range o.Sinks {
								cases = append(cases, o.ruleCases(traffic.Case{Frame: traffic.TrueSize(frame, family == 6, protocol == traffic.TCP),
									Flows: flows, Family: family, Protocol: protocol, Cores: cores, Direction: direction, Sink: sink})...)
							}
						}
					}
				}
			}
		}
	}
	return unique(cases)
}

// ruleCases returns the cases of one kind of traffic.
func (o *Options) ruleCases(c traffic.Case) []traffic.Case {
	var cases []traffic.Case
	for _, c.Rules = range o.Rules {
		for _, c.Tables = range o.Tables {
			for _, c.Limit = range o.Limits {
				cases = append(cases, o.patternCases(c)...)
			}
		}
	}
	return cases
}

// patternCases returns the cases with the same connections and rules.
func (o *Options) patternCases(c traffic.Case) []traffic.Case {
	var cases []traffic.Case
	for _, pattern := range o.Patterns {
		c := c
		c.Frame = traffic.PatternSize(pattern, c.Frame)
		if pattern != traffic.Scattered {
			c.Pattern = pattern
		}
		cases = append(cases, c)
	}
	return cases
}

func unique(cases []traffic.Case) []traffic.Case {
	var kept []traffic.Case
	for _, c := range cases {
		if !slices.Contains(kept, c) {
			kept = append(kept, c)
		}
	}
	return kept
}

// judges reports whether a path judges its traffic before it settles on how it works: weir
// does with --prefetch auto. Traffic without a pattern is what that is made for.
func (o *Options) judges(path string, c traffic.Case) bool {
	return o.Hook == "xdp" && o.Prefetch == "auto" && c.Flows >= manyFlows && c.Pattern != "" && paths.Prefetches(path)
}

// Estimate returns about how long the benchmark takes.
func (o *Options) Estimate() time.Duration {
	const (
		start   = 1.3  // seconds to build a path, open it, find the rate and take it down
		perFlow = 8e-6 // to open and check a connection, both ways
		perRule = 1e-4 // to load a rule
		perAddr = 5e-6 // to load an address of a table
		perLook = 1e-7 // for nft to compare a rule of a list, for each new connection
	)
	lists := 0.0 // paths with a list
	for _, path := range o.Paths {
		if path == paths.Nft || path == paths.NftNAT {
			lists++
		}
	}
	total := 3.0
	for _, c := range o.Cases() {
		runs := float64(o.Runs*(o.places()+1)) + 4 // plus the control, and runs to choose entries
		total += runs * (start + o.Seconds.Seconds()*1.1 + float64(c.Flows)*perFlow + float64(c.Rules)*perRule + float64(c.Tables)*perAddr)
		if c.Flows >= manyFlows {
			total += runs * decision.Seconds()
		}
		for _, path := range o.Paths {
			if o.judges(path, c) {
				total += float64(o.Runs) * judgement.Seconds()
			}
		}
		if o.Turns > 1 {
			total += runs * float64(o.Turns) * turnStart.Seconds()
		}
		total += lists * float64(o.Runs+2) * float64(c.Needed()) * float64(c.Rules) * perLook
	}
	return time.Duration(total * float64(time.Second))
}
