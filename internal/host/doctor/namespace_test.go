package doctor

import (
	"slices"
	"strings"
	"testing"
)

// TestBystander checks that doctor judges nothing of the machine in a network namespace
// that hardly a packet comes into, and says what it could not tell.
func TestBystander(t *testing.T) {
	b := newBox(4)
	b.card("eth0", "igb", 1000, 1, 1)
	b.traffic("eth0", 300, 5).core(0, 3, 2, 94).core(1, 3, 94, 0).core(2, 97, 1, 0)
	b.s.Host.Namespace, b.s.After.Neighbours = true, nil
	b.s.Unreadable = map[string]string{"host.network_namespace": "process 1 is not readable"}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := r.Verdict
	for _, foreign := range []string{"programs", "kernel's threads", "of a core", "NEIGH-1"} {
		if strings.Contains(v.Sentence, foreign) {
			t.Errorf("the verdict judges the machine: %s", v.Sentence)
		}
	}
	if v.Limit != LimitIdle || len(v.Unseen) > 0 {
		t.Errorf("limit %s, not seen %v", v.Limit, v.Unseen)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "cannot be told (process 1 is not readable)") }) {
		t.Errorf("no note says what cannot be told: %v", r.Notes)
	}
}
