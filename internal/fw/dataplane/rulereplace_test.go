package dataplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// replacePart puts other rules in the place of some in a row, as where an anchor is
// replaced, and returns which of the rules are kept.
func replacePart(t *rapid.T, rs *resolve.Ruleset) (*resolve.Ruleset, []int) {
	other := rulestest.DrawRuleset(t).Rules
	if len(other) > 600 {
		other = other[:600]
	}
	first := rapid.IntRange(0, len(rs.Rules)).Draw(t, "first")
	end := rapid.IntRange(first, len(rs.Rules)).Draw(t, "end")
	next := &resolve.Ruleset{
		Tables: rs.Tables, Translations: rs.Translations, First: rs.First,
		Rules: slices.Concat(rs.Rules[:first], other, rs.Rules[end:]),
	}
	lists := len(rs.First)
	var keep []int
	for n := range next.Sequence() {
		switch {
		case n < lists+first:
			keep = append(keep, n)
		case n < lists+first+len(other):
			keep = append(keep, ruleset.New)
		default:
			keep = append(keep, n-first-len(other)+end)
		}
	}
	if !slices.ContainsFunc(next.Rules, func(r *resolve.Rule) bool { return r.Anchor != nil }) {
		pivot := rapid.IntRange(0, len(next.Rules)).Draw(t, "first rule") // those before it move to the end
		next.Rules = slices.Concat(next.Rules[pivot:], next.Rules[:pivot])
		keep = slices.Concat(keep[:lists], keep[lists+pivot:], keep[lists:lists+pivot])
	}
	return replaceLists(t, next, keep)
}

// replaceLists also puts other translation rules in the place of the last ones, now and
// then: filter rules get other numbers.
func replaceLists(t *rapid.T, next *resolve.Ruleset, keep []int) (*resolve.Ruleset, []int) {
	if rapid.Bool().Draw(t, "keep lists") {
		return next, keep
	}
	lists := len(next.First)
	next.Translations = rulestest.DrawTranslations(t)
	next.First = resolve.ListRules(next.Translations)
	return next, slices.Concat(slices.Repeat([]int{ruleset.New}, len(next.First)), keep[lists:])
}

// redefineTables gives tables that no command has changed other contents, now and then.
func redefineTables(t *rapid.T, p *ruleset.Program, rs *resolve.Ruleset) {
	rs.Tables = slices.Clone(rs.Tables)
	for i, table := range rs.Tables {
		if p.HasChanged(table.Name) || rapid.Bool().Draw(t, "same contents") {
			continue
		}
		other := *table
		other.Entries = nil
		for range rapid.IntRange(0, 12).Draw(t, "entries") {
			e := rulestest.DrawEntry(t)
			if !slices.ContainsFunc(other.Entries, func(o resolve.TableEntry) bool { return o.Prefix == e.Prefix }) {
				other.Entries = append(other.Entries, e)
			}
		}
		rs.Tables[i] = &other
	}
}

// After parts of the rules and tables were replaced, the kernel agrees with evaluating
// the rules one by one, for every packet. Pools of rules that stay go on.
func TestReplaceRulesRandom(t *testing.T) {
	h := newLargeRulesHarness(t)
	rapid.Check(t, func(t *rapid.T) {
		rs, host := rulestest.DrawRuleset(t), rulestest.DrawSnapshot(t)
		program, err := ruleset.Compile(rs, host)
		if err != nil {
			t.Fatal(err)
		}
		h.load(t, program)
		slow := rulestest.NewEvaluator(rs, host)
		for range 2 {
			var keep []int
			rs, keep = replacePart(t, rs)
			redefineTables(t, program, rs)
			if program, err = program.Replace(rs, host, keep); err != nil {
				t.Fatal(err)
			}
			if err := h.live.replaceRules(program); err != nil {
				t.Fatal(err)
			}
			h.program, h.pools = program, len(program.Pools)
			slow.Replace(rs)
			changeRandomly(t, &Dataplane{live: h.live}, rs)
			compareResults(t, h, slow, 6)
		}
	})
}

// compareResults asks both of a few packets.
func compareResults(t *rapid.T, h *rulesHarness, slow *rulestest.Evaluator, packets int) {
	for range packets {
		p := rulestest.DrawPacket(t)
		for range 2 { // the second time the result is in the cache
			want, got := slow.Evaluate(p), h.evaluate(t, p)
			want.Stop = rulestest.None
			if got.Tag == "unknown" {
				got.Tag = p.Tag
			}
			if diff := rulestest.Diff(want, got); diff != "" {
				t.Fatalf("%+v (-asked one by one +in the kernel):\n%s", p, diff)
			}
		}
	}
}

// While part of the rules is replaced again and again, each packet meets either the old
// part or the new one. In both parts, one rule has its source and the other its
// destination. A mixture would match neither or another rule.
func TestRulesReplacedUnderTraffic(t *testing.T) {
	all := resolve.Interface{Any: true}
	part := func(side int) []*resolve.Rule {
		var rules []*resolve.Rule
		for i := range 200 {
			r := &resolve.Rule{Interface: all, Quick: true}
			r.To.Addr, r.From.Addr = to(host4(2*i+side)), to(host4(2*i+1-side))
			rules = append(rules, r)
		}
		return rules
	}
	main := &resolve.Rule{Action: ast.Block, Interface: all}
	rs := &resolve.Ruleset{Rules: append([]*resolve.Rule{main}, part(0)...)}
	p := must(ruleset.Compile(rs, benchHost))(t)
	entries := ruleEntries(p, 0)
	entries["rules"], entries[mapRuleCounters] = 1<<15, 1<<15+1
	h := newRulesHarness(t, entries, map[string]any{})
	h.load(t, p)
	keep := slices.Repeat([]int{ruleset.New}, 201)
	keep[0] = 0
	underTraffic(t, func(r *rand.Rand) error {
		i, side := r.IntN(200), r.IntN(2)
		rule, err := h.decider(syn(host4(2*i+1-side), host4(2*i+side), 80))
		switch {
		case err != nil:
			return err
		case rule == 0: // the other side is in force
			return nil
		case (rule-1)%200 != i || (rule-1)/200%2 != side:
			return fmt.Errorf("pair %d of side %d: the rule with index %d decides", i, side, rule)
		}
		return nil
	}, func(n int) error {
		next, err := p.Replace(&resolve.Ruleset{Rules: append([]*resolve.Rule{main}, part(1-n%2)...)}, benchHost, keep)
		if err != nil {
			return err
		}
		p = next
		return h.live.replaceRules(next)
	})
}

// An anchor is replaced together with the anchors in it. Other rules keep their counts
// and ids. The new ones start from 0 and count for themselves. States go on, and still
// count under the rules that created them.
func TestAnchorReplaced(t *testing.T) {
	file := func(body string) string {
		return "block\nanchor \"outer\" on lan0 {\n pass in proto udp to port 53\n anchor \"inner\" {\n" + body +
			"\n }\n pass in quick proto udp to port 99\n}\npass out on wan0"
	}
	h := newHarness(t, file("  pass in proto udp to port 1000\n  block in quick proto udp to port 1001"))
	commit(t, h.dp, nil)
	h.reset()
	old := h.parse(file("  pass in proto udp to port 1000\n  block in quick proto udp to port 1001"))
	s := scene{harness: h, numbers: map[string]string{}}
	send := func(at int, host, port, want string) {
		if want == "drop block" {
			s.play(at, step{"xdp lan", "udp " + host + ":1 > 198.51.100.9:" + port, want})
			return
		}
		s.play(at, step{"xdp lan", "udp " + host + ":1 > 198.51.100.9:" + port,
			"forward " + want + " wan udp " + host + ":1 > 198.51.100.9:" + port + " ttl 63"})
	}
	send(0, "192.168.1.10", "53", "rule")
	send(1, "192.168.1.10", "1000", "rule")
	send(2, "192.168.1.10", "1001", "drop block")
	send(3, "192.168.1.10", "99", "rule")
	before, ids := must(h.dp.View().Rules())(t), must(h.dp.View().RuleIDs())(t)

	next := h.parse(file("  pass in proto udp to port 1001\n  pass in proto udp to port 1002\n  block in quick proto udp to port 1000"))
	keep := must(ruleset.KeepOutside(old.Rules, next.Rules, "outer/inner"))(t)
	if diff := cmp.Diff([]int{0, 1, 2, 3, ruleset.New, ruleset.New, ruleset.New, 6, 7}, keep); diff != "" {
		t.Fatalf("kept rules (-want +got):\n%s", diff)
	}
	check(t, h.dp.ReplaceRules(must(h.dp.config.Program.Replace(next, h.snapshot(), keep))(t), &h.dp.config.Options))
	after := must(h.dp.View().Rules())(t)
	if diff := cmp.Diff(slices.Concat(before[:4], make([]RuleCounter, 3), before[6:]), after); diff != "" {
		t.Errorf("counters when the anchor has just been replaced (-want +got):\n%s", diff)
	}
	newIDs := must(h.dp.View().RuleIDs())(t)
	if diff := cmp.Diff(slices.Concat(ids[:4], []uint32{8, 9, 10}, ids[6:]), newIDs); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	send(4, "192.168.1.10", "1000", "state")
	send(5, "192.168.1.11", "1000", "drop block")
	send(6, "192.168.1.11", "1001", "rule")
	send(7, "192.168.1.11", "99", "rule")
	got := must(h.dp.View().Rules())(t)
	// Three packets come in, of which two go out: five crossings. The first stops at
	// rule 6, the third at rule 7.
	want := slices.Clone(after)
	for n, count := range []uint64{5, 5, 5, 5, 5, 5, 5, 4, 3} {
		want[n].Evaluations += count
	}
	want[4].States++
	want[7].States++
	want[8].States += 2
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counters after four more packets (-want +got):\n%s", diff)
	}
	if l := must(readLedger(h.net.dir))(t); l.NextRule != 11 {
		t.Errorf("the next id that is free is %d, want 11", l.NextRule)
	}
	h.reset()
	again := build(t, func() Config {
		cfg := h.dp.config
		cfg.Program = must(ruleset.Compile(next, h.snapshot()))(t)
		cfg.RuleBase = must(NextRuleBase(h.net.dir))(t)
		return cfg
	}())
	commit(t, again, nil)
	if diff := cmp.Diff(make([]RuleCounter, 9), must(again.View().Rules())(t)); diff != "" {
		t.Errorf("after a load (-want +got):\n%s", diff)
	}
}

// Rules without room are refused, and the old ones stay.
func TestReplaceRulesRefused(t *testing.T) {
	h := newHarness(t, "block\npass in on lan0\npass out on wan0")
	commit(t, h.dp, nil)
	rules := h.parse("block\npass in on lan0\npass out on wan0").Rules
	many := slices.Concat(rules[:1], alike(ast.Pass)(5000), rules[1:])
	keep := slices.Repeat([]int{ruleset.New}, len(many))
	p := must(h.dp.config.Program.Replace(&resolve.Ruleset{Rules: many}, h.snapshot(), keep))(t)
	if err := h.dp.ReplaceRules(p, &h.dp.config.Options); !errors.Is(err, ErrNoRoom) {
		t.Errorf("got %v, want that there is no room", err)
	}
	if n := len(must(h.dp.View().Rules())(t)); n != 3 {
		t.Errorf("%d rules are in force, want 3", n)
	}
	mixed := must(h.dp.config.Program.Replace(&resolve.Ruleset{Rules: rules}, h.snapshot(), []int{1, 0, 2}))(t)
	if want := []uint32{3, 4, 2}; !slices.Equal(mixed.Order, want) {
		t.Errorf("rules that are taken for others have the indices %v, want %v", mixed.Order, want)
	}
	if _, err := ruleset.KeepOutside(rules, rules[1:], "x"); !errors.Is(err, ruleset.ErrOtherRules) {
		t.Errorf("other rules outside of the anchor: %v", err)
	}
}

// Rules that do not fit into the maps are an error that names the map. The rules in force
// stay.
func TestRulesWithoutRoom(t *testing.T) {
	p := must(ruleset.Compile(&resolve.Ruleset{Rules: alike(ast.Block)(1)}, benchHost))(t)
	h := newRulesHarness(t, ruleEntries(p, 0), map[string]any{})
	h.load(t, p)
	targets := new(resolve.Translation)
	for i := range 600 {
		a := host4(i)
		targets.Addrs = append(targets.Addrs, resolve.Address{Kind: resolve.PrefixAddress, Prefix: netip.PrefixFrom(a, a.BitLen())})
	}
	pass := &resolve.Rule{Interface: resolve.Interface{Any: true}, Nat: targets}
	larger := must(ruleset.Compile(&resolve.Ruleset{Rules: []*resolve.Rule{pass, pass}}, benchHost))(t)
	err := h.live.load(larger)
	if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "1200 entries of pool_addresses, room for 512") {
		t.Errorf("got %v, want that pool_addresses has no room", err)
	}
	if rule, err := h.decider(syn(host4(1), host4(2), 80)); rule != 0 || err != nil {
		t.Errorf("rule %d decides, want 0 (%v)", rule, err)
	}
}
