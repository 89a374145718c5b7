package proc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestKernelThreads tells the machine's own processes from a container's.
func TestKernelThreads(t *testing.T) {
	for name, want := range map[string]error{"kthreadd\n": nil, "sh\n": ErrNoKernelThreads, "": ErrNoKernelThreads} {
		root := t.TempDir()
		if name != "" {
			if err := os.MkdirAll(filepath.Join(root, "2"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "2", "comm"), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := KernelThreads(root); !errors.Is(err, want) {
			t.Errorf("process 2 is %q: %v, want %v", name, err, want)
		}
	}
}
