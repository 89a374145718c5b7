package undolog

import (
	"errors"
	"fmt"
	"os"

	"weir/internal/host/filelock"
)

// Lock keeps out a second process of a command until unlock is called. If another process
// has the lock, it waits or fails. Only root can open the file at path, so nobody else
// can hold the lock. Otherwise a trial that cannot get the lock could not be put back.
func Lock(path, of string, wait bool) (unlock func(), err error) {
	mode := filelock.Try
	if wait {
		mode = filelock.Wait
	}
	file, err := filelock.File(path, mode)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another %s is running on this host", of)
	}
	if err != nil {
		return nil, fmt.Errorf("keep a second %s out: %w", of, err)
	}
	return func() {
		os.Remove(path)
		file.Close()
	}, nil
}
