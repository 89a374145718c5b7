package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/filelock"
	"weir/internal/killpoint"
)

// All namespaces share the folder of run folders and the bpffs. The first start makes
// them. They go with the last run folder. The lock of rundir.Root serialises starts and
// ends: two mounts at once would hide one bpffs under the other.

// shareRoot makes what all namespaces share and calls f, which makes a run folder. After
// that nobody removes the shared parts.
func shareRoot(f func() error) error {
	if err := killpoint.MkdirAll(rundir.Root); err != nil {
		return fmt.Errorf("make the folder of run folders: %w", err)
	}
	root, err := lockRoot()
	if errors.Is(err, fs.ErrNotExist) { // another process has just removed it
		return shareRoot(f)
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := f(); err != nil {
		return err
	}
	return dataplane.Mount()
}

// releaseRoot removes what all namespaces share if no run folder is left.
func releaseRoot() error {
	root, err := lockRoot()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := os.ReadDir(rundir.Root)
	if err != nil {
		return fmt.Errorf("look for run folders: %w", err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(dataplane.Base) {
			return nil
		}
	}
	if err := dataplane.Unmount(); err != nil {
		return err
	}
	if err := killpoint.Remove(rundir.Root); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("remove the folder of run folders: %w", err)
	}
	return nil
}

// lockRoot takes the lock of rundir.Root until the file is closed. The error wraps
// fs.ErrNotExist if the folder does not exist or was just removed.
func lockRoot() (*os.File, error) { return filelock.Folder(rundir.Root, filelock.Wait) }
