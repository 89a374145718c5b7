package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/test/lib"
)

//	fw: weir table add, weir load, kill -9 while the load replaces the records of tables
//
// A load gives a table what its definition says. If the daemon is killed while it replaces the rules in
// place, a start with that file does not bring back what a command had put into the table before.
func TestKilledBetweenTables(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		o := &ordeal{Box: b, list: filepath.Join(t.TempDir(), "steps")}
		rules, other := b.Rules(onlyPing+"table <bad> persist { 192.0.2.1 }\nblock from <bad>\n"), b.Rules(onlyPing2+"table <bad> persist { 192.0.2.2 }\nblock quick from <bad>\n")
		var daemon *lib.Process
		prepare := func() {
			if daemon = counted(o, daemon, rules); !strings.Contains(b.Weir("table", "show", "-t", "bad"), "192.0.2.1\n") {
				b.Fatal("the table lacks what its definition says")
			}
			b.Weir("table", "add", "-t", "bad", "192.0.2.9")
		}
		prepare()
		o.killAt(0)
		b.Weir("load", other)
		all := o.taken()
		record := func(step string) bool { return strings.Contains(step, "/sources/") }
		from := slices.IndexFunc(all, record)
		to := slices.IndexFunc(all, func(step string) bool { return strings.Contains(step, "/tables/") })
		if from < 0 || to < from {
			b.Fatalf("the load does not record the source before the tables: %q", all)
		}
		for at := from; at <= to+3; at++ {
			o.forget()
			prepare()
			o.killAt(at + 1)
			b.WeirStatus("load", other)
			b.Until(lib.StartPatience, "the daemon is killed", func() bool { return !daemon.Running() })
			o.forget()
			daemon = b.WeirRun(other)
			if got := b.Weir("table", "show", "-t", "bad"); got != "   192.0.2.2\n" {
				b.Errorf("killed at step %d, %s, the table has\n%s", at+1, all[at], got)
			}
			o.killAt(0)
		}
	})
}
