package tree_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// maxLines is the longest a C file may be; the linter has the same limit for Go.
const maxLines = 600

// TestPackageDocs asks for doc.go of every package but commands and those of a
// single file, which have their comment in main.go or in that file; that there
// is a comment is the linter's business.
func TestPackageDocs(t *testing.T) {
	root := testenv.Root(t)
	files := make(map[string]int)
	walk(t, root, ".go", func(path string, _ []byte) {
		if !strings.HasSuffix(path, "_test.go") {
			files[filepath.Dir(path)]++
		}
	})
	for folder, n := range files {
		if n == 1 || exists(filepath.Join(folder, "main.go")) {
			continue
		}
		if !exists(filepath.Join(folder, "doc.go")) {
			t.Errorf("%s has no doc.go", relative(t, root, folder))
		}
	}
}

func TestSourceLength(t *testing.T) {
	root := testenv.Root(t)
	for _, suffix := range []string{".h", ".c"} {
		walk(t, filepath.Join(root, "bpf"), suffix, func(path string, text []byte) {
			if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
				t.Errorf("%s has %d lines, more than %d", relative(t, root, path), lines, maxLines)
			}
		})
	}
}

// TestBPFIsGenerated checks that a go:generate names each BPF program: "make generate" is what
// compiles them with warnings as errors.
func TestBPFIsGenerated(t *testing.T) {
	root := testenv.Root(t)
	generated := make(map[string]bool)
	walk(t, root, ".go", func(path string, text []byte) {
		for line := range bytes.Lines(text) {
			if source := bytes.TrimSpace(line[bytes.LastIndexByte(line, ' ')+1:]); bytes.HasPrefix(line, []byte("//go:generate go tool bpf2go ")) {
				generated[filepath.Join(filepath.Dir(path), string(source))] = true
			}
		}
	})
	walk(t, root, ".bpf.c", func(path string, _ []byte) {
		if !generated[path] {
			t.Errorf("no go:generate compiles %s", relative(t, root, path))
		}
	})
	if len(generated) < 10 {
		t.Errorf("only %d programs are generated", len(generated))
	}
}

// walk calls f for every file with the suffix, but for vendored, hidden and
// test data.
func walk(t *testing.T, root, suffix string, f func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || path == filepath.Join(root, "include")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, suffix) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f(path, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func relative(t *testing.T, root, path string) string {
	t.Helper()
	name, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	return name
}
