package bench

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// errRunning says that the machine is being measured already.
var errRunning = errors.New("another benchmark is running on this machine")

// lock makes the benchmark's folder and makes sure that only one benchmark uses
// it. Unlocking removes the folder with all that is in it, but not where settings
// of the machine are noted there that were not restored: the next run does that.
func lock(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the benchmark's folder: %w", err)
	}
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && !sameFile(f, name) {
		err = unix.EWOULDBLOCK // another one removed it meanwhile, and may have made a new one
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, errors.Join(running(f), f.Close())
	case err == nil:
		err = sign(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return func() error { return errors.Join(removeUnlessNoted(dir), f.Close()) }, nil
}

// sign says in the lock who holds it.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

// running says who measures the machine, as far as the lock does.
func running(f *os.File) error {
	const longest = 20
	b, err := io.ReadAll(io.LimitReader(f, longest))
	if err != nil {
		return errRunning
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		return errRunning // it has only just begun
	}
	return fmt.Errorf("%w: process %d", errRunning, pid)
}

func removeUnlessNoted(dir string) error {
	_, err := os.Stat(conntrackNote(dir))
	switch {
	case err == nil:
		return nil // whoever could not restore it has said so
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for settings to restore: %w", err)
	}
	return os.RemoveAll(dir)
}

func sameFile(f *os.File, name string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(open, named)
}
