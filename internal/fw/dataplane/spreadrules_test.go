package dataplane

import (
	"testing"
	"time"

	"weir/internal/fw/limits"
)

// TestSpreadFollowsRules: frames that are handed over meet the rules in force, also if the load of
// these rules did not spread, and spreading began again later.
func TestSpreadFollowsRules(t *testing.T) {
	const syn = "tcp 192.168.1.10:4000 > 198.51.100.9:99 S seq 5"
	s := newSpreadNet(t, "block drop")
	s.give(s.other+1, 1)
	if got := s.answers(syn, 200*time.Millisecond); got != "nothing" {
		t.Fatalf("block drop answers with %s", got)
	}
	s.give(0, 1)
	check(t, s.dp.Spread(s.net.lan0, false))
	s.rules = "block return"
	s.load(false)
	check(t, s.dp.Spread(s.net.lan0, true))
	s.give(s.other+1, 1)
	for deadline := time.Now().Add(spreadPatience); s.answers(syn, 200*time.Millisecond) == "nothing"; {
		if time.Now().After(deadline) {
			t.Fatal("block return does not answer: other cores go on with the rules of before")
		}
	}
}

// TestSpreadKnown: what an interface that is gone has done says nothing of another one.
func TestSpreadKnown(t *testing.T) {
	s := newSpreadNet(t, "pass")
	if now := must(s.dp.Shares(s.net.lan0))(t); now.Known {
		t.Error("the shares are known before they are set")
	}
	s.give(0, 1)
	if now := must(s.dp.Shares(s.net.lan0))(t); !now.Known || !now.Idle() {
		t.Errorf("the shares are set: known %t, idle %t", now.Known, now.Idle())
	}
	if now := must(s.dp.Shares(s.net.lan0 + limits.SpreadSlots))(t); now.Known {
		t.Error("the shares of an interface with the same slot are taken for its own")
	}
	check(t, s.dp.RemoveInterface(s.net.lan0))
	if s.dp.Spreads(s.net.lan0) {
		t.Error("an interface that is gone spreads")
	}
}
