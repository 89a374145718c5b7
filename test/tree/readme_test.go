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
var command = regexp.MustCompile("`weir ((?:[a-z]+ ?)+)")

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
const later = " capture tune doctor top "
