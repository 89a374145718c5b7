package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// tableCommandRules block what <bad> holds, and count what <lan> holds.
const tableCommandRules = `
set skip on lo
table <bad> persist
table <fixed> const { 192.0.2.1 }
table <lan> persist counters { 192.168.1.0/24 }
block return
pass in on lan0 inet proto icmp from <lan>
pass in on lan0 inet proto tcp from <lan> to port 8000
pass out on wan0
block quick from <bad>
block quick from <fixed>
`

// tableSays runs weir table and checks its exit status and what it prints.
func tableSays(b *lib.Box, status int, want string, args ...string) {
	b.Helper()
	got, exit := b.WeirStatus(append([]string{"table"}, args...)...)
	if exit != status || got != want {
		b.Errorf("weir table %s: exit status %d, want %d:\n%swant:\n%s", strings.Join(args, " "), exit, status, got, want)
	}
}

//	lan ─── ping, curl ───▶ fw ─── wan      fw: weir table
//
// A change of a table holds for the next new connection. The words, letters and exit
// statuses are those of pfctl -T.
func TestTableCommand(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	b.ServeHello(lab.WAN, 8000)
	rules := b.Rules(tableCommandRules)
	a := b.WeirRun(rules)
	fetches := func() bool {
		out, err := b.Try(lab.LAN, "curl", "-sS", "-m", "3", "http://"+wanHost+":8000/")
		return err == nil && out == "hello\n"
	}
	if !fetches() {
		b.Fatal("nothing is in <bad>, and curl gets no answer")
	}
	tableSays(b, 0, "3/3 addresses added.\n", "-t", "bad", "add", lanHost, "!192.0.2.7", "192.0.2.0/24")
	if fetches() {
		b.Error("the address was added, and a new connection passes")
	}
	tableSays(b, 0, "   192.0.2.0/24\n  !192.0.2.7\n   "+lanHost+"\n", "-t", "bad", "show")
	tableSays(b, 0, "1/1 addresses match.\nM  192.0.2.9\n", "-t", "bad", "-v", "test", "192.0.2.9")
	tableSays(b, 2, "1/2 addresses match.\n", "-t", "bad", "test", "192.0.2.9", "192.0.2.7")
	tableSays(b, 0, "", "-t", "bad", "-q", "delete", lanHost)
	if !fetches() {
		b.Error("the address was deleted, and a new connection does not pass")
	}
	tableSays(b, 0, "0/1 addresses added (dummy).\n", "-t", "bad", "-n", "add", "192.0.2.0/24")
	tableSays(b, 0, "no changes.\n", "-t", "bad", "replace", "192.0.2.0/24", "!192.0.2.7")
	tableSays(b, 1, "weir: fixed: the table is const\n", "-t", "fixed", "add", "192.0.2.2")
	tableSays(b, 1, "weir: none: there is no such table\n", "-t", "none", "delete", "192.0.2.2")
	tableSays(b, 0, "1 table created.\n1/1 addresses added.\n", "-t", "made", "add", "192.0.2.2")
	b.Weir("load", rules)
	tableSays(b, 0, "   192.0.2.2\n", "-t", "made", "show")
	a.Kill()
	b.WeirRun(rules)
	tableSays(b, 0, "   192.0.2.2\n", "-t", "made", "show")
	b.Weir("load", b.Rules(tableCommandRules+"block quick from <made>\n"))
	tableSays(b, 0, "   192.0.2.2\n", "-t", "made", "show")
	tableSays(b, 1, "weir: made: a rule names it: weir table flush empties it\n", "-t", "made", "kill")
	b.Weir("load", rules)
	tableSays(b, 0, "1 table deleted.\n", "-t", "made", "kill")
	tableSays(b, 1, "weir: made: there is no such table\n", "-t", "made", "show")
	b.Weir("load", b.Rules("set limit { tables 4, table-entries 6 }\n"+tableCommandRules))
	tableSays(b, 1, "weir: 7 entries of tables are more than set limit table-entries allows: 6\n", "-t", "bad", "add", "192.0.2.1", "192.0.2.2", "192.0.2.3")
	tableSays(b, 0, "1 table created.\n1/1 addresses added.\n", "-t", "made", "add", "192.0.2.2")
	tableSays(b, 1, "weir: there are as many tables as set limit tables allows: 4\n", "-t", "more", "add", "192.0.2.2")
	b.Weir("load", rules)
	file := filepath.Join(b.TempDir(), "addresses")
	if err := os.WriteFile(file, []byte("# first\n192.0.2.10 192.0.2.11 ; more\n\n2001:db8::/32\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	tableSays(b, 0, "3 addresses added.\n2 addresses deleted.\n", "-t", "bad", "replace", "-f", file)
	tableSays(b, 0, "3/3 addresses expired.\n", "-t", "bad", "expire", "0")
	tableHolds(b, "all expired", "bad")
}

//	lan ─── ping ───▶ fw ─▶ wan      fw: weir table zero, expire
//
// The counters of entries begin anew with zero, and go on for connections that live then.
// Only entries that are old enough expire, also after the daemon has died.
func TestTableZeroAndExpire(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	rules := b.Rules(tableCommandRules)
	a := b.WeirRun(rules)
	type way struct{ Passed struct{ Packets uint64 } }
	counted := func() (in, out uint64) {
		b.Helper()
		all := lib.WeirJSON[[]struct{ In, Out way }](b, "table", "-t", "lan", "-v", "show")
		if len(all) != 1 {
			b.Fatalf("%d entries", len(all))
		}
		return all[0].In.Passed.Packets, all[0].Out.Passed.Packets
	}
	b.Ping(lab.LAN, wanHost, 3)
	if in, out := counted(); in != 3 || out != 3 {
		b.Errorf("after 3 pings %d packets came in, and %d left", in, out)
	}
	tableSays(b, 0, "1 table/stats cleared.\n", "-t", "lan", "zero")
	if in, out := counted(); in != 0 || out != 0 {
		b.Errorf("after zero %d packets came in, and %d left", in, out)
	}
	b.Ping(lab.LAN, wanHost, 2)
	if in, out := counted(); in != 2 || out != 2 {
		b.Errorf("2 pings after zero, %d packets came in, and %d left", in, out)
	}
	b.Weir("kill", "host", lanHost) // released states count in the entry itself
	time.Sleep(4 * time.Second)
	if in, out := counted(); in != 2 || out != 2 {
		b.Errorf("after the states were released %d packets came in, and %d left, want 2 and 2", in, out)
	}
	if shown := b.Weir("table", "-t", "lan", "-v", "show"); !strings.Contains(shown, "\tIn/Pass:     [ Packets: 2                  Bytes: 168                ]\n") {
		b.Errorf("show -v prints:\n%s", shown)
	}
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "bad", "add", "192.0.2.1")
	time.Sleep(5 * time.Second)
	added := time.Now()
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "bad", "add", "192.0.2.2")
	a.Kill()
	b.WeirRun(rules)
	tableSays(b, 0, "1/1 addresses expired.\nD  192.0.2.1\n", "-t", "bad", "-v", "expire", strconv.Itoa(int(time.Since(added).Seconds())+3))
	tableHolds(b, "expired", "bad", "192.0.2.2")
}

//	fw: four writers at once; a takeover and loads meanwhile
//
// Of writers to one table none loses what it did.
func TestTableWritersAtOnce(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	rules := b.Rules(tableCommandRules)
	b.WeirRun(rules)
	const writers, each = 4, 25
	var all []*lib.Process
	for w := range writers {
		script := fmt.Sprintf("for n in $(seq %d); do until %s --netns %s table -q -t bad add 10.%d.0.$n; do sleep 0.05; done; done", each, string(weir), b.Namespace(lab.FW), w)
		all = append(all, b.Start(lab.FW, "sh", "-c", script))
	}
	for range 2 {
		b.Weir("load", rules)
	}
	b.WeirRun(rules)
	for _, p := range all {
		p.Wait(lib.Scaled(time.Minute), 0)
	}
	held := tableOf(b, "bad")
	for w := range writers {
		for n := 1; n <= each; n++ {
			if entry := fmt.Sprintf("10.%d.0.%d", w, n); !slices.Contains(held, entry) {
				b.Errorf("%s was added, and is lost", entry)
			}
		}
	}
}

//	lan ═══ pings ═══▶ wan      fw: a million addresses are put into a table, and taken out
//
// No packet is lost meanwhile, and each change is in force when the command ends.
func TestTableMillion(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		b.WeirRun(b.Rules(tableCommandRules))
		const many = 1_000_000
		file := filepath.Join(b.TempDir(), "million")
		text := make([]byte, 0, 16*many)
		for n := range many {
			n = n * 7919 % many // in no order
			text = fmt.Appendf(text, "10.%d.%d.%d\n", n>>16, n>>8&255, n&255)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			b.Fatal(err)
		}
		flood := b.FloodEvery(lab.LAN, wanHost, time.Millisecond)
		began := time.Now()
		tableSays(b, 0, "1000000/1000000 addresses added.\n", "-t", "bad", "add", "-f", file)
		added := time.Since(began)
		tableSays(b, 0, "1/1 addresses match.\n", "-t", "bad", "test", "10.7.7.7")
		began = time.Now()
		tableSays(b, 0, "1000000/1000000 addresses deleted.\n", "-t", "bad", "delete", "-f", file)
		b.Logf("a million entries were added in %v, and deleted in %v", added, time.Since(began))
		flood.AllAnswered(100)
	})
}

//	lan ─── ping ───▶ fw ─▶ wan      fw: weir stop, start: as after a boot
//
// With set table-store, persistent tables that no definition fills hold the same after a
// boot. After weir stop nothing is left in memory, as after a boot.
func TestTableStore(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	store := filepath.Join(b.TempDir(), "store")
	text := fmt.Sprintf("set table-store %q\n", store) + tableCommandRules
	rules := b.Rules(text)
	b.WeirRun(rules)
	tableSays(b, 0, "2/2 addresses added.\n", "-t", "bad", "add", wanHost, "!192.0.2.7")
	tableSays(b, 0, "1 addresses added.\n", "-t", "lan", "replace", "192.168.1.0/24", "192.168.2.0/24")
	tableSays(b, 0, "1 table created.\n1/1 addresses added.\n", "-t", "made", "add", "192.0.2.2")
	time.Sleep(5 * time.Second)
	added := time.Now()
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "bad", "add", lanHost)
	tableSays(b, 0, "1/1 addresses deleted.\n", "-t", "bad", "delete", wanHost)
	b.Weir("stop")
	b.WeirRun(rules)
	tableHolds(b, "after a boot", "bad", lanHost, "!192.0.2.7")
	tableHolds(b, "after a boot", "made", "192.0.2.2")
	tableHolds(b, "after a boot", "lan", "192.168.1.0/24") // as its definition says
	if _, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost); err == nil {
		b.Error("after a boot an address that was blocked passes")
	}
	tableSays(b, 0, "1/1 addresses expired.\nD !192.0.2.7\n", "-t", "bad", "-v", "expire", strconv.Itoa(int(time.Since(added).Seconds())+3))
	tableSays(b, 0, "1 table deleted.\n", "-t", "made", "kill")
	b.Weir("stop")
	b.WeirRun(rules)
	tableHolds(b, "after another boot", "bad", lanHost)
	tableSays(b, 1, "weir: made: there is no such table\n", "-t", "made", "show")
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "bad", "add", "192.0.2.66")
	generation, second := generationOf(b), filepath.Join(b.TempDir(), "second")
	b.Weir("load", b.Rules(fmt.Sprintf("set table-store %q\n", second)+tableCommandRules)) // another folder
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "bad", "add", "192.0.2.67")
	b.Weir("load", rules) // what the first folder has stands behind what is in force
	tableHolds(b, "back in the first folder", "bad", lanHost, "192.0.2.66", "192.0.2.67")
	if now := generationOf(b); now != generation {
		b.Errorf("for another folder all programs were loaded: the generation is %d, and was %d", now, generation)
	}
	tableSays(b, 0, "2/2 addresses deleted.\n", "-t", "bad", "delete", "192.0.2.66", "192.0.2.67")
	b.Weir("stop")
	b.WeirRun(rules)
	tableHolds(b, "after a boot with the first folder", "bad", lanHost)
	b.Weir("load", b.Rules(tableCommandRules)) // without the option
	tableSays(b, 0, "1 addresses deleted.\n", "-t", "bad", "flush")
	b.Weir("stop")
	b.WeirRun(b.Rules(tableCommandRules))
	tableHolds(b, "without the option", "bad")
}

//	lan ─── ping ───▶ fw ─▶ wan      fw: a table in an anchor, and one that a new rule there names
//
// -a names the table of an anchor. A table that a command has made is found by rules that
// are loaded later, also in place, with what it holds.
func TestTableOfAnchor(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
	file := func(inside string) string {
		return b.Rules("set skip on lo\nblock\npass out on wan0\nanchor \"part\" {\n table <inner> persist\n pass in on lan0 inet proto icmp\n block in quick from <inner>\n" + inside + "}\n")
	}
	a := b.WeirRun(file(""))
	pings := func() bool {
		_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost)
		return err == nil
	}
	expect := func(when string, passes bool) {
		b.Helper()
		if pings() != passes {
			b.Errorf("%s: ping passes: %t, want %t", when, !passes, passes)
		}
	}
	expect("at first", true)
	tableSays(b, 0, "1/1 addresses added.\n", "-a", "part", "-t", "inner", "add", lanHost)
	expect("in the anchor's table", false)
	tableSays(b, 0, "   "+lanHost+"\n", "-a", "/part", "-t", "inner", "show")
	tableSays(b, 0, "-pa-r--\tinner@part\n", "-a", "part", "-v", "list")
	tableSays(b, 0, "1 addresses deleted.\n", "-a", "part", "-t", "inner", "flush")
	expect("flushed", true)
	said, status := b.WeirStatus("table", "-a", "part", "-t", "other", "add", lanHost)
	if status != 1 || !strings.Contains(said, "write table <other> persist there") {
		b.Errorf("a table that the anchor does not define: status %d, %s", status, said)
	}
	tableSays(b, 0, "1 table created.\n1/1 addresses added.\n", "-t", "made", "add", lanHost)
	expect("in a table that no rule names", true)
	b.Weir("load", file(" block in quick from <made>\n"))
	if !strings.Contains(a.Said(), "replaced in place") {
		b.Errorf("the rules were not replaced in place:\n%s", a.Said())
	}
	expect("a rule names it", false)
	tableSays(b, 0, "1/1 addresses deleted.\n", "-t", "made", "delete", lanHost)
	expect("deleted from it", true)
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "made", "add", "192.0.2.1")
	b.Weir("load", file(""))
	tableSays(b, 0, "   192.0.2.1\n", "-t", "made", "show")
}

//	fw: weir table add, with set limit table-entries 4
//
// A table is not made for entries that are refused. An address that is named twice is one
// entry.
func TestTableLimit(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.WeirRun("set limit table-entries 4\n" + tableCommandRules) // two are in the file
	for _, command := range []string{"add", "replace"} {
		tableSays(b, 1, "weir: 5 entries of tables are more than set limit table-entries allows: 4\n", "-t", "made", command, "192.0.2.1", "192.0.2.2", "192.0.2.3")
		tableSays(b, 1, "weir: made: there is no such table\n", "-t", "made", "show")
	}
	tableSays(b, 0, "1 table created.\n2/3 addresses added.\n", "-t", "made", "add", "192.0.2.1", "192.0.2.2", "192.0.2.1")
	tableHolds(b, "after add", "made", "192.0.2.1", "192.0.2.2")
}

//	fw: weir load --confirm with a file that drops or resets tables; a rollback in time, and by a new daemon
//
// A rollback brings back what the tables held, and until then nothing is lost of what a boot
// would need.
func TestTablesRollBack(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	store := filepath.Join(b.TempDir(), "store")
	option := fmt.Sprintf("set table-store %q\n", store)
	rules := b.Rules(option + tableCommandRules)
	daemon := b.WeirRun(rules)
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "bad", "add", wanHost)
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "lan", "add", "192.168.7.0/24")
	tableSays(b, 0, "1 table created.\n1/1 addresses added.\n", "-t", "made", "add", "192.0.2.2")
	other := b.Rules(option + "set skip on lo\ntable <lan> { 192.168.9.0/24 }\nblock\npass from <lan>\n")
	stored := func(when string, want ...string) {
		b.Helper()
		files, err := filepath.Glob(store + "/*.table")
		if err != nil {
			b.Fatal(err)
		}
		for i, file := range files {
			files[i] = filepath.Base(file)
		}
		if !slices.Equal(files, want) {
			b.Errorf("%s: the store has %q, want %q", when, files, want)
		}
	}
	back := func(when string) {
		b.Helper()
		tableHolds(b, when, "bad", wanHost)
		tableHolds(b, when, "lan", "192.168.1.0/24", "192.168.7.0/24")
		tableHolds(b, when, "made", "192.0.2.2")
		stored(when, "bad.table", "made.table")
	}

	b.Weir("load", "--confirm", "20s", other)
	tableHolds(b, "while the load waits", "lan", "192.168.9.0/24")
	stored("while the load waits", "bad.table", "made.table")
	b.Until(lib.StartPatience, "the rules before are back", func() bool { return inForce(b) == rules })
	back("after a rollback")
	b.Weir("load", rules)
	tableHolds(b, "a load resets it again", "lan", "192.168.1.0/24")
	tableSays(b, 0, "1/1 addresses added.\n", "-t", "lan", "add", "192.168.7.0/24")

	same := b.Rules(option + tableCommandRules + "pass in proto udp to port 9\n")
	b.Weir("load", "--confirm", "20s", same)
	tableHolds(b, "while a load with the same tables waits", "lan", "192.168.1.0/24")
	b.Until(lib.StartPatience, "the rules before are back", func() bool { return inForce(b) == rules })
	back("after a rollback of a load with the same tables")

	b.Weir("load", "--confirm", "1h", other)
	daemon.Kill()
	b.WeirRun(other)
	if now := inForce(b); now != rules {
		b.Fatalf("a start after a load that was not confirmed: %s is in force", now)
	}
	back("after a rollback by a new daemon")

	b.Weir("load", "--confirm", "1h", other)
	b.Weir("confirm")
	stored("after weir confirm", "made.table")
}

//	fw: weir table load with tables that are const, and with one that does not fit
//
// A rule file may say what a const table holds. Of several tables all are filled, or none.
func TestTableLoad(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.WeirRun("set limit table-entries 6\n" + tableCommandRules)
	tableSays(b, 1, "weir: fixed: the table is const\n", "-t", "fixed", "add", "192.0.2.9")
	file := func(fixed, bad string) string {
		return b.Rules(fmt.Sprintf("table <fixed> const { %s }\ntable <bad> { %s }\n", fixed, bad))
	}
	tableSays(b, 0, "1 addresses added.\n1 addresses deleted.\n2 addresses added.\n", "load", file("192.0.2.2", "192.0.2.3 192.0.2.4"))
	tableHolds(b, "filled", "fixed", "192.0.2.2")
	tableHolds(b, "filled", "bad", "192.0.2.3", "192.0.2.4")
	if said, status := b.WeirStatus("table", "load", file("192.0.2.5", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5")); status != 1 {
		b.Errorf("more addresses than the limit: status %d\n%s", status, said)
	}
	tableHolds(b, "after a refused load", "fixed", "192.0.2.2")
}
