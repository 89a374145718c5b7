package test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/reason"
	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// tableEntry reads an entry in the user's notation.
func tableEntry(text string) control.TableEntry {
	prefix, not := strings.CutPrefix(text, "!")
	if !strings.Contains(prefix, "/") {
		a := netip.MustParseAddr(prefix)
		return control.TableEntry{Prefix: netip.PrefixFrom(a, a.BitLen()), Not: not}
	}
	return control.TableEntry{Prefix: netip.MustParsePrefix(prefix), Not: not}
}

// putInto adds entries to a table, or makes them all that it has.
func putInto(b *lib.Box, whole bool, table string, entries ...string) error {
	r := &control.TableChange{Table: table, Whole: whole}
	for _, e := range entries {
		r.Put = append(r.Put, tableEntry(e))
	}
	_, err := control.NewClient(rundir.Folder(b.RunFolder())).ChangeTable(b.Context(), r)
	return err
}

// mustPut is putInto without an error.
func mustPut(b *lib.Box, whole bool, table string, entries ...string) {
	b.Helper()
	if err := putInto(b, whole, table, entries...); err != nil {
		b.Fatalf("change the table %s: %v", table, err)
	}
}

// tableHolds checks a table's entries.
func tableHolds(b *lib.Box, when, table string, want ...string) {
	b.Helper()
	got := tableOf(b, table)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.Errorf("%s: the table %s holds %q, want %q", when, table, got, want)
	}
}

// tableOf returns a table's entries, sorted as texts.
func tableOf(b *lib.Box, table string) (entries []string) {
	b.Helper()
	held, err := control.NewClient(rundir.Folder(b.RunFolder())).ReadTable(b.Context(), &control.TableRead{Table: table})
	if err != nil {
		b.Fatalf("read the table %s: %v", table, err)
	}
	for _, e := range held.Entries {
		text := strings.TrimSuffix(strings.TrimSuffix(e.Prefix.String(), "/32"), "/128")
		if e.Not {
			text = "!" + text
		}
		entries = append(entries, text)
	}
	slices.Sort(entries)
	return entries
}

// tableRules block what <bad> holds. The other tables show what a load keeps.
const tableRules = `
set skip on lo
table <bad> persist
table <given> { 192.0.2.1 }
table <none> { }
table <fixed> const { 192.0.2.1 }
table <idle> persist
table <gone> { 192.0.2.1 }
block
pass proto { icmp, icmp6 }
block quick from { <bad>, <given>, <none>, <fixed>, <undefined> }
`

//	lan ─── fw ─── wan      fw: tables are changed; kill -9, start, takeover, loads
//
// What was changed in tables outlives daemons. A load replaces the contents of tables
// whose definition gives them, and keeps those of others, as in pf.
func TestTablesOutliveDaemons(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	rules := b.Rules(tableRules)
	pings := func() bool {
		_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost)
		return err == nil
	}
	expect := func(when string, passes bool, given ...string) {
		b.Helper()
		if pings() != passes {
			b.Errorf("%s: ping passes: %t, want %t", when, !passes, passes)
		}
		bad := []string{"198.51.100.0/24", "!198.51.100.9", "2001:db8:9::9"}
		if !passes {
			bad = append(bad, lanHost)
		}
		tableHolds(b, when, "bad", bad...)
		tableHolds(b, when, "given", given...)
		tableHolds(b, when, "none", given[min(1, len(given)):]...)
		tableHolds(b, when, "fixed", "192.0.2.1")
		tableHolds(b, when, "idle", "192.0.2.77")
		tableHolds(b, when, "undefined", "192.0.2.78")
	}
	a := b.WeirRun(rules)
	mustPut(b, false, "bad", "198.51.100.0/24", "!198.51.100.9", "2001:db8:9::9")
	mustPut(b, true, "given", "192.0.2.1", "192.0.2.5")
	mustPut(b, false, "none", "192.0.2.5")
	mustPut(b, false, "idle", "192.0.2.77")
	mustPut(b, false, "undefined", "192.0.2.78")
	expect("changed", true, "192.0.2.1", "192.0.2.5")
	mustPut(b, false, "bad", lanHost)
	expect("changed again", false, "192.0.2.1", "192.0.2.5")
	for table, why := range map[string]string{"fixed": "the table is const", "gone": "there is no such table"} {
		if err := putInto(b, false, table, "192.0.2.9"); err == nil || !strings.Contains(err.Error(), why) {
			b.Errorf("a change of %s: %v, want: %s", table, err, why)
		}
	}
	a.Kill()
	if pings() {
		b.Error("without a daemon the table is not as it was")
	}
	b.WeirRun(rules)
	expect("killed and started", false, "192.0.2.1", "192.0.2.5")
	c := b.WeirRun(rules)
	expect("taken over", false, "192.0.2.1", "192.0.2.5")
	generation := generationOf(b)
	b.Weir("load", rules)
	tableHolds(b, "loaded", "none")
	expect2 := func(when string) {
		b.Helper()
		tableHolds(b, when, "given", "192.0.2.1")
		tableHolds(b, when, "none")
		tableHolds(b, when, "undefined", "192.0.2.78")
		if pings() {
			b.Errorf("%s: the table <bad> has lost an entry", when)
		}
	}
	expect2("loaded")
	if now := generationOf(b); now != generation {
		b.Errorf("for a load that resets tables all programs were loaded: the generation is %d, and was %d", now, generation)
	}
	c.Kill()
	b.WeirRun(rules)
	expect2("killed after a load, and started")
	other := b.Rules(tableRules + "pass proto udp to port 7\n")
	mustPut(b, false, "given", "192.0.2.5")
	b.WeirRun(other)
	expect2("started with another text")
	b.Weir("load", b.Rules("set skip on lo\nblock\npass proto { icmp, icmp6 }\n"))
	b.Weir("load", rules)
	tableHolds(b, "after a file without it", "bad")
	if !pings() {
		b.Error("a table that a load forgot still blocks")
	}
	if kept, err := filepath.Glob(filepath.Join(b.RunFolder(), "tables", "*", "*")); err != nil || len(kept) > 0 {
		b.Errorf("records of tables that are as defined: %q (%v)", kept, err)
	}
}

//	fw: weir A ─▶ weir B takes over, while a table is changed all the time
//
// No change that was confirmed is lost: B reads the table when it begins, and again when A
// has ended.
func TestTakeoverLosesNoChangeOfATable(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	rules := b.Rules("set skip on lo\ntable <bad> persist\nblock\nblock from <bad>\n")
	b.WeirRun(rules)
	second := b.WeirStart(rules)
	var confirmed []string
	for n := 0; !strings.Contains(second.Said(), "weir: ready"); n++ {
		if !second.Running() {
			b.Fatalf("weir run ended:\n%s", second.Said())
		}
		entry := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}).String()
		if putInto(b, false, "bad", entry) == nil {
			confirmed = append(confirmed, entry)
		}
	}
	held := tableOf(b, "bad")
	for _, entry := range confirmed {
		if !slices.Contains(held, entry) {
			b.Errorf("%s was confirmed, and is lost", entry)
		}
	}
	b.Logf("%d changes were confirmed", len(confirmed))
	if len(confirmed) < 10 {
		b.Errorf("only %d changes were made", len(confirmed))
	}
}

//	lan ─── ping ───▶ fw ─▶ wan      fw: load, kill -9, start
//
// Entries of a table with counters count what rules with the table pass and block. Loads
// and daemons come and go; the counters stay.
func TestTableEntriesCount(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	const rules = "set skip on lo\ntable <lan> persist counters { 192.168.1.0/24 }\ntable <plain> { 192.168.1.0/24 }\n" +
		"block\npass in on lan0 inet proto icmp from <lan>\nblock in on lan0 proto udp from <lan>\npass out on wan0 from <plain>\n"
	file := b.Rules(rules)
	a := b.WeirRun(file)
	b.Ping(lab.LAN, wanHost, 3)
	b.Run(lab.LAN, "sh", "-c", "echo x | socat -u - UDP4-SENDTO:"+wanHost+":9")
	expect := func(when string, pings uint64) {
		b.Helper()
		var entries, none []view.TableEntry
		views.RLock()
		defer views.RUnlock()
		err := b.Do(lab.FW, func() error {
			v, err := view.Open(rundir.Folder(b.RunFolder()))
			if err != nil {
				return err
			}
			defer v.Close()
			if none, err = v.Table("plain"); err != nil {
				return err
			}
			entries, err = v.Table("lan")
			return err
		})
		if err != nil || len(none) != 0 || len(entries) != 1 {
			b.Fatalf("%s: %+v, %+v, %v", when, entries, none, err)
		}
		e := entries[0]
		if e.In.Passed.Packets != pings || e.Out.Passed.Packets != pings || e.In.Passed.Bytes != 84*pings || e.In.Blocked.Packets != 1 || e.Out.Blocked.Packets != 0 {
			b.Errorf("%s: %+v, want %d packets each way, and one that is blocked", when, e, pings)
		}
	}
	expect("at first", 3)
	b.Weir("load", b.Rules(rules+"pass in on wan0 proto udp to port 7\n"))
	expect("loaded", 3)
	a.Kill()
	b.Ping(lab.LAN, wanHost, 2)
	expect("without a daemon", 5)
	b.WeirRun(file)
	expect("started", 5)
}

// tablesEndure are operations that change tables, or start and load with changed ones.
// After each kill and start a table has all that was reported as done, and nothing that
// was never asked for.
func tablesEndure(rules, other, anchor string) []operation {
	var daemon *lib.Process
	const changes = 10
	done := 0 // changes that the daemon has confirmed
	again := func(o *ordeal) {
		if daemon != nil && daemon.Running() {
			daemon.Kill()
		}
		daemon = o.WeirRun(rules)
	}
	whole := func(n int) []string { // what the table holds after n changes
		if n == 0 {
			return nil
		}
		return []string{"192.0.2." + strconv.Itoa(100+(n-1)/2*2+1), "192.0.2.200"}
	}
	repair := func(o *ordeal) {
		again(o)
		held := tableOf(o.Box, "bad")
		for _, n := range []int{done, done + 1} {
			want := whole(n)
			if n%2 == 0 && n > 0 {
				want = append(want, "192.0.2.201")
			}
			slices.Sort(want)
			if slices.Equal(held, want) {
				return
			}
		}
		o.Errorf("%d changes were confirmed, and after a kill and a start the table holds %v", done, held)
	}
	change := func(o *ordeal, n int) error { // the n-th change, from 1: odd ones replace, even ones add
		if n%2 == 1 {
			return putInto(o.Box, true, "bad", whole(n)...)
		}
		return putInto(o.Box, false, "bad", "192.0.2.201")
	}
	changed := func(o *ordeal) {
		daemon, done = counted(o, daemon, rules), 0
		for n := 1; n <= 2; n++ {
			if err := change(o, n); err != nil {
				o.Fatal(err)
			}
			done = n
		}
	}
	return []operation{
		{
			name: "changes of a table",
			prepare: func(o *ordeal) {
				daemon, done = counted(o, daemon, rules), 0
				mustPut(o.Box, true, "bad") // no change, or the end of an earlier round
			},
			run: func(o *ordeal) func() bool {
				for n := 1; n <= changes && change(o, n) == nil; n++ {
					done = n
				}
				return ended(o, daemon, func() bool { return done == changes })
			},
			judged: true, repair: repair,
		},
		{
			name:    "load with a changed table",
			prepare: changed,
			run: func(o *ordeal) func() bool {
				load := o.WeirCommand("load", other)
				return ended(o, daemon, func() bool { return !load.Running() })
			},
			judged: true, repair: repair,
		},
		{
			name:    "load in place with a changed table",
			prepare: changed,
			run: func(o *ordeal) func() bool {
				load := o.WeirCommand("load", anchor)
				return ended(o, daemon, func() bool { return !load.Running() })
			},
			judged: true, repair: repair,
		},
		{
			name:    "takeover with a changed table",
			prepare: changed,
			run: func(o *ordeal) func() bool {
				p := o.WeirUnder(o.under(), "run", "--hook", o.Hook, "-f", other)
				return ended(o, p, ready(p))
			},
			judged: true, repair: repair,
		},
	}
}

//	lan ─── fw ─── wan      fw: kill -9 while tables are changed, kept and read again
//
// Wherever weir is killed, a start finds every change that was confirmed.
func TestKilledWithChangedTables(t *testing.T) {
	t.Parallel()
	file := func(rules, port string) string {
		return "table <bad> persist\n" + rules + "block quick from <bad>\nanchor part {\n pass in proto udp to port " + port + "\n}\n"
	}
	for i, name := range []string{"change", "load", "in place", "takeover"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := weir.Box(t, "tcx")
			b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
			b.Run(lab.WAN, "ip", "route", "add", "fd00:1::/64", "via", fwWAN6)
			o := &ordeal{Box: b, list: filepath.Join(t.TempDir(), "steps")}
			o.found = b.Machine(lab.FW)
			op := tablesEndure(b.Rules(file(onlyPing, "9")), b.Rules(file(onlyPing2, "9")), b.Rules(file(onlyPing, "10")))[i]
			op.endure(o)
			if _, err := os.Stat(b.RunFolder()); err == nil {
				b.Weir("stop")
			}
		})
	}
}

//	lan ═══ pings, connections ═══▶ wan      fw: 11 loads of other rules in an anchor, one of others
//
// If only rules differ, a load replaces them in place: the generation stays the
// same, and no packet is lost. Established connections go on, and each new one meets
// either the old rules or the new ones. Other options load the programs again.
func TestLoadsReplaceRulesInPlace(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		file := func(main, inside string) string {
			return b.Rules("set skip on lo\nblock\n" + main + "anchor \"part\" {\n" + inside + "}\npass out\n")
		}
		const before = "pass in on lan0 inet proto icmp\npass in on lan0 inet proto tcp to port 2201\n"
		const after = "pass in log on lan0 inet proto icmp to " + wanHost + " label \"after\"\npass in on lan0 inet proto tcp to port 2202\n"
		first, second := file("", before), file("", after)
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		a := b.WeirRun(first)
		b.Listen(lab.WAN, 2202, "socat", "-t", "30", "TCP4-LISTEN:2202,fork,reuseaddr", "EXEC:cat")
		talk := startTalk(b, "established", lab.WAN, "TCP4-LISTEN:2201", lab.LAN, "TCP4:"+wanHost+":2201", 2201)
		talk.say(0, "before")
		generation, logs := generationOf(b), readLog(b, "--json")
		flood := b.FloodEvery(lab.LAN, wanHost, time.Millisecond)
		made := b.Info().States.Inserts
		fresh := b.Start(lab.LAN, "sh", "-c", "while :; do ping -n -c 1 -W 3 "+wanHost+" >/dev/null; done")
		for range 5 {
			b.Weir("load", second)
			b.Weir("load", first)
		}
		b.Weir("load", second)
		fresh.Kill()
		if n, blocked := b.Info().States.Inserts-made, b.Packets("lan0", reason.Block); n < 5 || blocked > 0 {
			b.Errorf("of %d new connections %d met no rule that passes them", n, blocked)
		}
		b.Ping(lab.LAN, wanHost, 2)
		flood.AllAnswered(400)
		talk.say(0, "after")
		talk.say(1, "and back")
		if now := generationOf(b); now != generation {
			b.Errorf("the generation is %d, and was %d", now, generation)
		}
		if n := strings.Count(a.Said(), "replaced in place"); n != 11 {
			b.Errorf("%d of 11 loads were made in place:\n%s", n, a.Said())
		}
		for i, r := range records(b, logs) {
			if r.Rule == nil || !strings.Contains(r.Rule.Text, "pass in log") || r.Rule.Line != 4 {
				b.Errorf("record %d names the rule %+v", i, r.Rule)
			}
		}
		if len(records(b, logs)) == 0 {
			b.Error("the new rule has logged nothing")
		}
		b.Run(lab.LAN, "sh", "-c", "echo new | socat - TCP4:"+wanHost+":2202,connect-timeout=3")
		if r := b.Rule(`label "after"`); r.Packets == 0 || r.Nr != 2 {
			b.Errorf("the new rule is %+v", r)
		}
		b.Run(lab.FW, "ip", "address", "add", "10.99.0.1/24", "dev", "lan0")
		b.Until(10*time.Second, "the new address is known", func() bool { return strings.Contains(b.Weir("interfaces", "--json"), "10.99.0.1") })
		if now := generationOf(b); now != generation {
			b.Errorf("with another address the generation is %d, and was %d:\n%s", now, generation, a.Said())
		}
		if all := b.States("port", "2201"); len(all) != 1 || all[0].RuleIn == nil || !all[0].RuleIn.Old {
			b.Errorf("the established connection is %+v, want that its rule is gone", all)
		}
		counted := b.Rule(`label "after"`).Packets
		b.Weir("load", file("pass in on wan0 proto udp to port 7\n", after))
		if now := generationOf(b); now != generation {
			b.Errorf("after another main rule the generation is %d, and was %d:\n%s", now, generation, a.Said())
		}
		if r := b.Rule(`label "after"`); r.Packets < counted || r.Nr != 3 {
			b.Errorf("a rule that stays is %+v, and had counted %d packets", r, counted)
		}
		b.Weir("load", file("set timeout udp.first 70\npass in on wan0 proto udp to port 7\n", after))
		if now := generationOf(b); now != generation {
			b.Errorf("after another timeout the generation is %d, and was %d:\n%s", now, generation, a.Said())
		}
		changeInPlace(b, generation, func(main string) string { return file(main, after) })
		b.Weir("load", file("set timeout udp.first 70\nset mark-mask 0x07000000\npass in on wan0 proto udp to port 7\n", after))
		if now := generationOf(b); now != generation+1 || !strings.Contains(a.Said(), "options have changed") {
			b.Errorf("after another option the generation is %d, and was %d:\n%s", now, generation, a.Said())
		}
		talk.say(0, "at last")
	})
}

// changeInPlace loads other limits, other interfaces of set skip and other definitions of tables.
// None of these needs other programs.
func changeInPlace(b *lib.Box, generation uint32, file func(main string) string) {
	b.Helper()
	load := func(main string, answers bool) {
		b.Helper()
		b.Weir("load", file("set timeout udp.first 70\n"+main))
		if now := generationOf(b); now != generation {
			b.Errorf("the generation is %d, and was %d, after\n%s", now, generation, main)
		}
		if _, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost); (err == nil) != answers {
			b.Errorf("ping: %v, after\n%s", err, main)
		}
	}
	const bad = "block in quick on lan0 inet proto icmp to <bad>\n"
	load("set limit states 40000\ntable <bad> { 198.51.100.1 }\n"+bad, true)
	if n := b.Info().States.Limit; n != 40000 {
		b.Errorf("the limit is %d states", n)
	}
	load("set limit table-entries 1000\ntable <bad> counters { "+wanHost+" }\ntable <more> { 10.0.0.0/8 }\n"+bad, false)
	if said := b.Weir("table", "show", "-t", "bad", "-v"); !strings.Contains(said, wanHost) || !strings.Contains(said, "In/Block:    [ Packets: 1 ") {
		b.Errorf("table show prints\n%s", said)
	}
	load("set skip on { lo, lan0 }\ntable <bad> { "+wanHost+" }\n"+bad, true) // lan0's rules do not count
	tunnelInPlace(b, load)
	load("", true)
	b.Weir("table", "add", "-t", "bad", wanHost)
	load("table <bad> persist\n"+bad, false) // what a command has put in stays
}

// tunnelInPlace loads a tunnel. What is meant for it has no other way from then on.
func tunnelInPlace(b *lib.Box, load func(main string, answers bool)) {
	b.Helper()
	secret := filepath.Join(b.TempDir(), "wg7.key")
	public := strings.TrimSpace(b.Weir("vpn", "genkey", secret))
	for _, network := range []string{"10.78.0.0/16", "10.79.0.0/16"} {
		load(fmt.Sprintf("wireguard wg7 key file %q address 10.77.0.1/24\npeer far on wg7 key %q allowed %s\n", secret, public, network), true)
		if holes := b.Run(lab.FW, "ip", "route", "show", "type", "blackhole"); strings.Count(holes, "10.78")+strings.Count(holes, "10.79") != 1 || !strings.Contains(holes, network) {
			b.Errorf("a peer with %s has the blackholes\n%s", network, holes)
		}
	}
	load("", true)
	if holes := b.Run(lab.FW, "ip", "route", "show", "type", "blackhole"); holes != "" {
		b.Errorf("without the tunnel there are the blackholes\n%s", holes)
	}
}

// generationOf returns the number of the generation in force.
func generationOf(b *lib.Box) uint32 {
	b.Helper()
	generation, err := dataplane.LiveGeneration(filepath.Join(dataplane.Base, filepath.Base(b.RunFolder())))
	if err != nil {
		b.Fatal(err)
	}
	return generation
}
