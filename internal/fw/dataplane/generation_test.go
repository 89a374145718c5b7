package dataplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// During a reload packets meet the old programs at one interface and the new ones at
// another. Both know each other's states, and new rules get new ids.
func TestTwoGenerations(t *testing.T) {
	h := newHarness(t, "block\npass in on lan0\npass out on wan0")
	commit(t, h.dp, nil)
	older := scene{harness: h, numbers: map[string]string{}}
	older.play(0, step{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53",
		"forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"})

	cfg := h.dp.config
	cfg.RuleBase = must(NextRuleBase(h.net.dir))(t)
	cfg.Program = must(ruleset.Compile(h.parse("block\npass out"), h.snapshot()))(t)
	cfg.HashSeed, cfg.Options.Timeouts[state.UDPFirst] = 7, 5*state.TicksPerSecond
	next := *h
	next.dp = build(t, cfg)
	if h.dp.forwards || !next.dp.forwards {
		t.Error("the second generation is the one that is built while another forwards")
	}
	newer := scene{harness: &next, numbers: map[string]string{}}
	newer.play(1, step{"xdp wan", "udp 198.51.100.9:53 > 192.168.1.10:1",
		"forward state lan udp 198.51.100.9:53 > 192.168.1.10:1 ttl 63"})
	newer.play(2, step{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "drop block"})
	newer.play(3, step{"out wan", "udp 203.0.113.2:1 > 198.51.100.9:53", "up rule"})
	older.play(4, step{"out wan", "udp 203.0.113.2:1 > 198.51.100.9:53", "up state"})
	older.play(5, step{"xdp lan", "udp 192.168.1.10:3 > 198.51.100.9:53",
		"forward rule wan udp 192.168.1.10:3 > 198.51.100.9:53 ttl 63"})

	commit(t, next.dp, nil)
	newer.play(6, step{"xdp lan", "udp 192.168.1.10:3 > 198.51.100.9:53",
		"forward state wan udp 192.168.1.10:3 > 198.51.100.9:53 ttl 63"})
	ids := make(map[state.Tuple][2]uint32)
	for s := range next.dp.View().States() {
		ids[s.Tuple[0]] = [2]uint32{s.RuleIn, s.RuleOut}
	}
	want := map[[2]uint32]int{{2, 3}: 2, {0, 5}: 1} // ids plus 1: rules 1 and 2 of the first, 1 of the second
	got := make(map[[2]uint32]int)
	for _, id := range ids {
		got[id]++
	}
	for id, n := range want {
		if got[id] != n {
			t.Errorf("rules %v have %d states, want %d; all: %v", id, got[id], n, got)
		}
	}
	if l := must(readLedger(h.net.dir))(t); l.HashSeed != 1 || l.NextRule != 5 {
		t.Errorf("ledger %+v: the hash seed must stay, and 5 ids be used", l)
	}
}

// Loading the same rules again keeps their counts. Other rules start from 0.
func TestSameRulesCountOn(t *testing.T) {
	h := newHarness(t, "block\npass in on lan0\npass out on wan0")
	commit(t, h.dp, nil)
	h.reset()
	older := scene{harness: h, numbers: map[string]string{}}
	older.play(0, step{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53",
		"forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"})
	cfg := h.dp.config
	cfg.RuleBase = h.dp.ledger.RuleBase

	next := *h
	next.dp = build(t, cfg)
	older.play(1, step{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53",
		"forward rule wan udp 192.168.1.10:2 > 198.51.100.9:53 ttl 63"})
	commit(t, next.dp, nil)
	want := []RuleCounter{{4, 0}, {4, 2}, {4, 2}}
	if diff := cmp.Diff(want, must(next.dp.View().Rules())(t)); diff != "" {
		t.Errorf("the same rules (-want +got):\n%s", diff)
	}

	cfg.RuleBase = must(NextRuleBase(h.net.dir))(t)
	last := build(t, cfg)
	commit(t, last, nil)
	if diff := cmp.Diff(make([]RuleCounter, 3), must(last.View().Rules())(t)); diff != "" {
		t.Errorf("other rules (-want +got):\n%s", diff)
	}
}
