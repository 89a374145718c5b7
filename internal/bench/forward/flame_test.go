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

// TestFlame samples a core that forwards. The programs are named: the benchmark's own and,
// at both hooks, weir's.
func TestFlame(t *testing.T) {
	testenv.NeedRoot(t)
	program := testenv.BuildWeir(t)
	for _, c := range []struct {
		path  string
		hook  string
		names []string
	}{
		{paths.Redirect, "xdp", []string{"bpf: generate"}},
		{paths.Weir, "xdp", []string{"bpf: generate", "bpf: weir_xdp"}},
		{paths.Weir, "tcx", []string{"bpf: generate", "bpf: weir_tc_in"}},
	} {
		t.Run(c.path+" "+c.hook, func(t *testing.T) {
			o := shortOptions(c.path)
			o.Flame = true
			o.Program, o.Hook = program, c.hook
			testFlame(t, o, c.names)
		})
	}
}

func testFlame(t *testing.T, o Options, names []string) {
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Profile == nil {
		t.Fatalf("no flame graph: %+v", r.Skipped)
	}
	all, named := 0, map[string]int{}
	for _, s := range r.Profile.Stacks {
		all += s.Count
		for _, name := range names {
			if slices.Contains(s.Frames, name) {
				named[name] += s.Count
			}
		}
	}
	for _, name := range names {
		// The generator is cheap: about one sample in a hundred.
		if all < 500 || named[name] < all/500 {
			t.Errorf("%d samples in a second, %d of them in %s", all, named[name], name)
		}
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
