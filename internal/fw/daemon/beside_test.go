package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"weir/internal/fw/rundir"
	"weir/pf/resolve"
	"weir/pf/source"
)

// A source keeps its macros and the contents of the files that it names, and so does its
// record. If the files change or go away, the source is still what was loaded.
func TestSourceKeepsFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.conf", "include \"more\"\npass proto tcp from <t> to port $port\n")
	write("more", "table <t> file \"addresses\"\nblock in proto tcp\n")
	write("addresses", "192.0.2.1 192.0.2.2\n")
	b := &box{cfg: &Config{
		Folder: rundir.Folder(t.TempDir()), File: filepath.Join(dir, "main.conf"), NoDNS: true,
		Macros: []source.Macro{{Name: "port", Value: "22"}},
	}}
	s, err := b.readSource()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main.conf", "more", "addresses"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(b.cfg.Folder.Sources(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.recordSource(&s, 3); err != nil {
		t.Fatal(err)
	}
	var record rundir.Source
	if err := rundir.ReadJSON(b.cfg.Folder.SourceOf(3), &record); err != nil {
		t.Fatal(err)
	}
	again := restored(&record)
	for _, s := range []*Source{&s, again} {
		rules, err := s.compile(&machine{host: &resolve.Host{}})
		if err != nil {
			t.Fatal(err)
		}
		if len(rules.texts) != 2 || rules.texts[0].File != filepath.Join(dir, "more") || rules.texts[0].Line != 2 {
			t.Errorf("%+v, want the rule of more and another", rules.texts)
		}
	}
}

// The same rules for the same machine compare as equal, even if they translate source
// addresses. Otherwise every change of the machine would reload them, and they would
// count from 0.
func TestSameRulesAreTheSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nat.conf")
	if err := os.WriteFile(file, []byte("match out on wan0 nat-to 192.0.2.1\nmatch out on wan1 inet nat-to { 192.0.2.1, 192.0.2.2 } source-hash\npass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &box{cfg: &Config{Folder: rundir.Folder(t.TempDir()), File: file, NoDNS: true}}
	var all []*compiled
	for range 2 {
		s, err := b.readSource()
		if err != nil {
			t.Fatal(err)
		}
		rules, err := s.compile(&machine{host: &resolve.Host{Secret: secret()}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rules)
	}
	if !all[0].sameRules(all[1]) {
		t.Errorf("%+v and %+v are taken for different", all[0].texts, all[1].texts)
	}
}
