package killpoint

import (
	"os"
	"path/filepath"
	"testing"
)

// Steps count from 1. Without a list nothing is noted.
func TestNote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps")
	if last, err := note(path, "a"); last || err != nil {
		t.Fatalf("without a list: %v, %v", last, err)
	}
	if err := os.WriteFile(path, []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false} {
		if last, err := note(path, "a step"); last != want || err != nil {
			t.Errorf("step %d: %v, %v; want %v", i+1, last, err, want)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "2\na step\na step\na step\n" {
		t.Errorf("the list is %q", got)
	}
	if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := note(path, "a"); err == nil {
		t.Error("a list without a number is taken")
	}
}
