package rundir

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/resolve"
)

func entry(text string) resolve.TableEntry {
	prefix, not := strings.CutPrefix(text, "!")
	return resolve.TableEntry{Prefix: netip.MustParsePrefix(prefix), Not: not}
}

// holds reads all records of a folder in the user's notation.
func holds(t *testing.T, folder string) map[string][]string {
	t.Helper()
	all, err := ReadTables(folder, failing)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string][]string)
	for name, table := range all {
		texts[name] = []string{}
		for _, e := range table.Entries {
			text := e.Prefix.String()
			if e.Not {
				text = "!" + text
			}
			texts[name] = append(texts[name], text)
		}
		slices.Sort(texts[name])
	}
	return texts
}

// A record holds what was written and added, in order.
func TestTableRecord(t *testing.T) {
	folder := t.TempDir()
	first := []resolve.TableEntry{entry("10.0.0.0/8"), entry("!10.1.0.0/16"), entry("2001:db8::1/128")}
	r, err := WriteTable(folder, "bad@outer/inner", &Table{Entries: first, Times: NewTimes(1000), Made: true, Anchor: "outer/inner"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := WriteTable(folder, "a.new", &Table{Times: NewTimes(7)}); err != nil {
		t.Fatal(err)
	}
	err = r.Add([]resolve.TableEntry{entry("10.1.0.0/16"), entry("192.0.2.1/32")}, []netip.Prefix{first[0].Prefix, netip.MustParsePrefix("192.0.2.1/32")}, 2000)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"bad@outer/inner": {"10.1.0.0/16", "192.0.2.1/32", "2001:db8::1/128"}, "a.new": {}}
	if diff := cmp.Diff(want, holds(t, folder)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := ReadTables(folder, failing)
	if err != nil {
		t.Fatal(err)
	}
	table := all["bad@outer/inner"]
	if !table.Made || table.Anchor != "outer/inner" || all["a.new"].Made {
		t.Errorf("made: %t and %t, want only the first", table.Made, all["a.new"].Made)
	}
	for prefix, want := range map[string]uint32{"2001:db8::1/128": 1000, "10.1.0.0/16": 2000, "192.0.2.1/32": 2000} {
		if got := table.Times.Of(netip.MustParsePrefix(prefix)); got != want {
			t.Errorf("%s is of %d, want %d", prefix, got, want)
		}
	}
	if r.Full() {
		t.Error("a short record is to be written again")
	}
	for range 5000 {
		if err := r.Add([]resolve.TableEntry{entry("192.0.2.1/32")}, nil, 3000); err != nil {
			t.Fatal(err)
		}
	}
	if !r.Full() {
		t.Error("a long record is not to be written again")
	}
	if all, err := ReadTables(filepath.Join(folder, "none"), failing); len(all) != 0 || err != nil {
		t.Errorf("without a folder: %v, %v", all, err)
	}
}

// A process that was killed while it wrote leaves an unfinished file, or a last line
// without its end. What is wrong in another way is an error that names the table.
func TestTableRecordUnfinished(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"t.table": "+10.0.0.0/8\n+10.1.0.0/1", "t.table.new": "+192.0"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string][]string{"t": {"10.0.0.0/8"}}, holds(t, folder)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"10.0.0.0/8\n", "+10.0.0.0\n", "\n", "+10.0.0.0/8\n*part\n", "=10.0.0.0/8\n"} {
		if err := os.WriteFile(filepath.Join(folder, "t.table"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTables(folder, failing); err == nil || !strings.Contains(err.Error(), "read the record of the table t") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func failing(_ string, err error) error { return err }

// A record that cannot be read is set aside, if the reader wants that. The others are read.
func TestTableRecordSetAside(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"good.table": "+10.0.0.0/8\n", "bad.table": "?\n", "%zz.table": "+10.0.0.0/8\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 0} { // the second time there is nothing to set aside
		damaged := 0
		all, err := ReadTables(folder, func(path string, _ error) error {
			damaged++
			_, err := SetAside(path)
			return err
		})
		if err != nil || damaged != want || len(all) != 1 || all["good"] == nil {
			t.Errorf("%v, %d damaged, not %d: %v", all, damaged, want, err)
		}
	}
	for _, name := range []string{"bad.table.damaged", "%zz.table.damaged"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
}
