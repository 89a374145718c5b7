package doctor

import (
	"slices"
	"testing"
)

// TestRemedies compares commands with the machine's settings. A command that has no
// effect, or the opposite effect, is no remedy.
func TestRemedies(t *testing.T) {
	full := func(b *box, c *Coalesce) {
		b.s.Interfaces[0].Rings.Rx, b.s.Interfaces[0].Coalesce = 4096, c
		b.lose("eth0", 9000)
	}
	xoff := func(b *box, negotiated bool) {
		b.s.Interfaces[0].Pause.Autoneg = negotiated
		b.counted("eth0", "rx_flow_control_xoff", 5000)
	}
	for _, c := range []struct {
		name, check, command string // command "": no remedy
		change               func(b *box)
	}{
		{"adaptive", "RING-1", "ethtool -C eth0 adaptive-rx off rx-usecs 3", func(b *box) { full(b, &Coalesce{Adaptive: true, RxUsecs: 3}) }},
		{"late", "RING-1", "ethtool -C eth0 rx-usecs 20", func(b *box) { full(b, &Coalesce{RxUsecs: 100}) }},
		{"early already", "RING-1", "weir affinity auto --dry-run", func(b *box) { full(b, &Coalesce{RxUsecs: 5}) }},
		{"no such setting", "RING-1", "ethtool -c eth0", func(b *box) { full(b, nil) }},
		{"pause negotiated", "FC-1", "ethtool -A eth0 autoneg off rx off", func(b *box) { xoff(b, true) }},
		{"pause set", "FC-1", "ethtool -A eth0 rx off", func(b *box) { xoff(b, false) }},
	} {
		b := newBox(4)
		b.card("eth0", "igb", 10000, 4, 4)
		b.traffic("eth0", 800, 20000, 20000, 20000, 20000).cores(30, 0, 1, 2, 3)
		c.change(b)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, c.check)
		if f == nil || !slices.ContainsFunc(f.Remedies, func(r Remedy) bool { return r.Command == c.command }) {
			t.Errorf("%s: want %q of %+v", c.name, c.command, f)
		}
	}
}
