package undolog

import (
	"errors"
	"fmt"
	"os"

	"weir/internal/host/filelock"
)

// Lock keeps a second process of a command out until unlock is called. It waits for the
// first one, or fails. Nobody but root can open the file at path, so that
// nobody else can hold the lock: a trial that cannot get it could not be put back.
func Lock(path, of string, wait bool) (unlock func(), err error) {
	mode := filelock.Try
	if wait {
		mode = filelock.Wait
	}
	file, err := filelock.File(path, mode)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another %s is at work on this host", of)
	}
	if err != nil {
		return nil, fmt.Errorf("keep a second %s out: %w", of, err)
	}
	return func() {
		os.Remove(path)
		file.Close()
	}, nil
}
