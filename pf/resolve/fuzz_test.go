package resolve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"weir/pf/ast"
	"weir/pf/parser"
	"weir/pf/printer"
)

// fuzzRules bounds what one input may expand to, so that many are tried.
const fuzzRules = 2000

// FuzzLoad checks that no input makes the language panic, that what it prints
// of an accepted input is accepted and prints itself, and that this holds for
// the file as parsed as well as for the rules that it expands to.
func FuzzLoad(f *testing.F) {
	addSeeds(f)
	host, err := ReadHost("testdata/host.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		parsePrints(t, src)
		rules, list := load("in", src, host, fuzzRules)
		if rendered := list.Fprint(&strings.Builder{}); rendered != nil {
			t.Fatal(rendered)
		}
		list.Records()
		if rules == nil {
			if !list.HasErrors() {
				t.Fatal("refused without an error")
			}
			return
		}
		first := text(t, rules.Source)
		again, list := load("in", []byte(first), host, fuzzRules)
		if again == nil {
			t.Fatalf("%s\nis printed of\n%s\nand refused: %v", first, src, list.Err())
		}
		if diff := cmp.Diff(first, text(t, again.Source)); diff != "" {
			t.Fatalf("what is printed does not print itself (-first +second):\n%s", diff)
		}
	})
}

// parsePrints checks that a file that parses prints as one that does, and
// prints the same.
func parsePrints(t *testing.T, src []byte) {
	file, list := parser.Parse("in", src)
	if list.HasErrors() {
		return
	}
	first := text(t, file)
	again, list := parser.Parse("in", []byte(first))
	if list.HasErrors() {
		t.Fatalf("%s\nis printed of\n%s\nand does not parse: %v", first, src, list.Err())
	}
	if diff := cmp.Diff(first, text(t, again)); diff != "" {
		t.Fatalf("what is printed does not print itself (-first +second):\n%s", diff)
	}
}

func text(t *testing.T, file *ast.File) string {
	t.Helper()
	var b strings.Builder
	if err := printer.Fprint(&b, file); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// addSeeds adds the golden files, the lines of the rules files, the collected
// cases and the example.
func addSeeds(f *testing.F) {
	goldens, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range goldens {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	files, _ := filepath.Glob("testdata/rules/*.rules")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			source, _, _ := strings.Cut(line, ";")
			f.Add([]byte(source))
		}
	}
	cases, _ := filepath.Glob("../../../shared/pf-cases/*/*.in") // where they are
	for _, name := range cases {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	example, err := os.ReadFile("../../examples/gateway.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
}
