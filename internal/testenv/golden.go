package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Update is the environment variable that rewrites golden files instead of comparing:
// WEIR_TEST_UPDATE=1 go test ./pf/...
const Update = "WEIR_TEST_UPDATE"

// Updating reports whether golden files are rewritten.
func Updating() bool { return os.Getenv(Update) != "" }

// GoldenFile compares a result with a whole file.
func GoldenFile(t *testing.T, file string, got []byte) {
	t.Helper()
	if Updating() {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; %s=1 writes it anew):\n%s", file, Update, diff)
	}
}

// A Golden is a txtar file with sections for input and for expected output.
type Golden struct {
	*txtar.Archive
}

// EachGolden calls test with each golden file that matches the pattern, as a subtest.
// There must be at least one.
func EachGolden(t *testing.T, pattern string, test func(t *testing.T, g *Golden)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			g := ReadGolden(t, file)
			test(t, g)
			if !Updating() || t.Failed() {
				return
			}
			if err := os.WriteFile(file, txtar.Format(g.Archive), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// ReadGolden reads a golden file.
func ReadGolden(tb testing.TB, file string) *Golden {
	tb.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return &Golden{archive}
}

// Section is the text of a section, "" if there is none.
func (g *Golden) Section(name string) string {
	for _, f := range g.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// Check compares a result with a section. An empty result has no section.
func (g *Golden) Check(t *testing.T, name, got string) {
	t.Helper()
	if Updating() {
		g.replace(name, got)
		return
	}
	if diff := cmp.Diff(g.Section(name), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// replace puts a section at the end, and removes an old one of its name.
func (g *Golden) replace(name, text string) {
	var files []txtar.File
	for _, f := range g.Files {
		if f.Name != name {
			files = append(files, f)
		}
	}
	if text != "" {
		files = append(files, txtar.File{Name: name, Data: []byte(text)})
	}
	g.Files = files
}
