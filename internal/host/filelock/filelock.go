package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned, wrapped, where another process has the lock.
var ErrHeld = errors.New("another process holds the lock")

// Mode says what is done where another process has the lock.
type Mode int

// The modes.
const (
	Wait Mode = unix.LOCK_EX
	Try  Mode = unix.LOCK_EX | unix.LOCK_NB // fail with ErrHeld
)

// File locks a file until what is returned is closed. It makes the file if need be, for
// its owner alone: who cannot open it cannot hold the lock. A symbolic link is not
// followed.
func File(path string, mode Mode) (*os.File, error) {
	for {
		file, err := locked(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, mode)
		// A file that its last owner has removed was a lock on nothing. Where its
		// folder went with it, opening it again says so.
		if err == nil || !errors.Is(err, errReplaced) {
			return file, err
		}
	}
}

// Folder locks a folder until what is returned is closed. The error of a folder that is
// not there, or that was removed before the lock was had, is fs.ErrNotExist.
func Folder(path string, mode Mode) (*os.File, error) {
	return locked(path, os.O_RDONLY|unix.O_DIRECTORY, mode)
}

// errReplaced is of a path that another file stands at by the time of the lock, or none.
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
