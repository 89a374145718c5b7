package ruleset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

// Rules outside of anchors that are there again stay, and so do anchors. If rules directly
// inside an anchor change, all of its rules are new.
func TestKeepParts(t *testing.T) {
	const before = "block\nanchor a {\n pass in\n anchor b {\n  pass out\n  block in\n }\n}\nanchor c {\n pass\n}\npass out\n"
	old := rulesIn(t, before)
	const fresh = ruleset.New
	for _, test := range []struct {
		name, text string
		want       []int
	}{
		{"nothing", before, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"the inner anchor", "block\nanchor a {\n pass in\n anchor b {\n  pass out\n }\n}\nanchor c {\n pass\n}\npass out\n",
			[]int{0, 1, 2, 3, fresh, 6, 7, 8}},
		{"the outer anchor", "block\nanchor a {\n pass in\n pass in proto tcp\n anchor b {\n  pass out\n  block in\n }\n}\nanchor c {\n pass\n}\npass out\n",
			[]int{0, 1, fresh, fresh, fresh, fresh, fresh, 6, 7, 8}},
		{"two anchors", "block\nanchor a {\n pass in\n anchor b {\n  block in\n }\n}\nanchor c {\n block\n pass\n}\npass out\n",
			[]int{0, 1, 2, 3, fresh, 6, fresh, fresh, 8}},
		{"an empty anchor", "block\nanchor a {\n pass in\n anchor b {\n  pass out\n  block in\n }\n}\nanchor c {\n}\npass out\n",
			[]int{0, 1, 2, 3, 4, 5, 6, 8}},
		{"outside", "block\nanchor a {\n pass in\n anchor b {\n  pass out\n  block in\n }\n}\nanchor c {\n pass\n}\n",
			[]int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"a rule in front, and an order", "pass in proto udp\npass out\nblock\nanchor c {\n pass\n}\nanchor a {\n pass in\n anchor b {\n  pass out\n }\n}\n",
			[]int{fresh, 8, 0, 6, 7, 1, 2, 3, fresh}},
		{"twice", "block\nblock\npass out\n", []int{0, fresh, 8}},
		{"the anchor's condition", "block\nanchor a in {\n pass in\n anchor b {\n  pass out\n  block in\n }\n}\nanchor c {\n pass\n}\npass out\n",
			[]int{0, fresh, fresh, fresh, fresh, 6, 7, 8}},
		{"another anchor", "block\nanchor a {\n pass in\n anchor b {\n  pass out\n  block in\n }\n}\nanchor d {\n pass\n}\npass out\n",
			[]int{0, 1, 2, 3, 4, 5, fresh, fresh, 8}},
	} {
		t.Run(test.name, func(t *testing.T) {
			keep := ruleset.KeepParts(old, rulesIn(t, test.text))
			if diff := cmp.Diff(test.want, keep); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func rulesIn(t *testing.T, text string) []*resolve.Rule {
	t.Helper()
	rs, faults := resolve.Load("test.conf", []byte(text), nil)
	if faults.HasErrors() {
		t.Fatal(faults)
	}
	return rs.Rules
}

// A rule that stays, but chooses from other addresses than before, is new: it has a pool
// of its own.
func TestReplaceWithOtherPool(t *testing.T) {
	compile := func(text string) *resolve.Ruleset {
		rs, faults := resolve.Load("test.conf", []byte(text), nil)
		if faults.HasErrors() {
			t.Fatal(faults)
		}
		return rs
	}
	const rules = "table <t> { 192.0.2.1 }\npass out nat-to <t>\nanchor a {\n pass\n}\n"
	old := compile(rules)
	p, err := ruleset.Compile(old, ruleset.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text string
		want       []uint32
	}{
		{"the same", rules, []uint32{0, 1, 2}},
		{"another address", "table <t> { 192.0.2.2 }\npass out nat-to <t>\nanchor a {\n pass\n}\n", []uint32{uint32(len(p.Rules)), 1, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := compile(test.text)
			keep := ruleset.KeepParts(old.Rules, now.Rules)
			q, err := p.Replace(now, ruleset.Snapshot{}, keep)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, q.Order); diff != "" {
				t.Errorf("indices (-want +got):\n%s", diff)
			}
		})
	}
}
