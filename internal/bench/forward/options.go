package forward

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/option"
	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/pf/resolve"
)

// Options say what to measure. Lists multiply: every combination is a case.
type Options struct {
	Frames     []int // bytes, with the frame's checksum; raised to what a kind of frame needs
	Flows      []int
	Families   []int // 4, 6
	Protocols  []string
	Cores      []int
	Directions []string
	Sinks      []string
	Rules      []int // in front of those of the examples, that match nothing of the traffic
	Tables     []int // addresses of a table in front of these, that hold nothing of the traffic
	Limits     []int // set limit states of weir; 0: the example's, or twice the flows

	Paths    []string
	Hook     string        // of weir: xdp or tcx
	Prefetch string        // weir run --prefetch: auto, on or off
	Runs     int           // of each path in each case
	Seconds  time.Duration // of steady traffic in each run

	// RaiseConntrack makes room for the flows in conntrack, which is common to
	// the whole machine, as long as the benchmark runs.
	RaiseConntrack bool
	// Flame adds one run with perf, to see where the time goes.
	Flame bool
	// Command is what repeats this benchmark, for the report.
	Command string
	// Program is the weir to measure; "": the one that runs.
	Program string
	// Version is that of this weir, for the report.
	Version string
	// Progress hears what is going on; nil: nobody.
	Progress io.Writer

	Name  string // of namespaces and folder; "": the default
	Quick bool   // take the first run, disturbed or not
	// sampled asks in which stage the time goes, where frames are forwarded.
	Split bool
}

// Defaults measure all paths in the case that the README shows.
func Defaults() Options {
	return Options{
		Frames: []int{64}, Flows: []int{1000}, Families: []int{4}, Protocols: []string{traffic.UDP}, Cores: []int{1},
		Directions: []string{traffic.OneWay}, Sinks: []string{traffic.Far}, Rules: []int{0}, Tables: []int{0}, Limits: []int{0},
		Paths: slices.Clone(paths.All), Hook: "xdp", Prefetch: "auto", Runs: 5, Seconds: time.Second,
	}
}

// Short are the options of a benchmark that takes less than a minute and shows
// what the whole one would, less exactly.
func Short() Options {
	o := Defaults()
	o.Runs, o.Seconds = 3, 300*time.Millisecond
	return o
}

// Bounds of options.
const (
	maxFrame   = 1518
	maxFlows   = 1<<traffic.FlowBits - traffic.NewFlows
	maxSeconds = 60 * time.Second
)

// Check tells the first thing that is wrong with the options.
func (o *Options) Check() error {
	for _, check := range []error{
		option.Each("--frame", o.Frames, func(n int) bool { return n >= traffic.LeastFrame && n <= maxFrame }, "64 to 1518"),
		option.Each("--flows", o.Flows, func(n int) bool { return n >= 1 && n <= maxFlows }, fmt.Sprintf("1 to %d", maxFlows)),
		option.Each("--family", o.Families, func(n int) bool { return n == 4 || n == 6 }, "4 or 6"),
		option.Each("--proto", o.Protocols, option.OneOf(traffic.UDP, traffic.TCP), "udp or tcp"),
		option.Each("--cores", o.Cores, func(n int) bool { return n >= 1 }, "1 or more"),
		option.Each("--direction", o.Directions, option.OneOf(traffic.OneWay, traffic.Both), "one or both"),
		option.Each("--sink", o.Sinks, option.OneOf(traffic.Far, traffic.Egress), "far or egress"),
		option.Each("--rules", o.Rules, func(n int) bool { return n >= 0 && n <= paths.MaxRules }, fmt.Sprintf("0 to %d", paths.MaxRules)),
		option.Each("--tables", o.Tables, func(n int) bool { return n >= 0 && n <= paths.MaxTable }, fmt.Sprintf("0 to %d", paths.MaxTable)),
		option.Each("--limit", o.Limits, func(n int) bool { return n == 0 || n >= o.needed() && n <= resolve.MostStates },
			fmt.Sprintf("0, or %d to %d with these connections", o.needed(), resolve.MostStates)),
		option.Each("--paths", o.Paths, option.OneOf(paths.Known...), strings.Join(paths.Known, ", ")),
		option.Each("--hook", []string{o.Hook}, option.OneOf("xdp", "tcx"), "xdp or tcx"),
		option.Each("--prefetch", []string{o.Prefetch}, option.OneOf("auto", "on", "off"), "auto, on or off"),
		option.Each("--runs", []int{o.Runs}, func(n int) bool { return n >= 1 && n <= option.MaxRuns }, "1 to 1000"),
		option.Each("--seconds", []time.Duration{o.Seconds},
			func(d time.Duration) bool { return d >= 50*time.Millisecond && d <= maxSeconds }, "0.05 to 60"),
	} {
		if check != nil {
			return check
		}
	}
	if o.Hook == "tcx" && slices.ContainsFunc(o.Paths, func(p string) bool { return slices.Contains(paths.VLAN, p) }) {
		return errors.New("--hook tcx: frames with tags are measured at xdp only, which judges them itself")
	}
	return nil
}

// needed is how many connections the largest case has at once.
func (o *Options) needed() int {
	if len(o.Flows) == 0 {
		return traffic.NewFlows
	}
	return traffic.Case{Flows: slices.Max(o.Flows)}.Needed()
}

// Cases are all combinations. Frame sizes below what a kind of frame needs
// become that size, and those that become the same are one.
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

// ruleCases are the cases of one kind of traffic.
func (o *Options) ruleCases(c traffic.Case) []traffic.Case {
	var cases []traffic.Case
	for _, c.Rules = range o.Rules {
		for _, c.Tables = range o.Tables {
			for _, c.Limit = range o.Limits {
				cases = append(cases, c)
			}
		}
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

// Estimate is about how long the benchmark takes.
func (o *Options) Estimate() time.Duration {
	const (
		start   = 1.3  // seconds to build, open, learn the rate and take down
		perFlow = 8e-6 // to open a connection and check it, both ways
		perRule = 1e-4 // to load one
		perAddr = 5e-6 // to load an address of a table
		perLook = 1e-7 // for nft to look at a rule of a list, at each new connection
	)
	lists := 0.0 // paths that have one
	for _, path := range o.Paths {
		if path == paths.Nft || path == paths.NftNAT {
			lists++
		}
	}
	total := 3.0
	for _, c := range o.Cases() {
		runs := float64(o.Runs*(len(o.Paths)+1)) + 4 // the control; entries to choose from
		total += runs * (start + o.Seconds.Seconds()*1.1 + float64(c.Flows)*perFlow + float64(c.Rules)*perRule + float64(c.Tables)*perAddr)
		if c.Flows >= manyFlows {
			total += runs * decisions.Seconds()
		}
		total += lists * float64(o.Runs+2) * float64(c.Needed()) * float64(c.Rules) * perLook
	}
	return time.Duration(total * float64(time.Second))
}
