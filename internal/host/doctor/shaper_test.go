package doctor

import (
	"strings"
	"testing"
)

// TestUnknownRate checks shapers whose rate is not in the bundle. One that drops many
// packets is named, with what to look at, and nobody says that nothing is wrong.
func TestUnknownRate(t *testing.T) {
	for _, c := range []struct {
		name    string
		drops   uint64
		held    uint64
		managed bool // fq_codel below makes the drops
		check   string
		limit   Limit
	}{
		{name: "one in eight is lost", drops: 60000, held: 120000, check: "SHAPE-1", limit: LimitBox},
		{name: "one in eight, of them", drops: 60000, held: 120000, managed: true, limit: LimitShaper},
		{name: "all are held back", drops: 900, held: 430000, managed: true, limit: LimitShaper},
		{name: "nothing is held back", drops: 60000, check: "SHAPE-1", limit: LimitBox},
		{name: "a burst", drops: 40, held: 5000, managed: true, limit: LimitFar},
		{name: "no loss", held: 4000, limit: LimitFar},
	} {
		b := newBox(4)
		b.card("eth0", "igb", 1000, 1, 1)
		b.card("eth1", "igb", 1000, 1, 1)
		b.traffic("eth0", 900, 40000).traffic("eth1", 900, 40000).cores(43, 0, 1, 2, 3)
		b.disciplines(Qdisc{Interface: "eth0", Kind: "htb", Handle: "1:0", Parent: "root", Bytes: 400e6, Packets: 440000, Drops: c.drops, Overlimits: c.held})
		if c.managed {
			b.disciplines(Qdisc{Interface: "eth0", Kind: "fq_codel", Handle: "10:0", Parent: "1:10", Bytes: 400e6, Packets: 440000, Drops: c.drops})
		}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := r.Verdict
		if v.Check != c.check || v.Limit != c.limit {
			t.Errorf("%s: check %q, limit %q: %s", c.name, v.Check, v.Limit, v.Sentence)
		}
		wrong := strings.Contains(v.Sentence, "Nothing is wrong")
		if wrong != (c.limit == LimitFar) || !wrong && !strings.Contains(v.Sentence, "htb") {
			t.Errorf("%s: %s", c.name, v.Sentence)
		}
		if f := findingOf(r, "SHAPE-1"); c.check != "" && (f == nil || !strings.Contains(f.Remedies[0].Command, "class show dev eth0")) {
			t.Errorf("%s: no command: %+v", c.name, f)
		}
	}
}
