package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
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

// Ksoftirqd returns the process ids of the threads ksoftirqd by core. There are as many as cores
// are on; they begin early, and so have low numbers.
func Ksoftirqd(root string, cores int) (map[int]int, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("find ksoftirqd: %w", err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	found := map[int]int{}
	for _, pid := range pids {
		name, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "comm"))
		if err != nil {
			continue // it has ended
		}
		core, known := strings.CutPrefix(strings.TrimSpace(string(name)), "ksoftirqd/")
		if n, err := strconv.Atoi(core); known && err == nil {
			found[n] = pid
		}
		if len(found) == cores {
			break
		}
	}
	return found, nil
}

// Waits returns how often a thread got a core, and how long it was runnable before.
func Waits(root string, pid int) (nanoseconds, turns uint64, err error) {
	fs, err := procfs.NewFS(root)
	if err != nil {
		return 0, 0, err
	}
	p, err := fs.Proc(pid)
	if err != nil {
		return 0, 0, fmt.Errorf("read the waits of process %d: %w", pid, err)
	}
	s, err := p.Schedstat()
	if err != nil {
		return 0, 0, fmt.Errorf("read the waits of process %d: %w", pid, err)
	}
	return s.WaitingNanoseconds, s.RunTimeslices, nil
}
