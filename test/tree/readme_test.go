package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/cli"
	"weir/internal/testenv"
)

// command finds what documents call as commands: `weir word …`.
var command = regexp.MustCompile("`weir ((?:[a-z-]+ ?)+)")

// TestDocumentedCommands finds commands that the documents name and weir has not.
func TestDocumentedCommands(t *testing.T) {
	root := testenv.Root(t)
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/packet-path.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		found := command.FindAllStringSubmatch(string(text), -1)
		for _, match := range found {
			words := strings.Fields(match[1])
			// What weir does not do yet is named, too.
			if strings.Contains(later, " "+words[0]+" ") {
				continue
			}
			got, _, err := cli.Commands().Find(words)
			if err != nil || !got.HasParent() {
				t.Errorf("%s names `weir %s`, which is no command", name, words[0])
			}
		}
		if name == "README.md" && len(found) < 8 {
			t.Errorf("found only %d commands in %s", len(found), name)
		}
	}
}

// later are commands that the documents announce for later.
const later = " top "

// namedTest finds what documents name as a test, with its parts: `TestOne/part`.
var namedTest = regexp.MustCompile("`(Test[A-Za-z0-9]+)(/[a-z0-9/ ]+)?`")

// TestDocumentedTests finds tests that the documents name – as what fails if a limit
// is not what is written – and that are not there.
func TestDocumentedTests(t *testing.T) {
	root := testenv.Root(t)
	var tests strings.Builder
	walk(t, root, "_test.go", func(_ string, text []byte) { tests.Write(text) })
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, name := range documents {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range namedTest.FindAllStringSubmatch(string(text), -1) {
			named++
			if !strings.Contains(tests.String(), "\nfunc "+match[1]+"(") {
				t.Errorf("%s names %s, which is no test", name, match[1])
			}
			for part := range strings.SplitSeq(strings.TrimPrefix(match[2], "/"), "/") {
				if part != "" && !strings.Contains(tests.String(), `"`+part+`"`) {
					t.Errorf("%s names %s%s, and there is no part %q", name, match[1], match[2], part)
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("found only %d tests in the documents", named)
	}
}
