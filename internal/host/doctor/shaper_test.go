package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestWeirQueues checks that each queue of weir's rules has a line of its own, and that a
// bundle without them has their sum.
func TestWeirQueues(t *testing.T) {
	b := forwarding(4, 20)
	b.weir(0)
	b.s.Before.Weir.Queues = []WeirQueue{{Interface: "eth1", Name: "voice", Drops: 3}, {Interface: "eth1", Name: "bulk", Drops: 500}, {Interface: "eth0", In: true, Name: "bulk"}}
	b.s.After.Weir.Queues = []WeirQueue{
		{Interface: "eth1", Name: "voice", Engine: "queue", Drops: 3, Bytes: 1e6},
		{Interface: "eth1", Name: "bulk", Engine: "queue", Drops: 1500, Marked: 200, Bytes: 125e6, Backlog: 64000},
		{Interface: "eth0", In: true, Name: "bulk", Engine: "phantom", Bytes: 250e6, Backlog: 9000},
		{Interface: "eth0", In: true, Name: "new", Drops: 70},
	}
	b.s.After.Weir.Reasons = map[string]uint64{"queue": 1000}
	want := []string{
		"weir's queue bulk out of eth1 sends 100 Mbit/s and drops 100 packets/s, marks 20 packets/s, holds 64,000 bytes",
		"weir's queue bulk into eth0 sends 200 Mbit/s and drops 0 packets/s, is 9,000 bytes beyond its share",
	}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, r.Shapers); diff != "" {
		t.Error(diff)
	}
	b.s.Before.Weir.Queues, b.s.After.Weir.Queues = nil, nil
	if r, err = Examine(b.s, nil); err != nil || len(r.Shapers) != 1 || !strings.Contains(r.Shapers[0], "drop 100 packets/s") {
		t.Errorf("%v: %q", err, r.Shapers)
	}
}
