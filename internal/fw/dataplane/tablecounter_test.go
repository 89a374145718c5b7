package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
	"weir/internal/oracle/model"
	"weir/pf/resolve"
)

// forgetTables gives the loaded tables fresh counters.
func (h *harness) forgetTables() {
	h.tb.Helper()
	var keys []xdpTableEntry
	for key, err := range h.dp.tables.tableCounters() {
		check(h.tb, err)
		keys = append(keys, key)
	}
	for i := range keys {
		check(h.tb, h.dp.tables.maps[mapTableCounters].Delete(&keys[i]))
	}
	for id := range must(h.dp.tables.tableRules())(h.tb) {
		check(h.tb, h.dp.tables.maps[mapTableRules].Delete(id))
	}
	h.dp.tables.shared.TableRules = 0
	check(h.tb, h.dp.countTables(h.dp.live.program))
}

// tableTexts returns the entries of a table that have counted something: blocked and
// passed packets and bytes in, then out.
func (h *harness) tableTexts(name string) map[string]string {
	h.tb.Helper()
	texts := make(map[string]string)
	for _, c := range must(h.dp.View().TableCounters(name))(h.tb) {
		text := ""
		for _, n := range []Counter{c.InBlocked, c.InPassed, c.OutBlocked, c.OutPassed} {
			text += fmt.Sprintf("%d/%d ", n.Packets, n.Bytes)
		}
		prefix := c.Prefix.String()
		if c.Not {
			prefix = "!" + prefix
		}
		texts[prefix] = text[:len(text)-1]
	}
	return texts
}

// Entries of tables with counters count the packets of states, and those that are blocked
// or have no state. The counts outlive the states, and loads of other rules.
func TestTableCounters(t *testing.T) {
	const tables = "table <c> persist counters { 192.168.1.0/24, !192.168.1.11, 198.51.100.7, 2001:db8:7::/48 }\n" +
		"table <plain> { 192.168.1.0/24 }\n"
	const rules = tables + "block\nmatch out on wan0 inet nat-to 203.0.113.2\n" +
		"pass in on lan0 proto udp from <c>\npass in on lan0 proto udp from <plain> to port 99\n" +
		"pass in on lan0 proto 47 from <c> no state\npass out on wan0 proto { udp, 47 } to <c>\n" +
		"pass out on wan0 inet proto udp to port { 53, 99 }\nblock in on lan0 proto udp from ! <c>\n"
	h := newHarness(t, rules, func(c *Config) { c.Frozen = false })
	setTimeouts(h.dp.tables.shared, &h.dp.config.Options)
	check(t, h.dp.startGC())
	pass := func(at, packet string, reason string) {
		t.Helper()
		h.dp.Heartbeat()
		if r := h.in(h.xdp, at, packet); r.reason != reason {
			t.Errorf("%s: %s %s, want %s", packet, r.verdict, r.reason, reason)
		}
	}
	pass("lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 72", "rule")    // in by /24
	pass("lan", "udp 192.168.1.10:1 > 198.51.100.9:53 len 72", "state")   // in by /24
	pass("lan", "udp 192.168.1.10:2 > 198.51.100.7:9 len 72", "rule")     // in by /24, out by .7
	pass("lan", "udp 192.168.1.11:1 > 198.51.100.9:53 len 72", "block")   // blocked in by !.11
	pass("lan", "udp 192.168.1.10:3 > 198.51.100.9:9 len 72", "block")    // no counts: the last rule names no table
	pass("lan", "47 192.168.1.10 > 198.51.100.7 len 80", "rule")          // in by /24, out by .7
	pass("lan", "udp 192.168.1.10:4 > 198.51.100.9:99 len 72", "rule")    // the table has no counters
	pass("lan", "udp [fd00:1::10]:1 > [2001:db8:7::7]:9 len 72", "block") // blocked in: no entry
	reply := h.dp.View()
	var port uint16
	for s := range reply.States() {
		if s.Tuple[0].SPort == 1 {
			port = s.Tuple[1].DPort
		}
	}
	pass("wan", fmt.Sprintf("udp 198.51.100.9:53 > 203.0.113.2:%d len 172", port), "state") // out by /24
	want := map[string]string{
		"192.168.1.0/24": "0/0 4/400 0/0 1/200", "!192.168.1.11/32": "1/100 0/0 0/0 0/0",
		"198.51.100.7/32": "0/0 0/0 0/0 2/200", "2001:db8:7::/48": "0/0 0/0 0/0 0/0",
	}
	if diff := cmp.Diff(want, h.tableTexts("c")); diff != "" {
		t.Errorf("with live states (-want +got):\n%s", diff)
	}
	if got := h.tableTexts("plain"); len(got) != 0 {
		t.Errorf("a table without counters has %v", got)
	}
	h.dp.View().KillStates(func(*state.State) bool { return true })
	h.waitEmpty()
	commit(t, h.dp, nil)
	if diff := cmp.Diff(want, h.tableTexts("c")); diff != "" {
		t.Errorf("when the states are released (-want +got):\n%s", diff)
	}
	must(h.dp.ChangeTable("c", entriesOf(netip.MustParseAddr("192.168.1.12")), []netip.Prefix{netip.MustParsePrefix("198.51.100.7/32")}))(t)
	delete(want, "198.51.100.7/32")
	want["192.168.1.12/32"] = "0/0 0/0 0/0 0/0"
	if diff := cmp.Diff(want, h.tableTexts("c")); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	must(h.dp.ReplaceTable("c", []resolve.TableEntry{
		{Prefix: netip.MustParsePrefix("192.168.1.0/24")}, {Prefix: netip.MustParsePrefix("192.168.1.11/32")},
	}))(t)
	want = map[string]string{"192.168.1.0/24": want["192.168.1.0/24"], "192.168.1.11/32": "0/0 0/0 0/0 0/0"}
	if diff := cmp.Diff(want, h.tableTexts("c")); diff != "" {
		t.Errorf("after a replacement (-want +got):\n%s", diff)
	}
	reload := func(rules string) {
		cfg := h.dp.config
		cfg.Program = must(ruleset.Compile(h.parse(rules), h.snapshot()))(t)
		check(t, cfg.Program.KeepTables(h.dp.config.Program.ChangedTables()))
		cfg.RuleBase = must(NextRuleBase(h.net.dir))(t)
		h.dp = build(t, cfg)
		commit(t, h.dp, nil)
	}
	reload(tables + "pass from <c>")
	if diff := cmp.Diff(want, h.tableTexts("c")); diff != "" {
		t.Errorf("after a load of other rules (-want +got):\n%s", diff)
	}
	if rules := must(h.dp.tables.tableRules())(t); len(rules) != 1 || h.dp.tables.shared.TableRules != 1 {
		t.Errorf("%d rules count (%d), want 1", len(rules), h.dp.tables.shared.TableRules)
	}
	reload("table <c> persist { 192.168.1.0/24 }\npass from <c>")
	if got := h.tableTexts("c"); len(got) != 0 || h.dp.tables.shared.TableRules != 0 {
		t.Errorf("without the option the table has %v, and %d rules count", got, h.dp.tables.shared.TableRules)
	}
}

// A packet of the box to itself makes no state, because its replies would look like it. It
// is dropped, and does not count as passed when its place is released.
func TestDroppedPacketsDoNotCountAsPassed(t *testing.T) {
	h := newHarness(t, "table <c> persist counters { 203.0.113.2 }\npass out on wan0 to <c>", func(c *Config) { c.Frozen = false })
	setTimeouts(h.dp.tables.shared, &h.dp.config.Options)
	check(t, h.dp.startGC())
	h.dp.Heartbeat()
	out := func(ifindex int, frame []byte) result { return h.tcOut(ifindex, frame, 0) }
	if r := h.in(out, "wan", "47 203.0.113.2 > 203.0.113.2 len 20"); r.reason != "tuple-taken" {
		t.Errorf("%s %s", r.verdict, r.reason)
	}
	h.waitEmpty()
	if diff := cmp.Diff(map[string]string{"203.0.113.2/32": "0/0 0/0 0/0 0/0"}, h.tableTexts("c")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Tables with counters that have more entries than there are counters are refused, and so
// are two whose numbers are the same.
func TestTableCountersRefused(t *testing.T) {
	entries := make([]resolve.TableEntry, 0, MaxTableCounters+1)
	for i := range MaxTableCounters + 1 {
		entries = append(entries, resolve.TableEntry{Prefix: netip.PrefixFrom(host4(i), 32)})
	}
	h := newHarness(t, "table <c> persist counters { 192.0.2.1 }\npass from <c>")
	if _, err := h.dp.ReplaceTable("c", entries); !errors.Is(err, ruleset.ErrTablesFull) {
		t.Errorf("too many entries: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"192.0.2.1/32": "0/0 0/0 0/0 0/0"}, h.tableTexts("c")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// tableCounters reads the counters of a twin's tables.
func (t *twin) tableCounters() map[model.TableEntry]model.TableCounter {
	t.tb.Helper()
	all := make(map[model.TableEntry]model.TableCounter)
	for _, table := range t.rules.Tables {
		if !table.Counters {
			continue
		}
		for _, c := range must(t.dp.View().TableCounters(table.Name))(t.tb) {
			n := model.TableCounter{model.Counter(c.InBlocked), model.Counter(c.InPassed), model.Counter(c.OutBlocked), model.Counter(c.OutPassed)}
			if n != (model.TableCounter{}) {
				all[model.TableEntry{Table: table.Name, Prefix: c.Prefix}] = n
			}
		}
	}
	return all
}

// differTables compares the counters of tables. released holds what the garbage collection
// would have added to them.
func (t *twin) differTables() string {
	t.tb.Helper()
	got := t.tableCounters()
	for e, n := range t.released {
		sum := got[e]
		for way := range sum {
			sum[way].Packets += n[way].Packets
			sum[way].Bytes += n[way].Bytes
		}
		got[e] = sum
	}
	if diff := cmp.Diff(t.model.Tables(), got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		return "counters of tables (-model +dataplane):\n" + diff
	}
	return ""
}

// release notes what counters of tables lose while states are released without the garbage
// collection.
func (t *twin) release(states func()) {
	t.tb.Helper()
	before := t.tableCounters()
	states()
	now := t.tableCounters()
	for e, n := range before {
		sum := t.released[e]
		for way := range sum {
			sum[way].Packets += n[way].Packets - now[e][way].Packets
			sum[way].Bytes += n[way].Bytes - now[e][way].Bytes
		}
		t.released[e] = sum
	}
}
