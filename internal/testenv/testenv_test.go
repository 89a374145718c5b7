package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"weir/internal/testenv"
)

// recorder is a testing.TB that records how a test would end.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skip(...any)           { r.skipped = true }
func (r *recorder) Skipf(string, ...any)  { r.skipped = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; panic(r) }

// run calls f as a test that may end by a panic.
func (r *recorder) run(f func(testing.TB)) {
	defer func() { _ = recover() }()
	f(r)
}

func TestSkip(t *testing.T) {
	skip := func(tb testing.TB) { testenv.Skip(tb, "needs %s", "luck") }
	outside := func(tb testing.TB) { testenv.SkipOutside(tb, "needs %s", "another world") }
	program := func(tb testing.TB) { testenv.NeedProgram(tb, "no-such-program") }
	for _, test := range []struct {
		name    string
		noSkip  string
		call    func(testing.TB)
		skipped bool
	}{
		{"skip allowed", "", skip, true},
		{"skip forbidden", "1", skip, false},
		{"outside, skip forbidden", "1", outside, true},
		{"missing program", "", program, true},
		{"missing program, skip forbidden", "1", program, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(testenv.NoSkip, test.noSkip)
			var got recorder
			got.run(test.call)
			if got.skipped != test.skipped || got.failed == test.skipped {
				t.Errorf("skipped %v, failed %v; want skipped %v", got.skipped, got.failed, test.skipped)
			}
		})
	}
}

func TestRoot(t *testing.T) {
	root := testenv.Root(t)
	if _, err := os.Stat(filepath.Join(root, "internal", "testenv", "doc.go")); err != nil {
		t.Errorf("root %s: %v", root, err)
	}
}
