package resolve_test

import (
	"strings"
	"testing"

	"weir/internal/testenv"
	"weir/pf/printer"
	"weir/pf/resolve"
)

// TestOptimized checks the files in testdata/optimized: optimizing "in" returns "out",
// and optimizing "out" changes nothing.
func TestOptimized(t *testing.T) {
	testenv.EachGolden(t, "testdata/optimized/*.txtar", func(t *testing.T, g *testenv.Golden) {
		out := optimized(t, g.Section("in"), resolve.Settings{Optimize: true})
		g.Check(t, "out", out)
		printsItself(t, out, testHost(t))
	})
}

// TestOptimizedAsSet checks when set ruleset-optimization is used.
func TestOptimizedAsSet(t *testing.T) {
	for _, test := range []struct {
		set      string
		settings resolve.Settings
		lines    int
	}{
		{"", resolve.Settings{AsSet: true}, 2},
		{"set ruleset-optimization none\n", resolve.Settings{AsSet: true}, 2},
		{"set ruleset-optimization basic\n", resolve.Settings{AsSet: true}, 1},
		{"set ruleset-optimization profile\n", resolve.Settings{AsSet: true}, 1},
		{"set ruleset-optimization basic\n", resolve.Settings{}, 2},
		{"set ruleset-optimization none\n", resolve.Settings{Optimize: true}, 1},
	} {
		out := optimized(t, test.set+"pass in\npass in\n", test.settings)
		if n := strings.Count(out, "\n"); n != test.lines {
			t.Errorf("%q with %+v: %d lines, want %d", test.set, test.settings, n, test.lines)
		}
	}
}

func optimized(t *testing.T, src string, settings resolve.Settings) string {
	t.Helper()
	rules, list := resolve.LoadWith("in", []byte(src), testHost(t), settings)
	if rules == nil {
		t.Fatal(render(t, &list))
	}
	var b strings.Builder
	if err := printer.Fprint(&b, rules.Source); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
