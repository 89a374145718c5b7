package resolve_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"weir/pf/diag"
	"weir/pf/printer"
	"weir/pf/resolve"
	"weir/pf/source"
)

var update = flag.Bool("update", false, "write what comes out to the files of testdata that say what should")

// testHost is the machine that the files in testdata are checked for.
func testHost(t testing.TB) *resolve.Host {
	t.Helper()
	host, err := resolve.ReadHost("testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// check gives what weir check prints: rules to standard output, faults to
// standard error.
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

// TestGolden checks the files in testdata as pfctl's own suite does: what "in"
// prints is "out" (pf), what is printed prints itself (selfpf), and what is
// refused, or warned of, is "err", carets and all (pfail).
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			host := testHost(t)
			files := beside(t, archive)
			out, faults, ok := check(t, section(archive, "in"), host, files)
			if *update {
				rewrite(t, file, archive, out, faults)
				return
			}
			if diff := cmp.Diff(section(archive, "out"), out); diff != "" {
				t.Errorf("out (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(section(archive, "err"), faults); diff != "" {
				t.Errorf("err (-want +got):\n%s", diff)
			}
			if ok {
				printsItself(t, out, host, files)
			}
		})
	}
}

// beside gives the macros in the section "-D", a line each, and the other
// sections as files.
func beside(t *testing.T, a *txtar.Archive) source.Beside {
	t.Helper()
	b := source.Beside{Files: source.Files{}}
	for _, f := range a.Files {
		b.Files[f.Name] = source.File{Text: string(f.Data)}
	}
	for line := range strings.Lines(section(a, "-D")) {
		m, err := source.ParseMacro(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		b.Macros = append(b.Macros, m)
	}
	return b
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func rewrite(t *testing.T, file string, a *txtar.Archive, out, faults string) {
	t.Helper()
	var files []txtar.File
	for _, f := range a.Files {
		if f.Name != "out" && f.Name != "err" {
			files = append(files, f)
		}
	}
	for _, s := range [][2]string{{"out", out}, {"err", faults}} {
		if s[1] != "" {
			files = append(files, txtar.File{Name: s[0], Data: []byte(s[1])})
		}
	}
	if err := os.WriteFile(file, txtar.Format(&txtar.Archive{Comment: a.Comment, Files: files}), 0o644); err != nil {
		t.Fatal(err)
	}
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
