package ruleset_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

// limitNames returns the name of each rule's limits; 0: it has none.
func limitNames(p *ruleset.Program) []uint64 {
	names := make([]uint64, len(p.Order))
	for number, index := range p.Order {
		if limit := p.Rules[index].Limit; limit != 0 {
			names[number] = p.Limits[limit-1].Name
		}
	}
	return names
}

// A rule's limits have the same name whatever other rules say. Equal rules have names of
// their own, and so have equal rules of different anchors.
func TestLimitNames(t *testing.T) {
	const limited = "pass in proto udp keep state (max 7)\n"
	one := limitNames(compiled(t, "block\n"+limited+"anchor a {\n"+limited+"}\n"+limited))
	other := limitNames(compiled(t, "block in\nblock out\npass keep state (max 9)\n"+limited+"anchor b {\n"+limited+"}\nanchor a {\npass\n"+limited+"}\n"+limited))
	seen := map[uint64]bool{0: true}
	for i, number := range []int{1, 3, 4} {
		name := one[number]
		if seen[name] {
			t.Errorf("rule %d has the name of another", number)
		}
		seen[name] = true
		if now := other[[]int{3, 8, 9}[i]]; now != name {
			t.Errorf("rule %d is named %x, in the other rules %x", number, name, now)
		}
	}
	if seen[other[2]] || seen[other[5]] {
		t.Error("other rules have their names")
	}
}

// Rules that stay keep their limits when others are replaced in place, even if they now
// come after an equal rule.
func TestReplaceKeepsLimits(t *testing.T) {
	const limited = "pass in proto udp keep state (max 7)\n"
	load := func(text string) *resolve.Ruleset {
		rs, list := resolve.Load("in", []byte(text), &resolve.Host{})
		if rs == nil {
			t.Fatal(list.Err())
		}
		return rs
	}
	p := compiled(t, "anchor a {\npass\n}\n"+limited)
	name := limitNames(p)[2]
	for range 3 {
		q, err := p.Replace(load("anchor a {\n"+limited+"}\n"+limited), ruleset.Snapshot{}, []int{0, ruleset.New, 2})
		if err != nil {
			t.Fatal(err)
		}
		names := limitNames(q)
		if names[2] != name || names[1] == 0 || names[1] == name {
			t.Errorf("names %x, the rule's was %x", names, name)
		}
		if len(q.Limits) > 3 {
			t.Errorf("%d limits of two rules", len(q.Limits))
		}
		p = q
	}
}

func TestTooManyLimits(t *testing.T) {
	rs, list := resolve.Load("in", []byte(strings.Repeat("pass keep state (max 7)\n", ruleset.MaxLimits+1)), &resolve.Host{})
	if rs == nil {
		t.Fatal(list.Err())
	}
	_, err := ruleset.Compile(rs, ruleset.Snapshot{})
	want := fmt.Sprintf("there are more than %d rules that limit states", ruleset.MaxLimits)
	if _, ok := errors.AsType[*ruleset.Error](err); !ok || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want: %s", err, want)
	}
	rs.Rules = rs.Rules[:ruleset.MaxLimits]
	if p, err := ruleset.Compile(rs, ruleset.Snapshot{}); err != nil || len(p.Limits) != ruleset.MaxLimits {
		t.Errorf("at the limit: %v", err)
	}
}
