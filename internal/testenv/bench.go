package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BuildWeir builds this tree's weir and returns the path of the program. If WEIR_BINARY
// names a weir, as in make test, it returns that one.
func BuildWeir(tb testing.TB) string {
	tb.Helper()
	if program := os.Getenv("WEIR_BINARY"); program != "" {
		return program
	}
	program := filepath.Join(tb.TempDir(), "weir")
	if out, err := exec.Command("go", "build", "-o", program, "weir/cmd/weir").CombinedOutput(); err != nil {
		tb.Fatalf("build weir: %v\n%s", err, out)
	}
	return program
}

// NothingLeft fails if the benchmark of that name has left namespaces or its folder
// behind.
func NothingLeft(tb testing.TB, name string) {
	tb.Helper()
	for _, pattern := range []string{"/run/netns/" + name + "-*", "/run/" + name} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			tb.Errorf("left behind: %v %v", left, err)
		}
	}
}
