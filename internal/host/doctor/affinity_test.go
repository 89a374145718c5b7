package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// TestAffinity prints the tables of three machines: one with two nodes and RPS, one with
// PPPoE sessions, and a Check Point.
func TestAffinity(t *testing.T) {
	b := newBox(4).nodes()
	b.card("eth0", "ixgbe", 10000, 2, 2)
	b.card("wan0", "r8169", 1000, 1, 1).RPS = []string{"1-3"}
	b.s.Interfaces[0].XPS = []string{"0-1", "2-3"}
	b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "wg0", Kind: "wireguard", Up: true})
	b.serve("eth0", 1, 2).traffic("eth0", 800, 30000, 10000).traffic("wan0", 1200, 20000).cores(40, 0, 2)
	foreign, err := Read(strings.NewReader(splitText))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Snapshot{"affinity-box": b.s, "affinity-split": foreign, "affinity-pppoe": twoLines().s} {
		var out strings.Builder
		if err := Affinities(s).Print(&out); err != nil {
			t.Fatal(err)
		}
		testenv.GoldenFile(t, filepath.Join("testdata", name+".txt"), []byte(out.String()))
	}
}

// TestAffinityUnknown checks that unknown facts are printed as unknown, and that no core
// is made up for them.
func TestAffinityUnknown(t *testing.T) {
	b := newBox(2)
	b.card("eth0", "ixgbe", 10000, 2, 2)
	b.s.IRQs = nil
	a := Affinities(b.s)
	for _, q := range a.Queues {
		if len(q.Served) > 0 || q.IRQ != 0 {
			t.Errorf("%+v", q)
		}
	}
	if len(a.Queues) != 2 || len(a.Missing) != 2 || !strings.Contains(a.Missing[0], "queue 0 of eth0") {
		t.Errorf("%+v", a)
	}
}
