package forward

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/paths"
	"weir/internal/bench/profile"
	"weir/internal/bench/report"
	"weir/internal/testenv"
)

// TestFlame samples a core that forwards. Most of its time belongs to the path and to the
// benchmark, and the programs are named.
func TestFlame(t *testing.T) {
	testenv.NeedRoot(t)
	o := shortOptions(paths.Redirect)
	o.Flame = true
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Profile == nil {
		t.Fatalf("no flame graph: %+v", r.Skipped)
	}
	all, named, other := 0, 0, 0
	for _, s := range r.Profile.Stacks {
		all += s.Count
		switch {
		case slices.Contains(s.Frames, "bpf: generate"):
			named += s.Count
		case s.Frames[0] == profile.OtherWork:
			other += s.Count
		}
	}
	if all < 500 || named < all/100 || other > all/2 {
		t.Errorf("%d samples in a second, %d of them in the generator, %d elsewhere: %+v", all, named, other, r.Profile.Stacks)
	}
	if d := r.Document(); d.Check() != nil || !slices.ContainsFunc(d.Sections, func(s report.Section) bool { return s.Title == "Where the time goes" }) {
		t.Errorf("the report does not show it: %v", d.Check())
	}
}

func TestFold(t *testing.T) {
	path := []string{"veth_poll", "bpf: weir_xdp"}
	got := fold([][]string{path, {"veth_poll"}, path, {profile.OtherWork}})
	want := []report.Stack{{Frames: []string{profile.OtherWork}, Count: 1}, {Frames: []string{"veth_poll"}, Count: 1}, {Frames: path, Count: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
