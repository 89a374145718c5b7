package compare_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testenv"
	"weir/pf/compare"
	"weir/pf/resolve"
)

func load(t testing.TB, name, src string) *resolve.Ruleset {
	t.Helper()
	host, err := resolve.ReadHost("../resolve/testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	rules, list := resolve.Load(name, []byte(src), host)
	if rules == nil {
		t.Fatal(list.Err())
	}
	return rules
}

// TestGolden checks the files in testdata: comparing "old" with "new" gives "changes".
func TestGolden(t *testing.T) {
	testenv.EachGolden(t, "testdata/*.txtar", func(t *testing.T, g *testenv.Golden) {
		var b strings.Builder
		before, after := load(t, "old", g.Section("old")), load(t, "new", g.Section("new"))
		if err := compare.Fprint(&b, compare.Rulesets(before, after)); err != nil {
			t.Fatal(err)
		}
		g.Check(t, "changes", b.String())
	})
}

// TestCost checks that the cost grows with the number of rules, not with its square, even
// if no line stays or one line repeats.
func TestCost(t *testing.T) {
	for name, line := range map[string]func(side, i int) string{
		"all new":   func(side, i int) string { return fmt.Sprintf("pass proto udp to port %d", 1+i%30000+side*30000) },
		"repeated":  func(side, i int) string { return fmt.Sprintf("pass proto udp to port %d", 1+(i*7+side)%5) },
		"one in 10": func(side, i int) string { return fmt.Sprintf("pass proto udp to port %d", 1+i+side*(i%10)) },
	} {
		var src [2]strings.Builder
		for side := range src {
			for i := range 5000 {
				fmt.Fprintln(&src[side], line(side, i))
			}
		}
		before, after := load(t, "old", src[0].String()), load(t, "new", src[1].String())
		start := time.Now()
		if changes := compare.Rulesets(before, after); len(changes) == 0 {
			t.Errorf("%s: nothing changes", name)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: %v for 5,000 rules", name, took)
		}
	}
}
