package dataplane

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/fw/bpfload"
)

// A Commit that is interrupted before any link was replaced leaves nothing behind. The
// next Build finishes one that is interrupted later.
func TestRepair(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	for _, test := range []struct {
		name string
		cfg  Config
		stop func(*transaction) error
		live bool
		old  bool // links hold the generation before
	}{
		{"before the links", n.blank(), (*transaction).prepare, false, false},
		{"after the links", n.config(), func(t *transaction) error {
			if err := t.prepare(); err != nil {
				return err
			}
			return t.attach(n.attachments(false))
		}, true, false},
		{"between the links", n.config(), func(t *transaction) error {
			if err := t.prepare(); err != nil {
				return err
			}
			return t.attach(n.attachments(false)[:1])
		}, true, true},
	} {
		d := build(t, test.cfg)
		id := must(d.objects.Maps["tails"].Info())(t)
		cut := transaction{d: d, dir: n.dir}
		var err error
		cut.found, err = openLinks(n.dir)
		check(t, err)
		check(t, test.stop(&cut))
		closeLinks(cut.found)
		check(t, d.Close())

		check(t, build(t, n.blank()).Close())
		pinned := must(bpfload.MapID(filepath.Join(n.dir, generationDir, "tails")))(t)
		want, _ := id.ID()
		if is := pinned == uint32(want); is != test.live {
			t.Errorf("%s: the generation is live: %v, want %v", test.name, is, test.live)
		}
		if _, err := os.Stat(filepath.Join(n.dir, nextGenerationDir)); !isMissing(err) {
			t.Errorf("%s: its pins are left: %v", test.name, err)
		}
		if _, err := os.Stat(filepath.Join(n.dir, oldGenerationDir, "tails")); isMissing(err) == test.old {
			t.Errorf("%s: the generation before is kept: %v, want %v", test.name, !isMissing(err), test.old)
		}
	}
	last := build(t, n.blank())
	commit(t, last, n.attachments(false))
	for _, name := range []string{oldTablesDir, oldGenerationDir} {
		if _, err := os.Stat(filepath.Join(n.dir, name)); !isMissing(err) {
			t.Errorf("after a commit, %s is left: %v", name, err)
		}
	}
}

// After an interrupted removal nothing counts as loaded, whatever pins are left.
func TestRemovalIsInterrupted(t *testing.T) {
	n := newNet(t)
	d := build(t, n.blank())
	commit(t, d, n.attachments(false))
	check(t, d.Close())
	check(t, removeAll(n.dir, tablesDir, nextTablesDir, oldTablesDir))
	if _, err := os.Stat(filepath.Join(n.dir, generationDir, ledgerName)); err != nil {
		t.Fatalf("nothing is left to be mistaken: %v", err)
	}
	if v, err := Open(n.dir); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("what is left counts as loaded: %v, %v", v, err)
	}
	next := build(t, n.blank())
	if !next.Fresh() {
		t.Error("states are kept of tables that are gone")
	}
	check(t, next.Close())
	check(t, Remove(n.dir))
	if _, err := os.Stat(n.dir); !isMissing(err) {
		t.Errorf("the folder is left: %v", err)
	}
}
