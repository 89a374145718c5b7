package cli

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"weir/internal/autorate"
	"weir/internal/fw/view"
)

// Bounds that no flag gives follow from the file's rate. Those that make no sense are refused.
func TestAutorateBounds(t *testing.T) {
	tree := &view.QueueTree{Interface: "wan0", OfRules: 2_500_000}
	for name, c := range map[string]struct {
		given  [2][3]string
		trees  [2]*view.QueueTree
		want   [2]autorate.Bounds
		refuse string
	}{
		"none":      {trees: [2]*view.QueueTree{tree, nil}, want: [2]autorate.Bounds{{Min: 5e6, Base: 20e6, Max: 20e6}}},
		"some":      {given: [2][3]string{{"1M", "", "30M"}}, trees: [2]*view.QueueTree{tree, tree}, want: [2]autorate.Bounds{{Min: 1e6, Base: 20e6, Max: 30e6}, {Min: 5e6, Base: 20e6, Max: 20e6}}},
		"base":      {given: [2][3]string{{}, {"", "8M", ""}}, trees: [2]*view.QueueTree{nil, tree}, want: [2]autorate.Bounds{1: {Min: 2e6, Base: 8e6, Max: 8e6}}},
		"no queues": {refuse: "no queues on wan0"},
		"one way":   {given: [2][3]string{{}, {"", "8M", ""}}, trees: [2]*view.QueueTree{tree, nil}, refuse: "for what goes down"},
		"order":     {given: [2][3]string{{"30M", "", ""}}, trees: [2]*view.QueueTree{tree, nil}, refuse: "not in this order"},
		"rate":      {given: [2][3]string{{"", "", "x"}}, trees: [2]*view.QueueTree{tree, nil}, refuse: "not a bandwidth"},
	} {
		o := &qosAutorate{iface: "wan0", bounds: c.given}
		got, err := o.boundsOf(c.trees)
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: %v, want %q", name, err, c.refuse)
			}
			var usage *UsageError
			if errors.As(err, &usage) != (name == "order" || name == "rate") {
				t.Errorf("%s: %v is a fault of usage, or not", name, err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// The first lines name the bounds of each direction, with units.
func TestAutorateSaysBounds(t *testing.T) {
	var said strings.Builder
	f := &autorate.Follower{Say: slog.New(slog.NewTextHandler(&said, nil))}
	f.Bounds[autorate.Up] = autorate.Bounds{Min: 2e6, Base: 20e6, Max: 37.5e6}
	(&qosAutorate{iface: "wan0"}).sayStart(f)
	if want := "interface=wan0 direction=up min=2Mbit/s base=20Mbit/s max=37.5Mbit/s dry=false\n"; !strings.HasSuffix(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
		t.Errorf("it says %q, want one line that ends with %q", said.String(), want)
	}
}
