package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Processes returns the processes in the namespaces of a lab, complete or not, without
// the caller. Some may have ended.
func Processes(name string, topology Topology) ([]int, error) {
	l, err := newLab(name, topology)
	if err != nil {
		return nil, err
	}
	namespaces := map[uint64]bool{}
	for _, h := range l.topology.Hosts {
		ns, err := l.open(h.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var stat unix.Stat_t
		err = unix.Fstat(int(ns), &stat)
		ns.Close()
		if err != nil {
			return nil, fmt.Errorf("look at network namespace %s: %w", l.Namespace(h.Name), err)
		}
		namespaces[stat.Ino] = true
	}
	return processesIn(namespaces)
}

func processesIn(namespaces map[uint64]bool) ([]int, error) {
	if len(namespaces) == 0 {
		return nil, nil
	}
	files, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var found []int
	for _, file := range files {
		var stat unix.Stat_t
		if unix.Stat(file, &stat) != nil || !namespaces[stat.Ino] {
			continue // ended, a kernel thread, or in another namespace
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(file))))
		if err != nil {
			return nil, fmt.Errorf("list the processes: %w", err)
		}
		if pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found, nil
}
