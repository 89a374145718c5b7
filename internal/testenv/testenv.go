package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NoSkip is the environment variable that turns every skip into a failure,
// save those that [SkipOutside] makes.
const NoSkip = "WEIR_TEST_NO_SKIP"

// Skip ends the test: skipped because of reason, or failed if [NoSkip] is set.
func Skip(tb testing.TB, format string, args ...any) {
	tb.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(NoSkip) != "" {
		tb.Fatalf("may not be skipped here (%s is set): %s", NoSkip, reason)
	}
	tb.Skip(reason)
}

// SkipOutside skips the test also if [NoSkip] is set. It is for what no set-up
// of the machine can change: another architecture, files that are not part of
// the project.
func SkipOutside(tb testing.TB, format string, args ...any) {
	tb.Helper()
	tb.Skipf(format, args...)
}

// NeedRoot skips the test unless the process is root.
func NeedRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Skip(tb, "needs root")
	}
}

// NeedProgram returns the path of a program and skips the test where it is not
// installed.
func NeedProgram(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(tb, "needs the program %s", name)
	}
	return path
}

// Root returns the root of the checkout: the nearest folder upwards of the
// test's working directory that holds go.mod.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("find the working directory: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("find the root of the checkout: no go.mod in any parent folder")
		}
		dir = parent
	}
}

// Shared returns a path below the folder "shared" beside the checkout, which
// holds collected rule files that are not ours to publish, and skips the test
// where there is none.
func Shared(tb testing.TB, elem ...string) string {
	tb.Helper()
	path := filepath.Join(append([]string{filepath.Dir(Root(tb)), "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		SkipOutside(tb, "needs %s, which is not part of the project", filepath.Join(append([]string{"../shared"}, elem...)...))
	}
	return path
}
