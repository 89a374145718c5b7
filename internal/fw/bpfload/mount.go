package bpfload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"weir/internal/killpoint"
)

// MountFS mounts a bpffs at dir, unless there is one. It makes dir if it is missing. It
// is called within a Place.
func MountFS(dir string) error {
	if err := killpoint.MkdirAll(dir); err != nil {
		return fmt.Errorf("make the bpffs folder: %w", err)
	}
	is, err := isFS(dir)
	if err != nil || is {
		return err
	}
	if err := unix.Mount("weir", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpffs at %s: %w", dir, err)
	}
	killpoint.Done("mount %s", dir)
	return nil
}

// UnmountFS unmounts a bpffs and removes its mount point, unless it contains folders or
// another process has its files open. It is not an error if there is none. It is called
// within a Place.
func UnmountFS(dir string) error {
	// Two mounts at once, by processes without the lock, are one above the other.
	for {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look into the bpffs: %w", err)
		}
		// The kernel puts files of its own there, but no folders.
		if slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
			return nil
		}
		is, err := isFS(dir)
		if err != nil {
			return err
		}
		if !is {
			break
		}
		if err := unix.Unmount(dir, 0); errors.Is(err, unix.EBUSY) {
			return nil
		} else if err != nil {
			return fmt.Errorf("unmount the bpffs at %s: %w", dir, err)
		}
		killpoint.Done("unmount %s", dir)
	}
	if err := killpoint.Remove(dir); err != nil {
		return fmt.Errorf("remove the folder of the bpffs: %w", err)
	}
	return nil
}

func isFS(dir string) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false, fmt.Errorf("ask for the file system of %s: %w", dir, err)
	}
	return s.Type == unix.BPF_FS_MAGIC, nil
}
