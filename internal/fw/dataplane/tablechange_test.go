package dataplane

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"weir/internal/fw/dataplane/rulesprog"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// entriesOf returns an entry for each address.
func entriesOf(addrs ...netip.Addr) []resolve.TableEntry {
	var entries []resolve.TableEntry
	for _, a := range addrs {
		entries = append(entries, resolve.TableEntry{Prefix: netip.PrefixFrom(a, a.BitLen())})
	}
	return entries
}

// inTable is a condition on a table.
func inTable(name string, not bool) resolve.Endpoint {
	return resolve.Endpoint{Addr: resolve.Address{Kind: resolve.TableAddress, Table: name, Not: not}}
}

// halves are rules that tell of a packet between two hosts which one of them is in
// the table t: 1 the source, 2 the destination, 0 neither or both.
func halves() *resolve.Ruleset {
	all := resolve.Interface{Any: true}
	return &resolve.Ruleset{
		Tables: []*resolve.Table{{Name: "t"}, {Name: "idle", TableFlags: ast.TableFlags{Persist: true}}},
		Rules: []*resolve.Rule{
			{Action: ast.Block, Interface: all},
			{Interface: all, Quick: true, From: inTable("t", false), To: inTable("t", true)},
			{Interface: all, Quick: true, From: inTable("t", true), To: inTable("t", false)},
		},
	}
}

// newTablesHarness has halves in force.
func newTablesHarness(tb testing.TB) (*rulesHarness, *Dataplane) {
	tb.Helper()
	p := must(ruleset.Compile(halves(), benchHost))(tb)
	h := newRulesHarness(tb, ruleEntries(p, 0), map[string]any{})
	h.load(tb, p)
	return h, &Dataplane{live: h.live}
}

// decider asks which rule decides about a packet, and returns its index.
func (h *rulesHarness) decider(p rulestest.Packet) (int, error) {
	asked := h.ask(p)
	frame, err := binary.Append(nil, binary.NativeEndian, &asked)
	if err != nil {
		return 0, err
	}
	_, frame, err = h.objects.Programs["evaluate_frame"].Test(frame)
	if err != nil {
		return 0, err
	}
	var crossing rulesprog.RulesCrossing
	_, err = binary.Decode(frame, binary.NativeEndian, &crossing)
	return int(crossing.Rule) - 1 - testRuleBase, err
}

// While a table is replaced again and again, no packet finds half a table. Of its two
// addresses, exactly one is in the old table and the other in the new one.
func TestTableReplacedUnderTraffic(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
	}{{"few", 8}, {"an index", 3000}} {
		t.Run(test.name, func(t *testing.T) {
			h, d := newTablesHarness(t)
			var sides [2][]resolve.TableEntry
			for i := range 2 * test.size {
				sides[i%2] = append(sides[i%2], entriesOf(host4(i), host6(i))...)
			}
			must(d.ReplaceTable("t", sides[0]))(t)
			underTraffic(t, func(r *rand.Rand) error {
				host := one(r, host4, host6)
				from, to := r.IntN(2*test.size), r.IntN(2*test.size)
				if from%2 == to%2 {
					to ^= 1
				}
				rule, err := h.decider(syn(host(from), host(to), 80))
				if rule == 0 {
					return fmt.Errorf("%s and %s are both in the table, or neither is", host(from), host(to))
				}
				return err
			}, func(n int) error {
				_, err := d.ReplaceTable("t", sides[1-n%2])
				return err
			})
		})
	}
}

// While entries are added and removed, all others are found, and so are those of wider
// and narrower prefixes.
func TestTableChangedUnderTraffic(t *testing.T) {
	h, d := newTablesHarness(t)
	var stay []resolve.TableEntry
	for i := range 1000 {
		stay = append(stay, entriesOf(host4(4*i), host6(4*i))...)
	}
	must(d.ReplaceTable("t", stay))(t)
	wide := []netip.Prefix{netip.MustParsePrefix("10.0.4.0/22"), netip.MustParsePrefix("2001:db8::/33")}
	underTraffic(t, func(r *rand.Rand) error {
		host := one(r, host4, host6)
		in := host(4 * r.IntN(1000))
		rule, err := h.decider(syn(in, netip.MustParseAddr(one(r, "192.0.2.1", "fd00::1")), 80))
		if err == nil && in.Is4() && rule != 1 {
			err = fmt.Errorf("%s is not in the table (rule %d)", in, rule)
		}
		return err
	}, func(n int) error {
		i := n % 3000
		changes := append(entriesOf(host4(4*i+1), host6(4*i+1)), resolve.TableEntry{Prefix: wide[n%2], Not: n%4 < 2})
		if _, err := d.ChangeTable("t", changes[:2+n%2], nil); err != nil {
			return err
		}
		_, err := d.ChangeTable("t", nil, []netip.Prefix{changes[n%2].Prefix, wide[n%2]})
		return err
	})
}

// underTraffic asks from two sides while changes are made: for two seconds, and on a
// busy machine until there were enough of both.
func underTraffic(tb testing.TB, ask func(*rand.Rand) error, change func(n int) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	const leastAsked, leastChanged = 100, 10
	var asked, changed atomic.Int64
	begin := time.Now()
	goOn := func() bool {
		enough := asked.Load() >= leastAsked && changed.Load() >= leastChanged && time.Since(begin) > 2*time.Second
		return ctx.Err() == nil && !enough
	}
	for side := range 2 {
		random := rand.New(rand.NewPCG(uint64(side), 1))
		group.Go(func() error {
			for ; goOn(); asked.Add(int64(1 - side)) {
				if err := ask(random); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		for ; goOn(); changed.Add(1) {
			if err := change(int(changed.Load())); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%d packets on one side while the table changed %d times", asked.Load(), changed.Load())
	if asked.Load() < leastAsked || changed.Load() < leastChanged {
		tb.Errorf("%d packets, %d changes: too few to say anything", asked.Load(), changed.Load())
	}
}

// After changes of tables, the kernel agrees with evaluating the rules one by one, for
// all rules and packets.
func TestTablesRandom(t *testing.T) {
	h := newLargeRulesHarness(t)
	rapid.Check(t, func(t *rapid.T) {
		rs, host := rulestest.DrawRuleset(t), rulestest.DrawSnapshot(t)
		program, err := ruleset.Compile(rs, host)
		if err != nil {
			t.Fatal(err)
		}
		h.load(t, program)
		d := &Dataplane{live: h.live}
		slow := rulestest.NewEvaluator(rs, host)
		for range 12 {
			changeRandomly(t, d, rs)
			compareResults(t, h, slow, 1)
		}
	})
}

// changeRandomly changes a table of the rules and of the dataplane.
func changeRandomly(t *rapid.T, d *Dataplane, rs *resolve.Ruleset) {
	table := rs.Tables[rapid.IntRange(0, len(rs.Tables)-1).Draw(t, "table")]
	var drawn []resolve.TableEntry
	for range rapid.IntRange(0, 8).Draw(t, "entries") {
		drawn = append(drawn, rulestest.DrawEntry(t))
	}
	same := func(p netip.Prefix) func(resolve.TableEntry) bool {
		return func(e resolve.TableEntry) bool { return e.Prefix == p }
	}
	var err error
	switch rapid.IntRange(0, 4).Draw(t, "change") {
	case 0:
		table.Entries = drawn
		_, err = d.ReplaceTable(table.Name, drawn)
	case 1:
		var gone []netip.Prefix
		for _, e := range append(slices.Clone(table.Entries), drawn...) {
			if rapid.Bool().Draw(t, "gone") {
				gone = append(gone, e.Prefix)
				table.Entries = slices.DeleteFunc(slices.Clone(table.Entries), same(e.Prefix))
			}
		}
		_, err = d.ChangeTable(table.Name, nil, gone)
	default:
		for _, e := range drawn {
			table.Entries = append(slices.DeleteFunc(slices.Clone(table.Entries), same(e.Prefix)), e)
		}
		_, err = d.ChangeTable(table.Name, drawn, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A million prefixes fit, are replaced under traffic, and single ones are changed at
// once. The test prints the times.
func TestMillionPrefixes(t *testing.T) {
	const million = 1_000_000
	for _, test := range []struct {
		name string
		host func(int) netip.Addr
	}{
		{"ipv4", func(i int) netip.Addr {
			n := uint32(i) * 2654435761
			return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		}},
		{"ipv6", func(i int) netip.Addr { // each in a network of its own: the most memory
			n := uint32(i) * 2654435761
			return netip.AddrFrom16([16]byte{0x20, 1, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 15: 1})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, d := newTablesHarness(t)
			var hosts []netip.Addr
			for i := range million {
				hosts = append(hosts, test.host(i))
			}
			entries := entriesOf(hosts...)
			begin := time.Now()
			if n := must(d.ReplaceTable("t", entries))(t); n != million {
				t.Errorf("%d entries changed", n)
			}
			t.Logf("a million entries put in: %s", time.Since(begin).Round(time.Millisecond))
			begin = time.Now()
			must(d.ReplaceTable("t", entries[million/10:]))(t)
			t.Logf("a tenth of them taken out: %s", time.Since(begin).Round(time.Millisecond))
			const changes = 1000
			begin = time.Now()
			for _, e := range entries[:changes] {
				must(d.ChangeTable("t", []resolve.TableEntry{e}, nil))(t)
			}
			t.Logf("one entry put in: %s", time.Since(begin)/changes)
			for _, i := range []int{0, changes - 1, changes, million / 10, million - 1} {
				want := 0
				if i < changes || i >= million/10 {
					want = 1
				}
				outside := netip.MustParseAddr("fd00::1")
				if hosts[i].Is4() {
					outside = test.host(million)
				}
				if rule, err := h.decider(syn(hosts[i], outside, 80)); rule != want || err != nil {
					t.Errorf("entry %d: rule %d, want %d (%v)", i, rule, want, err)
				}
			}
		})
	}
}

// A refused change changes nothing, and later changes still work.
func TestTableRefused(t *testing.T) {
	h, d := newTablesHarness(t)
	a, b := host4(1), host4(2)
	must(d.ReplaceTable("t", entriesOf(a)))(t)
	if _, err := d.ReplaceTable("u", nil); !errors.Is(err, ruleset.ErrNoTable) {
		t.Errorf("a table that does not exist: %v", err)
	}
	if n, err := d.ChangeTable("t", append(entriesOf(b), resolve.TableEntry{}), nil); n != 0 || err == nil {
		t.Errorf("an entry without a prefix changed %d entries: %v", n, err)
	}
	if n := must(d.ChangeTable("idle", entriesOf(a), nil))(t); n != 1 {
		t.Errorf("a table that no rule asks for: %d entries changed", n)
	}
	for _, test := range []struct {
		name string
		want []resolve.TableEntry
	}{{"t", entriesOf(a)}, {"idle", entriesOf(a)}} {
		var got []resolve.TableEntry
		check(t, d.TableEntries(test.name, func(e resolve.TableEntry) bool { got = append(got, e); return true }))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s holds %v, want %v", test.name, got, test.want)
		}
	}
	for _, want := range []int{1, 0, 1} {
		if rule, err := h.decider(syn(a, b, 80)); rule != want || err != nil {
			t.Errorf("rule %d, want %d (%v)", rule, want, err)
		}
		put, remove := entriesOf(b), []netip.Prefix(nil)
		if want == 0 {
			put, remove = nil, []netip.Prefix{netip.PrefixFrom(b, 32)}
		}
		must(d.ChangeTable("t", put, remove))(t)
	}
}

// Changes of a table outlive a reload, as do the states. A file without the table forgets
// it.
func TestTablesKeptOverReload(t *testing.T) {
	const rules = "table <t> persist { 192.168.1.10 }\nblock\npass in on lan0 from <t>\npass out on wan0"
	h := newHarness(t, rules)
	commit(t, h.dp, nil)
	must(h.dp.ChangeTable("t", entriesOf(netip.MustParseAddr("192.168.1.11")), []netip.Prefix{netip.MustParsePrefix("192.168.1.10/32")}))(t)
	passes := func(h *harness, host string) bool {
		h.reset()
		return h.in(h.xdp, "lan", "udp "+host+":1 > 198.51.100.9:53").verdict == redirect
	}
	if passes(h, "192.168.1.10") || !passes(h, "192.168.1.11") {
		t.Error("the change is not in force")
	}
	reload := func(h *harness, rules string) *harness {
		cfg := h.dp.config
		cfg.Program = must(ruleset.Compile(h.parse(rules), h.snapshot()))(t)
		check(t, cfg.Program.KeepTables(h.dp.config.Program.ChangedTables()))
		cfg.RuleBase = must(NextRuleBase(h.net.dir))(t)
		next := *h
		next.dp = build(t, cfg)
		commit(t, next.dp, nil)
		return &next
	}
	h = reload(reload(h, rules), rules)
	if passes(h, "192.168.1.10") || !passes(h, "192.168.1.11") {
		t.Error("the change is lost after reloads")
	}
	if h.dp.config.Program.Gives("u") || !h.dp.config.Program.Gives("t") {
		t.Error("the file gives the contents of t only")
	}
	h = reload(reload(h, "block"), rules)
	if !passes(h, "192.168.1.10") || passes(h, "192.168.1.11") {
		t.Error("a table that was gone comes back as it was changed")
	}
}
