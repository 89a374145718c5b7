package printer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
	"weir/pf/ast"
	"weir/pf/parser"
	"weir/pf/printer"
)

// FuzzPrint checks that printed output parses and prints the same.
func FuzzPrint(f *testing.F) {
	for _, text := range testenv.RuleFiles(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
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
