package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// RuleFiles returns rule files to fuzz from: golden files of the language, lines of its
// lists of rules, the examples, and the collected cases if they are there.
func RuleFiles(tb testing.TB) [][]byte {
	tb.Helper()
	root := Root(tb)
	var texts [][]byte
	each := func(pattern string, use func(name string, data []byte)) {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				tb.Fatal(err)
			}
			use(name, data)
		}
	}
	whole := func(_ string, data []byte) { texts = append(texts, data) }
	each("pf/resolve/testdata/*.txtar", func(name string, data []byte) {
		if archive := txtar.Parse(data); len(archive.Files) > 0 {
			texts = append(texts, archive.Files[0].Data)
		} else {
			tb.Fatalf("%s holds no file", name)
		}
	})
	each("pf/resolve/testdata/rules/*.rules", func(_ string, data []byte) {
		for line := range strings.Lines(string(data)) {
			source, _, _ := strings.Cut(line, ";")
			texts = append(texts, []byte(source))
		}
	})
	each("examples/*.conf", whole)
	each("../shared/pf-cases/*/*.in", whole)
	each("../shared/pf-cases/pfsense/rules.debug", whole)
	return texts
}
