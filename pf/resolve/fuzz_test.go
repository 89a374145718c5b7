package resolve

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
	"weir/pf/ast"
	"weir/pf/printer"
)

// fuzzRules limits the expansion of one input, so that many inputs are tried.
const fuzzRules = 2000

// FuzzLoad checks that no input makes the language panic. What it prints for an accepted
// input is accepted and prints the same, also with names of ports.
func FuzzLoad(f *testing.F) {
	for _, text := range testenv.RuleFiles(f) {
		f.Add(text)
	}
	host, err := ReadHost("testdata/host.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		rules, list := LoadWith("in", src, host, Settings{MaxRules: fuzzRules})
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
		again, list := LoadWith("in", []byte(first), host, Settings{MaxRules: fuzzRules})
		if again == nil {
			t.Fatalf("%s\nis printed of\n%s\nand refused: %v", first, src, list.Err())
		}
		if diff := cmp.Diff(first, text(t, again.Source)); diff != "" {
			t.Fatalf("what is printed does not print itself (-first +second):\n%s", diff)
		}
		NamePorts(again.Source, host)
		named := text(t, again.Source)
		byName, list := LoadWith("in", []byte(named), host, Settings{MaxRules: fuzzRules})
		if byName == nil {
			t.Fatalf("%s\nis printed with names of ports and refused: %v", named, list.Err())
		}
		if diff := cmp.Diff(first, text(t, byName.Source)); diff != "" {
			t.Fatalf("ports by name mean something else (-numbers +names):\n%s", diff)
		}
	})
}

func text(t *testing.T, file *ast.File) string {
	t.Helper()
	var b strings.Builder
	if err := printer.Fprint(&b, file); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
