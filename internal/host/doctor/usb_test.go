package doctor

import (
	"strings"
	"testing"
)

// TestUSBPort checks that a card on a slow USB port is a warning only while that port limits it.
func TestUSBPort(t *testing.T) {
	for _, c := range []struct {
		usb, mbit, perSecond int
		want                 Severity
		found                bool
	}{
		{480, 1000, 20000, Warning, true}, {480, 1000, 900, Notice, true}, {480, 100, 8000, Notice, false},
		{5000, 2500, 90000, Notice, false}, {5000, 5000, 250000, Warning, true}, {10000, 5000, 250000, Notice, false},
	} {
		b := newBox(4)
		n := b.card("eth0", "r8152", c.mbit, 1, 1)
		n.USB, n.PCI = c.usb, nil
		b.traffic("eth0", 1400, c.perSecond)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := findingOf(r, "PCI-1"); (f != nil) != c.found || f != nil && f.Severity != c.want {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// TestOneAggregate checks that members of one aggregate are fine, and that a bond without LACP has
// none.
func TestOneAggregate(t *testing.T) {
	for want, aggregates := range map[string]map[string]int{"": {"eth0": 3, "eth1": 3}, "eth2": {"eth0": 3, "eth1": 3, "eth2": 4}, " ": nil} {
		b := newBox(4)
		bond := &Bond{Mode: "802.3ad", Members: []string{"eth0", "eth1", "eth2"}, Aggregates: aggregates}
		for _, name := range bond.Members {
			b.card(name, "igb", 1000, 1, 1).Master = "bond0"
			b.traffic(name, 900, 2000)
		}
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "bond0", Kind: "bond", Up: true, Bond: bond})
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "LAG-1")
		if want = strings.TrimSpace(want); (f != nil) != (want != "") || f != nil && !strings.HasPrefix(f.Says, want+" is up, but not in one aggregate") {
			t.Errorf("%v: %+v", aggregates, f)
		}
	}
}
