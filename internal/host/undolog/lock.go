package undolog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Lock keeps a second process of a command out until unlock is called. It waits for the
// first one, or fails. Nobody but root can open the file at path, so that
// nobody else can hold the lock: a trial that cannot get it could not be put back.
func Lock(path, of string, wait bool) (unlock func(), err error) {
	for {
		file, err := lockFile(path, of, wait)
		if err != nil {
			return nil, err
		}
		// Who had it before has removed the file: then it was a lock on nothing.
		if there, err := isAt(file, path); err != nil || !there {
			file.Close()
			if err != nil {
				return nil, fmt.Errorf("lock %s: %w", path, err)
			}
			continue
		}
		return func() {
			os.Remove(path) //nolint:errcheck // who comes next takes it as it is
			file.Close()
		}, nil
	}
}

// lockFile opens and locks a file, which is made if need be.
func lockFile(path, of string, wait bool) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep a second %s out: %w", of, err)
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), how)
	}
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another %s is at work on this host", of)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// isAt reports whether an open file is still the one at a path.
func isAt(file *os.File, path string) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(open, now), err
}
