package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/fw/ruleset"
)

// Limiters of rules, over IPv4 and IPv6, in both hooks.
func testLimiters(h *harness) {
	const dns = "udp 192.168.1.10:1 > 198.51.100.9:53"
	h.plays([]play{
		{"two rules share a state limiter, and what it refuses meets the next rule", "state limiter s id 1 limit 2\npass in proto udp state limiter s\npass in proto tcp state limiter id 1\nblock in quick proto icmp\npass out", []step{
			goes(dns),
			goes("tcp 192.168.1.10:1 > 198.51.100.9:80 S seq 5"),
			{"xdp lan", "udp 192.168.1.11:2 > 198.51.100.9:53", "forward rule wan udp 192.168.1.11:2 > 198.51.100.9:53 ttl 63"}, // implicit: no rule on the way in
			{"xdp lan", dns, "forward state wan " + dns + " ttl 63"},
		}},
		{"no-match leaves an earlier rule", "state limiter s id 7 limit 1\nblock in\npass in proto udp state limiter s (no-match)\npass out", []step{
			goes(dns),
			{"xdp lan", "udp 192.168.1.11:2 > 198.51.100.9:53", "drop block"},
			{"tcx lan", "udp 192.168.1.11:3 > 198.51.100.9:53", "drop block"},
			{"wait", "100", ""},
		}},
		{"block drops, whatever rules come later", "state limiter s id 255 limit 1\npass in proto udp state limiter s (block)\npass in proto udp to port 53\npass in proto tcp state limiter s\npass out", []step{
			goes(dns),
			goes("udp 192.168.1.10:2 > 198.51.100.9:53"), // a later rule decides: it does not count
			goes("tcp 192.168.1.10:1 > 198.51.100.9:80 S seq 5"),
			{"xdp lan", "udp 192.168.1.11:2 > 198.51.100.9:53", "drop state-limiter"},
		}},
		{"block with quick", "state limiter s id 255 limit 1\npass in quick proto udp state limiter s (block)\npass in\npass out", []step{
			goes(dns),
			{"xdp lan", "udp 192.168.1.11:2 > 198.51.100.9:53", "drop state-limiter"},
			{"tcx lan", "udp [fd00:1::10]:3 > [2001:db8:9::1]:53", "drop state-limiter"},
			goes("tcp 192.168.1.10:1 > 198.51.100.9:80 S seq 5"),
		}},
		{"a connection counts once", "state limiter s id 1 limit 1\nblock\npass proto udp state limiter s", []step{
			goes(dns),
			{"xdp lan", "udp 192.168.1.11:2 > 198.51.100.9:53", "drop block"},
		}},
		{"a limiter that does not exist", "block in\npass in proto udp state limiter id 9 (block)\npass in proto tcp source limiter id 9\npass out", []step{
			{"xdp lan", dns, "drop block"},
			{"xdp lan", "tcp 192.168.1.10:1 > 198.51.100.9:80 S seq 5", "drop block"},
		}},
		{"a rate", "state limiter s id 1 limit 100 rate 2/10\nblock in\npass in proto udp state limiter s\npass out", []step{
			goes(dns),
			goes("udp 192.168.1.11:2 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.12:3 > 198.51.100.9:53", "drop block"},
			{"wait", "4", ""},
			{"xdp lan", "udp 192.168.1.12:3 > 198.51.100.9:53", "drop block"},
			{"wait", "1", ""},
			goes("udp 192.168.1.12:3 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.13:4 > 198.51.100.9:53", "drop block"},
		}},
		{"a source limiter: states and entries", "source limiter c id 1 entries 2 limit 1\nblock in\npass in proto udp source limiter c\npass out", []step{
			goes(dns),
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "drop block"},
			goes("udp [fd00:1::10]:1 > [2001:db8:9::1]:53"),
			{"tcx lan", "udp [fd00:1::10]:2 > [2001:db8:9::1]:53", "drop block"},
			{"xdp lan", "udp 192.168.1.11:1 > 198.51.100.9:53", "drop block"}, // a third source
		}},
		{"masks", "source limiter c id 1 entries 9 limit 1 inet mask 24 inet6 mask 64\npass in quick proto udp source limiter c (block)\npass out", []step{
			goes(dns),
			{"xdp lan", "udp 192.168.1.77:2 > 198.51.100.9:53", "drop source-limiter"},
			goes("udp [fd00:1::10]:1 > [2001:db8:9::1]:53"),
			{"xdp lan", "udp [fd00:1::77]:1 > [2001:db8:9::1]:53", "drop source-limiter"},
		}},
		{"the rate of a source", "source limiter c id 1 entries 9 limit 9 rate 1/10\nblock in\npass in proto udp source limiter c\npass out", []step{
			goes(dns),
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "drop block"},
			goes("udp 192.168.1.11:1 > 198.51.100.9:53"),
			{"wait", "10", ""},
			goes("udp 192.168.1.10:2 > 198.51.100.9:53"),
		}},
		{"both kinds", "state limiter s id 1 limit 2\nsource limiter c id 1 entries 9 limit 1\nblock in\npass in proto udp state limiter s source limiter c\npass out", []step{
			goes(dns),
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "drop block"},
			goes("udp 192.168.1.11:1 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.12:1 > 198.51.100.9:53", "drop block"},
		}},
		{"a rule without a state asks, but does not count", "state limiter s id 1 limit 1\nblock in\npass in proto udp no state state limiter s\npass out no state", []step{
			goes(dns),
			goes("udp 192.168.1.10:2 > 198.51.100.9:53"),
		}},
	})
}

// A source with many states gets into the table of its limiter, and leaves it.
func TestLimiterTable(t *testing.T) {
	h := newHarness(t, "source limiter c id 3 entries 9 limit 9 inet mask 24 table <many> above 2 below 2\ntable <many> persist\npass in proto udp source limiter c\npass out")
	for port := range 3 {
		if over := h.dp.Overloaded(); len(over) != 0 {
			t.Fatalf("with %d states there is %+v to do", port, over)
		}
		h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", 1+port), "forward rule")
	}
	over := h.dp.Overloaded()
	if len(over) != 1 || over[0].Out || over[0].Table != "many" || over[0].Addr.String() != "192.168.1.0" || over[0].Bits != 24 {
		t.Fatalf("with 3 states there is %+v to do", over)
	}
	h.dp.Settle(over)
	if over := h.dp.Overloaded(); len(over) != 0 {
		t.Fatalf("in the table there is %+v to do", over)
	}
	number := h.dp.Overloads()
	for i := range h.dp.tables.sources {
		if s := &h.dp.tables.sources[i]; s.Stage == sourceLive {
			s.States = 1
		}
	}
	over = h.dp.Overloaded()
	if len(over) != 1 || !over[0].Out {
		t.Fatalf("with 1 state there is %+v to do", over)
	}
	h.dp.Settle(over)
	if h.dp.Overloads() != number || len(h.dp.Overloaded()) != 0 {
		t.Error("the source is not settled")
	}
}

// What limiters count stays over a load with the same ids, also if tables are made anew. With other
// masks sources are counted anew.
func TestLimitersOutliveLoads(t *testing.T) {
	n := newNet(t)
	h := &harness{tb: t, net: n}
	const rules = "pass in proto udp state limiter s source limiter c\npass out"
	const limiters = "state limiter s id 1 limit 90\nsource limiter c id 1 entries 4 limit 90\n"
	config := func(text string) Config {
		cfg := n.blank()
		rs := h.parse(text)
		cfg.Program, cfg.Options = must(ruleset.Compile(rs, h.snapshot()))(t), ruleset.OptionsOf(&rs.Options)
		return cfg
	}
	first := build(t, config(limiters+rules))
	commit(t, first, n.attachments(false))
	first.tables.limiters[1].Full = 7
	enterCounted(t, first, 40, limitsLimiters, 1|1<<8)
	for i := range first.tables.sources {
		if s := &first.tables.sources[i]; s.Stage == sourceLive {
			s.Over = sourceOverListed
		}
	}
	same := func(d *Dataplane, when string) {
		t.Helper()
		var got []uint64
		for _, l := range d.View().Limiters() {
			got = append(got, uint64(l.States), uint64(l.Sources), l.Full)
		}
		if want := []uint64{40, 0, 7, 40, 2, 0}; !slices.Equal(got, want) {
			t.Errorf("%s limiters count %v, want %v", when, got, want)
		}
		for s := range d.View().Sources() {
			if s.Limiter != 1 || s.States != 20 || !s.Listed {
				t.Errorf("%s a source is %+v", when, s)
			}
		}
		if used := d.tables.shared.LimiterSources; used != 2 {
			t.Errorf("%s %d sources of limiters are in use, want 2", when, used)
		}
	}
	same(first, "entered,")
	for _, text := range []string{limiters + rules, strings.Replace(limiters, "entries 4", "entries 40", 1) + rules, "pass", "set limit states 5000\n" + limiters + rules} {
		next := build(t, config(text))
		commit(t, next, n.attachments(false))
		same(next, "under\n"+text+"\n")
	}
	other := build(t, config("set limit states 5000\n"+strings.Replace(limiters, "entries 4 limit 90", "entries 4 limit 90 inet mask 8", 1)+rules))
	if other.kept {
		t.Error("with another mask the sources are kept, which count by the old one")
	}
	commit(t, other, n.attachments(false))
	all := other.View().Limiters()
	if l := all[1]; l.States != 40 || l.Sources != 1 || l.Inet != 8 {
		t.Errorf("with another mask the limiter is %+v, want 40 states of one source", l)
	}
	gone := build(t, config("set limit states 5000\npass"))
	if limit := other.tables.limiters[1].Limit; limit != 90 {
		t.Errorf("before the rules without it are in force a limiter admits %d states, want 90", limit)
	}
	commit(t, gone, n.attachments(false))
	if limit := gone.tables.limiters[1].Limit; limit != 0 {
		t.Errorf("a limiter that is gone admits %d states", limit)
	}
	if back := build(t, config("set limit states 5000\n"+limiters+rules)); back.kept { // as after a load that nobody confirmed
		t.Error("a limiter that was gone has other masks than its sources, which are kept")
	}
}

// Rules that cannot be put in force change no limiter, neither in place nor by a load.
func TestLimitersAfterFailure(t *testing.T) {
	const rules = "state limiter a id 1 limit 5\nstate limiter b id 2 limit 6\npass in proto udp state limiter a\npass out"
	const others = "state limiter a id 1 limit 9 rate 1/10\nstate limiter c id 3 limit 7\npass in proto udp state limiter c\npass out"
	h := newHarness(t, rules)
	commit(t, h.dp, nil)
	limits := func() (all [3]uint32) {
		for i := range all {
			all[i] = h.dp.tables.limiters[1+i].Limit
		}
		return all
	}
	settings := h.dp.tables.limiters[1]
	old, next := h.parse(rules), h.parse(others)
	p := must(h.dp.config.Program.Replace(next, h.snapshot(), ruleset.KeepParts(old.Rules, next.Rules)))(t)
	good := h.dp.objects.Maps[mapRuleSets]
	h.dp.objects.Maps[mapRuleSets] = h.dp.objects.Maps[mapShared] // takes no rule set
	err := h.dp.ReplaceRules(p, &h.dp.config.Options)
	h.dp.objects.Maps[mapRuleSets] = good
	if err == nil {
		t.Fatal("the rules were replaced")
	}
	if got := limits(); got != [3]uint32{5, 6, 0} || h.dp.tables.limiters[1] != settings {
		t.Errorf("after a failure limiters admit %v states, want 5, 6, and none; %+v", got, h.dp.tables.limiters[1])
	}
	h.expect("xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule")

	cfg := h.dp.config
	cfg.Program = must(ruleset.Compile(next, h.snapshot()))(t)
	failed := must(Build(cfg))(t)
	if got := limits(); !failed.kept || got != [3]uint32{9, 6, 7} {
		t.Errorf("with rules under way limiters admit %v states, want 9, 6 and 7", got)
	}
	check(t, failed.Close())
	if got := limits(); got != [3]uint32{5, 6, 0} {
		t.Errorf("after a load that was given up limiters admit %v states, want 5, 6, and none", got)
	}

	check(t, h.dp.ReplaceRules(p, &h.dp.config.Options))
	if got := limits(); got != [3]uint32{9, 0, 7} {
		t.Errorf("limiters admit %v states, want 9, none, and 7", got)
	}
}

// When rules lose their last limiter, the programs go on, and know limiters when one comes back. Others do not.
func TestLimitersComeBack(t *testing.T) {
	const with, without = "state limiter a id 1 limit 1\nblock\npass proto udp state limiter a", "block\npass proto udp"
	replace := func(h *harness, text string) error {
		rs := h.parse(text)
		p := must(h.dp.config.Program.Replace(rs, h.snapshot(), slices.Repeat([]int{ruleset.New}, len(rs.Rules))))(t)
		return h.dp.ReplaceRules(p, &h.dp.config.Options)
	}
	h := newHarness(t, with)
	commit(t, h.dp, nil)
	h.reset()
	send := func(port int, want string) {
		t.Helper()
		h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", port), want)
	}
	send(1, "forward rule")
	send(2, "drop block")
	check(t, replace(h, without))
	send(2, "forward rule")
	check(t, replace(h, with))
	send(1, "forward state")
	send(3, "drop block")
	if l := h.dp.View().Limiters(); len(l) != 1 || l[0].States != 1 || l[0].Limit != 1 {
		t.Errorf("limiters %+v, want one with 1 state of 1", l)
	}
	other := newHarness(t, without)
	commit(t, other.dp, nil)
	if err := replace(other, with); !errors.Is(err, ErrNoRoom) {
		t.Errorf("the first limiter: %v", err)
	}
}
