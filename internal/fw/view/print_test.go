package view

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/reason"
	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
)

// Rules of anchors stand in braces where they are evaluated. Those of anchors without braces,
// or that are evaluated again, stand at the end, once.
func TestPrintAnchors(t *testing.T) {
	call := func(nr int, text, path string, end int, braces bool, scope string) Rule {
		return Rule{RuleText: rundir.RuleText{Nr: nr, Text: text, Calls: path, End: end, Braces: braces, Scope: scope}}
	}
	in := func(nr int, scope, text string) Rule {
		return Rule{RuleText: rundir.RuleText{Nr: nr, Text: text, Scope: scope}}
	}
	rules := []Rule{
		{RuleText: rundir.RuleText{Nr: 0, List: "nat", Text: "nat on em0", Scope: "u"}},
		call(0, "anchor \"f/*\" all", "f/*", 3, false, ""), in(1, "f/1", "pass 1"), in(2, "f/2", "pass 2"),
		call(3, "anchor \"g\" all", "g", 7, true, ""), in(4, "g", "pass g"), call(5, "anchor \"h\" all", "g/h", 7, true, "g"), in(6, "g/h", "pass h"),
		call(7, "anchor \"u\" all", "u", 8, false, ""),
		call(8, "anchor \"g\" all", "g", 12, false, ""), in(9, "g", "pass g"), call(10, "anchor \"h\" all", "g/h", 12, true, "g"), in(11, "g/h", "pass h"),
		in(12, "", "pass all"),
	}
	const want = `nat on em0
anchor "f/*" all
anchor "g" all {
  pass g
  anchor "h" all {
    pass h
  }
}
anchor "u" all
anchor "g" all
pass all
load anchor "f/1" {
  pass 1
}
load anchor "f/2" {
  pass 2
}
`
	var b strings.Builder
	if err := PrintRules(&b, rules, 0, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	anchors := []rundir.Anchor{{Path: "f/1", Called: true}, {Path: "f/2", Called: true}, {Path: "g", Called: true}, {Path: "n", Lines: []string{"pass n"}}, {Path: "u", Called: true}}
	for _, test := range []struct {
		path  string
		below bool
		want  string
	}{
		{"g", false, "pass g\nanchor \"h\" all {\n  pass h\n}\n"},
		{"f", true, "load anchor \"f/1\" {\n  pass 1\n}\nload anchor \"f/2\" {\n  pass 2\n}\n"},
		{"n", false, "pass n\n"}, {"u", false, "nat on em0\n"}, {"none", false, ""},
	} {
		b.Reset()
		if err := PrintAnchor(&b, rules, anchors, test.path, test.below, 0, 0); err != nil || b.String() != test.want {
			t.Errorf("%s: %v\n%s", test.path, err, b.String())
		}
	}
}

// The output has the form of pfctl's, so scripts can read both.
func TestPrintRules(t *testing.T) {
	rules := []Rule{
		{RuleText: rundir.RuleText{Nr: 0, Text: "block drop all"}, Evaluations: 7, Packets: 3, Bytes: 180},
		{RuleText: rundir.RuleText{Nr: 1, Text: "pass out on wan0 all flags S/SA"}, Evaluations: 7, Packets: 12345678, Bytes: 12345678901, States: 2, StateCreations: 4},
	}
	const want = `block drop all
  [ Evaluations: 7         Packets: 3         Bytes: 180         States: 0     ]
  [ Inserted: uid 0 pid 42 State Creations: 0     ]
pass out on wan0 all flags S/SA
  [ Evaluations: 7         Packets: 12345678  Bytes: 12345678901  States: 2     ]
  [ Inserted: uid 0 pid 42 State Creations: 4     ]
`
	var b strings.Builder
	if err := PrintRules(&b, rules, 1, 42); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("rules -v (-want +got):\n%s", diff)
	}
	b.Reset()
	if err := PrintRules(&b, rules[1:], 2, 42); err != nil {
		t.Fatal(err)
	}
	if line, _, _ := strings.Cut(b.String(), "\n"); line != "@1 pass out on wan0 all flags S/SA" {
		t.Errorf("rules -vv begins with %q", line)
	}
	b.Reset()
	if err := PrintRules(&b, rules, 0, 42); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("block drop all\npass out on wan0 all flags S/SA\n", b.String()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// Translation lists come first, in pfctl's order. The two parts of a binat rule are one.
func TestShownRules(t *testing.T) {
	text := func(list string, nr int, text string, back bool) Rule {
		return Rule{RuleText: rundir.RuleText{List: list, Nr: nr, Text: text, Back: back}, Evaluations: 5, Packets: 2, States: 1}
	}
	rules := shown([]Rule{
		text("binat", 0, "binat-anchor a", false), text("binat", 1, "binat one", false), text("nat", 0, "nat one", false), {},
		text("nat", 1, "nat two", false), text("rdr", 0, "rdr one", false), text("binat", 0, "binat-anchor a", true),
		text("binat", 1, "binat one", true), text("", 0, "block", false), text("", 1, "pass", false),
	})
	var got []string
	for _, r := range rules {
		got = append(got, fmt.Sprint(r.Nr, " ", r.Text, ": ", r.Evaluations, "/", r.Packets, "/", r.States))
	}
	want := []string{
		"0 nat one: 5/2/1", "1 nat two: 5/2/1", "0 rdr one: 5/2/1", "0 binat-anchor a: 5/4/2", "1 binat one: 5/4/2",
		"0 block: 5/2/1", "1 pass: 5/2/1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shown rules (-want +got):\n%s", diff)
	}
}

func TestPrintInfo(t *testing.T) {
	loaded := rundir.Loaded{File: "/etc/weir/weir.conf", Rules: 21, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)}
	info := &Info{
		Enabled: true, Since: time.Now().Add(-(3*24*time.Hour + 4*time.Hour + 5*time.Minute + 6500*time.Millisecond)),
		Loaded:  &loaded,
		Daemon:  DaemonInfo{Alive: true, PID: 99},
		States:  StatesInfo{Current: 42, Limit: 100000, Inserts: 678, Removals: 636},
		Sources: SourcesInfo{Current: 3, Limit: 10000},
		Rejects: Rejects{Resets: 27360, Errors: 1, KeptBack: 2736},
		Interfaces: []InterfaceInfo{{
			Name:    "wan0",
			Passed:  Counter{100, 123456},
			Blocked: Counter{1, 60},
			Reasons: []ReasonCount{{reason.State, Counter{100, 123456}}, {reason.Block, Counter{1, 60}}},
		}},
	}
	const want = `Status: Enabled for 3 days 04:05:06              Daemon: process 99
Ruleset: /etc/weir/weir.conf, 21 rules, loaded 2026-01-02 03:04:05

State Table                          Total             Rate
  current entries                       42               
  inserts                              678            0.0/s
  removals                             636            0.0/s
Source Tracking Table
  current entries                        3
Limits
  states        hard limit   100000
  src-nodes     hard limit    10000
Rejects of blocked packets           Total             Rate
  TCP resets                         27360            0.1/s
  ICMP errors                            1            0.0/s
  held back by the limit              2736            0.0/s
  failed                                 0            0.0/s

Interface Stats for wan0           Packets            Bytes
  Passed                               100           123456
    state                              100           123456
  Blocked                                1               60
    block                                1               60
`
	var b strings.Builder
	if err := info.Print(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	b.Reset()
	info.Lost = LostInfo{Log: 12}
	info.NextHops, info.Paths, info.PathsFull = dataplane.MaxNextHops, dataplane.MaxPaths+3, Counter{Packets: 7}
	const full = `Limits
  states        hard limit   100000
  src-nodes     hard limit    10000
  next hops     hard limit    32766, reached: packets to other next hops go through the stack (up-nexthop)
  paths         hard limit    12286, reached: packets of new paths count under their deciding rules alone
                7 packets count under no rule: no path was free
  log           12 records lost: the ring was full
Rejects`
	if err := info.Print(&b); err != nil || !strings.Contains(b.String(), full) {
		t.Errorf("info of full tables (%v):\n%s\nwant\n%s", err, b.String(), full)
	}
	b.Reset()
	if err := (&Info{}).Print(&b); err != nil || b.String() != "Status: Disabled\n" {
		t.Errorf("info without weir: %q, %v", b.String(), err)
	}
}

// Programs that read pfctl -s info find pf's lines.
func TestPrintPf(t *testing.T) {
	now := time.Now()
	info := &Info{
		Enabled: true, Since: now.Add(-100 * time.Second), Loaded: &rundir.Loaded{},
		States: StatesInfo{Current: 42, Inserts: 678, Removals: 636}, Sources: SourcesInfo{Current: 3},
		Interfaces: []InterfaceInfo{
			{Passed: Counter{Packets: 970}, Blocked: Counter{Packets: 30}, Reasons: []ReasonCount{
				{reason.State, Counter{Packets: 900}}, {reason.Rule, Counter{Packets: 70}}, {reason.Block, Counter{Packets: 20}}, {reason.MaxSrcStates, Counter{Packets: 10}},
			}},
			{Passed: Counter{Packets: 200}, Reasons: []ReasonCount{{reason.Rule, Counter{Packets: 200}}}},
		},
	}
	lines := func(zero *InfoCounts, verbose bool) string {
		var b strings.Builder
		if err := info.PrintPf(&b, zero, verbose); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const want = `Status: Enabled for 0 days 00:01:40              Debug: err

State Table                          Total             Rate
  current entries                       42               
  searches                            1200           12.0/s
  inserts                              678            6.8/s
  removals                             636            6.4/s
Counters
  match                                290            2.9/s
  bad-offset                             0            0.0/s
  fragment                               0            0.0/s
  short                                  0            0.0/s
  normalize                              0            0.0/s
  memory                                 0            0.0/s
  bad-timestamp                          0            0.0/s
  congestion                             0            0.0/s
  ip-option                              0            0.0/s
  proto-cksum                            0            0.0/s
  state-mismatch                         0            0.0/s
  state-insert                           0            0.0/s
  state-limit                            0            0.0/s
  src-limit                             10            0.1/s
  synproxy                               0            0.0/s
  translate                              0            0.0/s
  no-route                               0            0.0/s
`
	if diff := cmp.Diff(want, lines(nil, false)); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	for _, part := range []string{"Source Tracking Table\n  current entries                        3 ", "Limit Counters\n", "  max-src-states                        10            0.1/s\n"} {
		if said := lines(nil, true); !strings.Contains(said, part) {
			t.Errorf("verbose info has no %q:\n%s", part, said)
		}
	}
	zero := info.Counts()
	zero.Since = now.Add(-10 * time.Second)
	info.States.Inserts, info.Interfaces[1].Reasons[0].Packets, info.Interfaces[1].Passed.Packets = 700, 230, 230
	for _, part := range []string{"0 days 00:00:10 ", "searches                              30            3.0/s", "inserts                               22", "match                                 30", "src-limit                              0"} {
		if said := lines(zero, false); !strings.Contains(said, part) {
			t.Errorf("info since -F info has no %q:\n%s", part, said)
		}
	}
	zero.Since = info.Since.Add(-time.Hour) // weir was stopped since
	if said := lines(zero, false); !strings.Contains(said, "  inserts                              700 ") {
		t.Errorf("info with an old record:\n%s", said)
	}
}

// Programs that read pfctl -s memory and -s timeouts find pf's lines, with a number where there is
// no limit.
func TestPrintLimits(t *testing.T) {
	info := &Info{
		Loaded: &rundir.Loaded{MaxTableEntries: 2000000, SrcTrack: 30}, States: StatesInfo{Limit: 100000}, Sources: SourcesInfo{Limit: 10000}, MaxFrags: 8192,
		Timeouts: map[string]string{timeoutFrag: "60s"}, Adaptive: Adaptive{60000, 120000},
	}
	for phase := range state.PhaseCount {
		info.Timeouts[phase.String()] = "1m"
	}
	const want = `states        hard limit   100000
src-nodes     hard limit    10000
frags         hard limit     8192
tables        hard limit 4294967295
table-entries hard limit  2000000
`
	var limits, timeouts strings.Builder
	if err := errors.Join(info.PrintLimits(&limits), info.PrintTimeouts(&timeouts)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, limits.String()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	const last = "adaptive.end             120000 states\nsrc.track                    30s\n"
	if !strings.HasSuffix(timeouts.String(), last) {
		t.Errorf("timeouts do not end with %q:\n%s", last, timeouts.String())
	}
}

// A counter that has begun anew is shown as it counts.
func TestSubtract(t *testing.T) {
	rules := []Rule{{id: 7, Evaluations: 10, Packets: 20, Bytes: 2000, States: 3, StateCreations: 5}, {id: 8, Evaluations: 5, Packets: 4, Bytes: 400}}
	z := &PfctlZero{}
	z.SetRules(rules)
	now := []Rule{
		{id: 7, Evaluations: 11, Packets: 23, Bytes: 2300, States: 2, StateCreations: 6}, {id: 8, Evaluations: 7, Packets: 3, Bytes: 300}, {id: 9, Evaluations: 1},
	}
	z.Subtract(now)
	want := []Rule{{id: 7, Evaluations: 1, Packets: 3, Bytes: 300, States: 2, StateCreations: 1}, {id: 8, Evaluations: 2, Packets: 3, Bytes: 300}, {id: 9, Evaluations: 1}}
	if !slices.Equal(now, want) {
		t.Errorf("%+v, want %+v", now, want)
	}
}

func TestPrintInterfaces(t *testing.T) {
	all := &Interfaces{
		Interfaces: []rundir.Interface{
			{Name: "eth0", Hook: "xdp", Mode: "native", Why: "physical device", Driver: "igc", Queues: 4, MTU: 1500},
			{Name: "lo", Hook: "tcx", Why: "loopback has no driver", Queues: 1, MTU: 65536, Skip: true, Addresses: []netip.Prefix{}},
		},
		ForeignDrops: []string{"nftables ip filter FORWARD"},
		Tunnels:      []Tunnel{{Interface: "wg0", Engine: "kernel", Why: "this kernel has WireGuard"}, {Interface: "wg1", Why: "weir vpn run does not run"}},
	}
	const want = `INTERFACE  HOOK  MODE    DRIVER  QUEUES  MTU    WHY
eth0       xdp   native  igc     4       1500   physical device
lo         tcx   -       -       1       65536  set skip; loopback has no driver
the tunnel wg0 has the engine kernel: this kernel has WireGuard
the tunnel wg1 has no engine: weir vpn run does not run
the forward chain nftables ip filter FORWARD of another firewall drops packets by default, also those that weir hands to the stack: accept them there
`
	var b strings.Builder
	if err := all.Print(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}
}

// The output has the form of pfctl -sS.
func TestPrintSources(t *testing.T) {
	sources := []Source{
		{Addr: netip.MustParseAddr("192.0.2.1"), States: 3, Connections: 2, Rate: 1.25, Seconds: 5, Rule: &state.RuleRef{Nr: 7}, Age: 3725 * time.Second, Over: true},
		{Addr: netip.MustParseAddr("fe80::1"), Interface: "lan0", Rule: &state.RuleRef{Old: true}, Age: time.Second, Expires: 61 * time.Second},
		{Addr: netip.MustParseAddr("2001:db8::1"), States: 1},
		{Addr: netip.MustParseAddr("192.0.2.1"), States: 2, Keeps: new(netip.MustParseAddr("198.51.100.7"))},
	}
	const want = `192.0.2.1 ( states 3, connections 2, rate 1.2/5s )
   age 01:02:05, rule 7, over
fe80::1%lan0 ( states 0, connections 0, rate 0.0/0s )
   age 00:00:01, expires in 00:01:01, of a rule that is gone
2001:db8::1 ( states 1, connections 0, rate 0.0/0s )
   age 00:00:00
192.0.2.1 -> 198.51.100.7 ( states 2, connections 0, rate 0.0/0s )
   sticky-address
`
	var verbose, plain strings.Builder
	if err := errors.Join(PrintSources(&verbose, sources, true), PrintSources(&plain, sources[:1], false)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, verbose.String()); diff != "" {
		t.Errorf("sources -v (-want +got):\n%s", diff)
	}
	if line, _, _ := strings.Cut(want, "\n"); plain.String() != line+"\n" {
		t.Errorf("sources: %q", plain.String())
	}
}

// A rate falls while no connection comes, as its threshold would.
func TestRateFalls(t *testing.T) {
	s := dataplane.Source{Rate: 3000, Last: 100}
	for seconds, want := range map[uint32]float64{0: 3, 4: 1.8, 9: 0.3, 10: 0, 500: 0} {
		if got := s.RateAt(state.Tick((100+seconds)*state.TicksPerSecond), 10); got != want {
			t.Errorf("after %d s the rate is %v, want %v", seconds, got, want)
		}
	}
}
