package ruleset

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"weir/pf/resolve"
)

// compileText compiles rules for a machine without interfaces.
func compileText(t *testing.T, text string) *Program {
	t.Helper()
	rules, list := resolve.Load("test.conf", []byte(text), nil)
	if rules == nil {
		t.Fatal(list.Err())
	}
	p, err := Compile(rules, Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A table that is made at run time is found by later changes, and stays apart from those of
// the file. One that the file defines cannot be made.
func TestMakeTable(t *testing.T) {
	p := compileText(t, "table <defined> persist\ntable <fixed> const { 192.0.2.1 }\ntable <unused> { 192.0.2.2 }\n"+
		"anchor \"part\" {\n table <inner> persist\n block from <inner>\n}\nblock from { <named>, <fixed> }\n")
	for name, want := range map[string]bool{"defined": false, "fixed": false, "named": true, "new": true, "unused": true, "inner": false} {
		if got := p.MakeTable(name); got != want {
			t.Errorf("MakeTable(%s) = %t, want %t", name, got, want)
		}
		if p.MakeTable(name) {
			t.Errorf("%s is made twice", name)
		}
	}
	entry := TableEntry{Prefix: netip.MustParsePrefix("192.0.2.7/32")}
	for _, name := range []string{"new", "named", "unused"} {
		if u, err := p.ChangeTable(name, []TableEntry{entry}, nil); err != nil || u.Changed != 1 {
			t.Fatalf("a change of %s: %v", name, err)
		} else {
			u.Done(nil)
		}
		if _, has := p.EntryOf(name, entry.Prefix); !has || p.TableLen(name) != 1 {
			t.Errorf("%s has %d entries, and not the new one", name, p.TableLen(name))
		}
	}
	if err := p.Changeable("fixed"); !errors.Is(err, ErrConstTable) {
		t.Errorf("a const table: %v", err)
	}
	if p.RemoveTable("named") || p.RemoveTable("defined") || !p.RemoveTable("new") || p.RemoveTable("new") {
		t.Error("not only a table that was made and that no rule names is removed")
	}
	if _, err := p.TableInfo("new"); !errors.Is(err, ErrNoTable) {
		t.Errorf("a table that was removed: %v", err)
	}
	for called, want := range map[string]string{"inner@part": "inner", "inner@other": "inner@other", "named@part": "named@part", "named": "named"} {
		if got := p.TableName(called); got != want {
			t.Errorf("TableName(%s) = %s, want %s", called, got, want)
		}
	}
	want := []TableInfo{
		{Name: "defined", Persist: true},
		{Name: "fixed", Entries: 1, Const: true, Rules: 1},
		{Name: "inner", Persist: true, Rules: 1, Anchor: "part"},
		{Name: "named", Entries: 1, Persist: true, Made: true, Rules: 1},
		{Name: "unused", Entries: 1, Persist: true, Made: true},
	}
	got := p.Tables()
	if len(got) != len(want) {
		t.Fatalf("tables %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("table %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// As in pf, anchors that name or define a table count at the one outside of anchors.
func TestAnchorsOfTables(t *testing.T) {
	p := compileText(t, "table <both> persist\nblock from <both>\n"+
		"anchor \"a\" {\n table <both> persist\n table <inner> persist\n block from <both>\n block from <inner>\n}\n"+
		"anchor \"b\" {\n block to <both>\n block from <both>\n block from <named>\n}\n"+
		"anchor \"c\" {\n block to <named>\n}\n")
	want := map[string]int{"both": 2, "both@a": 0, "inner": 0, "named": 2}
	for _, table := range p.Tables() {
		if table.Anchors != want[table.Name] {
			t.Errorf("at the table %s count %d anchors, want %d", table.Name, table.Anchors, want[table.Name])
		}
		delete(want, table.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no tables %v", want)
	}
}

// Longest returns the longest of the prefixes that contain an address.
func TestLongest(t *testing.T) {
	p := compileText(t, "table <a> persist\ntable <b> persist\nblock from <a>\n")
	random := rand.New(rand.NewPCG(3, 3))
	address := func() netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, byte(random.IntN(4)), byte(random.IntN(256))})
	}
	for _, name := range []string{"a", "b"} {
		var entries []TableEntry
		for range 300 {
			prefix := netip.PrefixFrom(address(), 16+random.IntN(17)).Masked()
			entries = append(entries, TableEntry{Prefix: prefix, Not: random.IntN(3) == 0})
		}
		u, err := p.ReplaceTable(name, entries)
		if err != nil {
			t.Fatal(err)
		}
		u.Done(nil)
		held := p.EntriesOf(name)
		for range 2000 {
			a := address()
			var want TableEntry
			for _, e := range held {
				if e.Prefix.Contains(a) && (!want.Prefix.IsValid() || e.Prefix.Bits() > want.Prefix.Bits()) {
					want = e
				}
			}
			if got, ok := p.Longest(name, a); got != want || ok != want.Prefix.IsValid() {
				t.Fatalf("%s in %s: %v, want %v", a, name, got, want)
			}
		}
		for _, e := range held {
			if not, has := p.EntryOf(name, e.Prefix); !has || not != e.Not {
				t.Errorf("%s: %v is not found", name, e)
			}
		}
	}
}
