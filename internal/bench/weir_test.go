package bench

import (
	"strings"
	"testing"

	"weir/examples"
)

// Of the example only the limit of states may differ.
func TestWeirRules(t *testing.T) {
	if got := weirRules(1000); got != examples.GatewayConf {
		t.Error("1,000 flows need no other limit")
	}
	before, after := strings.Split(examples.GatewayConf, "\n"), strings.Split(weirRules(1_000_000), "\n")
	if len(before) != len(after) {
		t.Fatalf("%d lines became %d", len(before), len(after))
	}
	changed := 0
	for i := range before {
		if before[i] != after[i] {
			changed++
			if after[i] != "set limit states 2000000" {
				t.Errorf("%q became %q", before[i], after[i])
			}
		}
	}
	if changed != 1 {
		t.Errorf("%d lines changed, want 1", changed)
	}
}
