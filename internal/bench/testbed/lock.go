package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"weir/internal/host/filelock"
)

// errRunning says that another benchmark is measuring.
var errRunning = errors.New("another benchmark is running on this machine")

// lock makes the benchmark's folder and ensures that only one benchmark uses it.
// Unlocking removes the folder, unless it notes settings of the machine that were not
// restored, or labs that were not removed. The next run does that.
func lock(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the benchmark's folder: %w", err)
	}
	name := filepath.Join(dir, "lock")
	f, err := filelock.File(name, filelock.Try)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, running(name)
	}
	if err != nil {
		return nil, err
	}
	if err := sign(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return func() error { return errors.Join(removeUnlessNoted(dir), f.Close()) }, nil
}

// sign writes into the lock who holds it.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

// running returns an error that names the running benchmark, as far as the lock does.
func running(lock string) error {
	text, err := os.ReadFile(lock)
	if err != nil {
		return errRunning
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return errRunning // it has only just started
	}
	return fmt.Errorf("%w: process %d", errRunning, pid)
}

func removeUnlessNoted(dir string) error {
	_, err := os.Stat(conntrackNote(dir).Path)
	switch {
	case err == nil:
		return nil // whoever failed to restore it has reported it
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for settings to restore: %w", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, besideFolder+"*")); err != nil || len(left) > 0 {
		return err // labs that could not be removed
	}
	return os.RemoveAll(dir)
}
