package netif

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Sysfs opens a /sys that shows this process's network namespace. The mounted /sys shows
// the namespace in which it was mounted. The new one is mounted nowhere and ends with the
// descriptor, which the caller closes. folder is the descriptor's path in /proc.
func Sysfs() (fd int, folder string, err error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, "", fmt.Errorf("open a sysfs of the network namespace: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, "", fmt.Errorf("make a sysfs of the network namespace: %w", err)
	}
	fd, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, "", fmt.Errorf("mount a sysfs of the network namespace: %w", err)
	}
	return fd, fmt.Sprintf("/proc/self/fd/%d", fd), nil
}
