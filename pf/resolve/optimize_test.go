package resolve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"weir/pf/printer"
	"weir/pf/resolve"
)

// TestOptimized checks the files in testdata/optimized: what is left of "in"
// when it is optimized is "out", and is what is left of that.
func TestOptimized(t *testing.T) {
	files, err := filepath.Glob("testdata/optimized/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out := optimized(t, section(archive, "in"), resolve.Settings{Optimize: true})
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "out", Data: []byte(out)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(section(archive, "out"), out); diff != "" {
				t.Errorf("out (-want +got):\n%s", diff)
			}
			printsItself(t, out, testHost(t))
		})
	}
}

// TestOptimizedAsSet checks when set ruleset-optimization counts.
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
