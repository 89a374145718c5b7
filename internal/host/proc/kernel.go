package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoKernelThreads is returned where the kernel's threads are not seen.
var ErrNoKernelThreads = errors.New("this is a PID namespace, where the kernel's threads are not seen (a container: run it with the host's PID namespace, --pid=host)")

// KernelThreads returns [ErrNoKernelThreads] if the kernel's threads are not below root,
// a mounted /proc. Outside PID namespaces, process 2 is the parent of them all.
func KernelThreads(root string) error {
	name, err := os.ReadFile(filepath.Join(root, "2", "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "kthreadd" {
		return ErrNoKernelThreads
	}
	return nil
}
