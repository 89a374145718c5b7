package bpfload

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MountFS mounts a bpffs at dir, which is made if missing, unless one is there.
// It is called within a Place.
func MountFS(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the bpffs folder: %w", err)
	}
	is, err := isFS(dir)
	if err != nil || is {
		return err
	}
	if err := unix.Mount("weir", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpffs at %s: %w", dir, err)
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
