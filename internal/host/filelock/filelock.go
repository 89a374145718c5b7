package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned, wrapped, if another process has the lock.
var ErrHeld = errors.New("another process holds the lock")

// Mode says what to do if another process has the lock.
type Mode int

// Modes of locking.
const (
	Wait Mode = unix.LOCK_EX
	Try  Mode = unix.LOCK_EX | unix.LOCK_NB // fail with ErrHeld
)

// File locks a file until the returned file is closed. It creates the file if necessary,
// for its owner only: who cannot open it cannot hold the lock. It does not follow
// symbolic links.
func File(path string, mode Mode) (*os.File, error) {
	for {
		file, err := locked(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, mode)
		// If the last owner removed the file, this lock is on nothing. If its
		// directory was removed too, opening the file again returns that error.
		if err == nil || !errors.Is(err, errReplaced) {
			return file, err
		}
	}
}

// Folder locks a directory until the returned file is closed. If the directory does not
// exist, or was removed before it could be locked, the error is fs.ErrNotExist.
func Folder(path string, mode Mode) (*os.File, error) {
	return locked(path, os.O_RDONLY|unix.O_DIRECTORY, mode)
}

// Unlock unlocks a file or directory, also for processes that have inherited it. To close it would leave the lock to them.
func Unlock(file *os.File) error {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_UN); err != nil {
		return fmt.Errorf("unlock %s: %w", file.Name(), err)
	}
	return nil
}

// errReplaced is the error for a path that names another file, or none, by the time of
// the lock.
var errReplaced = fmt.Errorf("it was removed meanwhile: %w", fs.ErrNotExist)

func locked(path string, flags int, mode Mode) (*os.File, error) {
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock: %w", err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), int(mode))
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrHeld
	case err == nil && !isAt(file, path):
		err = errReplaced
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}

// isAt reports whether a path names an open file.
func isAt(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(open, named)
}
