package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// NoSkip is the environment variable that turns skips into failures, except those of
// [SkipOutside].
const NoSkip = "WEIR_TEST_NO_SKIP"

// Skip skips the test with a reason, or fails it if [NoSkip] is set.
func Skip(tb testing.TB, format string, args ...any) {
	tb.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(NoSkip) != "" {
		tb.Fatalf("may not be skipped here (%s is set): %s", NoSkip, reason)
	}
	tb.Skip(reason)
}

// SkipOutside skips the test even if [NoSkip] is set. It is for needs that no set-up can
// meet: another architecture, files outside the project.
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

// NeedKernelThreads skips the test in a PID namespace, where the kernel's threads are not
// seen.
func NeedKernelThreads(tb testing.TB) {
	tb.Helper()
	name, err := os.ReadFile("/proc/2/comm")
	if err != nil || strings.TrimSpace(string(name)) != "kthreadd" {
		Skip(tb, "a PID namespace: the kernel's threads are not seen here")
	}
}

// NeedProgram returns the path of a program, or skips the test if it is not installed.
func NeedProgram(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(tb, "needs the program %s", name)
	}
	return path
}

// Root returns the root of the checkout: the nearest parent folder with a go.mod.
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

// Shared returns a path below the folder "shared" beside the checkout, or skips the test.
// The folder holds collected rule files that we may not publish.
func Shared(tb testing.TB, elem ...string) string {
	tb.Helper()
	path := filepath.Join(append([]string{filepath.Dir(Root(tb)), "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		SkipOutside(tb, "needs %s, which is not part of the project", filepath.Join(append([]string{"../shared"}, elem...)...))
	}
	return path
}
