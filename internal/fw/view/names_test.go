package view

import (
	"path/filepath"
	"testing"

	"weir/internal/fw/rundir"
	"weir/internal/fw/shaper"
)

// Classes are numbered through all trees. Another load renames them.
func TestNamesOfQueues(t *testing.T) {
	f := rundir.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Make(); err != nil {
		t.Fatal(err)
	}
	load := func(names ...string) {
		t.Helper()
		loaded := rundir.Loaded{Shapers: []shaper.Shaper{
			{Interface: "wan0", Classes: []shaper.Class{{Name: "up"}, {Name: names[0]}}},
			{Interface: "lan0", Classes: []shaper.Class{{Name: names[1]}}},
		}}
		if err := rundir.WriteJSON(f.Loaded(), &loaded); err != nil {
			t.Fatal(err)
		}
	}
	load("bulk", "down")
	n, err := NewNames(f)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		for class, want := range want {
			if name, device := n.Queue(uint32(class)); name+" "+device != want {
				t.Errorf("class %d is %q on %q, want %q", class, name, device, want)
			}
		}
	}
	expect(" ", "up wan0", "bulk wan0", "down lan0", " ")
	load("voice", "rest")
	expect(" ", "up wan0", "voice wan0", "rest lan0", " ")
}
