package bench

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/lab"
)

// strayPatience is how long a killed process may take to go.
const strayPatience = 5 * time.Second

// Lock keeps other benchmarks from measuring this machine at the same time, and
// removes what a killed one left: its processes, its namespaces, its settings.
// It is for benchmarks without a lab; [OpenStage] has its own. It needs root.
func Lock() (unlock func() error, err error) {
	if unix.Geteuid() != 0 {
		return nil, &missingError{"to keep other benchmarks away needs root"}
	}
	s, err := newSetting(&Options{name: defaultName})
	if err != nil {
		return nil, err
	}
	if unlock, err = lock(s.dir); err != nil {
		return nil, err
	}
	err = s.cleanUp()
	if err == nil {
		_, err = lab.Remove(s.options.name, everyHost())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remove what an earlier run left in %s: %w", filepath.Clean(s.dir), err), unlock())
	}
	return unlock, nil
}

// endStrays kills what still runs in the benchmark's namespaces: programs that a
// killed run has started. Nobody else has a reason to be there.
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
