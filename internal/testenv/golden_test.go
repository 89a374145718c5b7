package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"weir/internal/testenv"
)

// With Updating, a different result is written behind the input. Afterwards it no longer
// differs.
func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "case.txtar")
	const before = "said\n-- out --\nold\n-- in --\na\n-- err --\ngone\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, g *testenv.Golden) {
		t.Helper()
		g.Check(t, "out", "new "+g.Section("in"))
		g.Check(t, "err", g.Section("none"))
	}
	t.Setenv(testenv.Update, "1")
	testenv.EachGolden(t, file, check)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "said\n-- in --\na\n-- out --\nnew a\n"; string(text) != want {
		t.Errorf("written: %q, want %q", text, want)
	}
	t.Setenv(testenv.Update, "")
	testenv.EachGolden(t, file, check)
}

// A difference is a failure.
func TestGoldenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "case.txtar")
	if err := os.WriteFile(file, []byte("-- out --\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(testenv.Update, "")
	testenv.EachGolden(t, file, func(t *testing.T, g *testenv.Golden) {
		var differs testing.T
		g.Check(&differs, "out", "new\n")
		if !differs.Failed() {
			t.Error("a difference passes")
		}
	})
}

// TestGoldenFile checks that GoldenFile writes with Updating, and compares otherwise.
func TestGoldenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder", "file")
	t.Setenv(testenv.Update, "1")
	testenv.GoldenFile(t, file, []byte("one\n"))
	t.Setenv(testenv.Update, "")
	testenv.GoldenFile(t, file, []byte("one\n"))
	if text, err := os.ReadFile(file); err != nil || string(text) != "one\n" {
		t.Errorf("written: %q, %v", text, err)
	}
	other := new(testing.T)
	if testenv.GoldenFile(other, file, []byte("two\n")); !other.Failed() {
		t.Error("another text was taken")
	}
}
