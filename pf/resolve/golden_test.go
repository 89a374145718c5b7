package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
	"weir/pf/diag"
	"weir/pf/printer"
	"weir/pf/resolve"
	"weir/pf/source"
)

// testHost returns the machine for the files in testdata.
func testHost(t testing.TB) *resolve.Host {
	t.Helper()
	host, err := resolve.ReadHost("testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// check returns what weir check prints: rules on standard output, faults on standard
// error.
func check(t testing.TB, src string, host *resolve.Host, beside ...source.Beside) (out, faults string, ok bool) {
	t.Helper()
	settings := resolve.Settings{Files: source.Disk{}}
	for i := range beside {
		settings.Files, settings.Macros = beside[i].Files, beside[i].Macros
	}
	rules, list := resolve.LoadWith("in", []byte(src), host, settings)
	if (rules != nil) == list.HasErrors() {
		t.Fatalf("a ruleset must come without errors, and errors without one:\n%s", render(t, &list))
	}
	faults = render(t, &list)
	if rules == nil {
		return "", faults, false
	}
	var b strings.Builder
	if err := printer.Fprint(&b, rules.Source); err != nil {
		t.Fatal(err)
	}
	return b.String(), faults, true
}

func render(t testing.TB, list *diag.List) string {
	t.Helper()
	var b strings.Builder
	if err := list.Fprint(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden checks the files in testdata as pfctl's own suite does. "in" prints "out"
// (pf), the output prints itself (selfpf), and rejections and warnings are "err", carets
// included (pfail).
func TestGolden(t *testing.T) {
	testenv.EachGolden(t, "testdata/*.txtar", func(t *testing.T, g *testenv.Golden) {
		host := testHost(t)
		files := beside(t, g)
		out, faults, ok := check(t, g.Section("in"), host, files)
		g.Check(t, "out", out)
		g.Check(t, "err", faults)
		if ok {
			printsItself(t, out, host, files)
		}
	})
}

// beside returns the macros in the section "-D", one for each line, and the other
// sections as files.
func beside(t *testing.T, g *testenv.Golden) source.Beside {
	t.Helper()
	b := source.Beside{Files: source.Files{}}
	for _, f := range g.Files {
		b.Files[f.Name] = source.File{Text: string(f.Data)}
	}
	for line := range strings.Lines(g.Section("-D")) {
		m, err := source.ParseMacro(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		b.Macros = append(b.Macros, m)
	}
	return b
}

func printsItself(t testing.TB, out string, host *resolve.Host, beside ...source.Beside) {
	t.Helper()
	again, faults, ok := check(t, out, host, beside...)
	if !ok {
		t.Fatalf("what was printed is refused:\n%s\n%s", out, faults)
	}
	if diff := cmp.Diff(out, again); diff != "" {
		t.Fatalf("what was printed does not print itself (-first +second):\n%s", diff)
	}
}
