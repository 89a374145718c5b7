package compare_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"weir/pf/compare"
	"weir/pf/resolve"
)

var update = flag.Bool("update", false, "write what comes out to the files of testdata that say what should")

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

// TestGolden checks the files in testdata: what is said to change from "old" to
// "new" is "changes".
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			before, after := load(t, "old", string(a.Files[0].Data)), load(t, "new", string(a.Files[1].Data))
			if err := compare.Fprint(&b, compare.Rulesets(before, after)); err != nil {
				t.Fatal(err)
			}
			if *update {
				a.Files = append(a.Files[:2], txtar.File{Name: "changes", Data: []byte(b.String())})
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[2].Data), b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCost checks that the cost grows with the number of rules and not with its
// square, also where nothing stays and where one line stands again and again.
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
