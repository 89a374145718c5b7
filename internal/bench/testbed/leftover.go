package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/internal/lab"
)

// Files in the benchmark's folder: weir's rules and its PID.
const (
	RulesFile = "gateway.conf"
	PidFile   = "weir.pid"
)

// WeirStop is how long the daemon may take to end after weir stop.
const WeirStop = 10 * time.Second

// strayPatience is how long a killed process may take to end.
const strayPatience = 5 * time.Second

// endStrays kills everything that still runs in the benchmark's namespaces. These are
// programs of a killed run; nothing else belongs there.
func endStrays(name string) error {
	for deadline := time.Now().Add(strayPatience); ; time.Sleep(20 * time.Millisecond) {
		strays, err := lab.Processes(name, everyHost())
		if err != nil {
			return fmt.Errorf("end what an earlier run started: %w", err)
		}
		if len(strays) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end what an earlier run started: processes %v do not end", strays)
		}
		for _, pid := range strays {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("end what an earlier run started: process %d: %w", pid, err)
			}
		}
	}
}

// stopLeftover ends the weir of a killed benchmark and removes what it left in its
// namespace.
func stopLeftover(b *Testbed, netns string) error {
	if err := endLeftover(b.Folder); err != nil {
		return err
	}
	if err := endStrays(b.name); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join("/run/netns", netns)); err != nil {
		return nil
	}
	if exec.Command(b.Program, "info", "--netns", netns).Run() != nil {
		return nil // nothing is loaded there
	}
	out, err := exec.Command(b.Program, "stop", "--netns", netns).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stop the weir of an earlier run: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// endLeftover kills the daemon noted in dir, if the process with that PID still is the
// one that reads its rules there.
func endLeftover(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, PidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the weir of an earlier run: %w", err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		return fmt.Errorf("find the weir of an earlier run: %w", err)
	}
	for deadline := time.Now().Add(WeirStop); isDaemon(pid, dir); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("the weir of an earlier run, process %d, does not end", pid)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the weir of an earlier run: %w", err)
		}
	}
	return nil
}

func isDaemon(pid int, dir string) bool {
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(arguments, []byte(filepath.Join(dir, RulesFile)))
}
