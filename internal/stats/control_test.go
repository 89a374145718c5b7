package stats

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestControl(t *testing.T) {
	c := NewControl()
	c.Add("weir", Sample{100}, Sample{102})
	c.Add("weir-nat", Sample{100}, Sample{101})
	if !c.OK || c.Path != "weir" || c.Difference != 0.02 {
		t.Errorf("%+v", c)
	}
	c.Add("nft", Sample{100}, Sample{106})
	c.Add("weir", Sample{100}, Sample{100})
	if c.OK || c.Path != "nft" || !strings.Contains(c.String(), "no verdict: nft differs from itself by 6.0 %") {
		t.Errorf("%v", c)
	}
	nothing := NewControl()
	if nothing.Add("weir", nil, nil); nothing.OK {
		t.Error("a control without runs holds")
	}
	half := NewControl()
	if half.Add("weir", Sample{0}, Sample{3}); half.OK || half.Difference != 0 {
		t.Errorf("of nothing and something: %+v", half)
	}
}

// TestInterleave checks that every round has each entry once, and that the orders differ.
func TestInterleave(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	entries := []string{"a", "b", "c", "d"}
	rounds := make([][]string, 20)
	for round, e := range interleave(r.Shuffle, len(rounds), entries) {
		rounds[round] = append(rounds[round], e)
	}
	orders := map[string]bool{}
	for i, round := range rounds {
		orders[strings.Join(round, "")] = true
		if sorted := slices.Sorted(slices.Values(round)); !slices.Equal(sorted, entries) {
			t.Errorf("round %d: %v", i, round)
		}
	}
	if len(orders) < 8 {
		t.Errorf("only %d orders in %d rounds", len(orders), len(rounds))
	}
	if !slices.Equal(entries, []string{"a", "b", "c", "d"}) {
		t.Error("the caller's order was changed")
	}
	for range interleave(r.Shuffle, 3, entries) {
		break // and nothing more is asked for
	}
}
