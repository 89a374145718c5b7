package doctor

import (
	"slices"
	"testing"
)

// TestLinkBesideFullCores checks that a link that flaps, or is half duplex, does not
// explain what full cores lose, and that one down and up explains no damaged frames.
func TestLinkBesideFullCores(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes uint64
		half    bool
		because string // of damaged frames on the same link
	}{
		{name: "down and up", changes: 2},
		{name: "flaps", changes: 6, because: "ERR-1"},
		{name: "half duplex", half: true, because: "LINK-1"},
	} {
		b := newBox(4)
		b.card("eth0", "igb", 10000, 4, 4)
		n := b.card("eth1", "igb", 10000, 4, 4)
		b.traffic("eth1", 300, 200000, 190000, 210000, 200000).cores(97, 0, 1, 2, 3).lose("eth1", 90000)
		b.counted("eth1", "rx_crc_errors", 60).errors("eth1", Link{CarrierChanges: c.changes})
		if c.half {
			n.Duplex = "half"
		}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "RING-1"); r.Verdict.Check != "CPU-2" || f == nil || f.Because != "CPU-2" {
			t.Errorf("%s: verdict %s; RING-1: %+v", c.name, r.Verdict.Check, f)
		}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.kind == "damage" })
		if i < 0 || r.Findings[i].Because != c.because {
			t.Errorf("%s: damaged frames stand under another cause than %q: %+v", c.name, c.because, r.Findings)
		}
	}
}
