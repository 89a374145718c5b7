package bpfload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrMounts is returned (wrapped) if the process cannot join the mounts of process 1.
// Pins in the mount namespace of `ip netns exec` are invisible to others and end with the
// process, and so do the programs.
var ErrMounts = errors.New("these mounts are private, and what is pinned in them dies with the process: use --netns NAME instead of ip netns exec")

// A Place is where BPF objects are pinned and attached: a network namespace, with the
// mounts of process 1.
type Place struct {
	netns string
}

// At returns the place of the network namespace with this file ("/run/netns/NAME",
// "/proc/PID/ns/net"). "" is the namespace of the calling thread.
func At(netns string) Place { return Place{netns: netns} }

// Do calls f in the place. f must not leave work for the place to other goroutines. To
// join another namespace, Do runs f on a new thread, which ends with f.
func (p Place) Do(f func() error) error {
	private, err := mountsPrivate()
	if err != nil {
		return err
	}
	if p.netns == "" && !private {
		return f()
	}
	if p.netns == "" {
		// Other threads of this process may be in other network namespaces.
		p.netns = "/proc/thread-self/ns/net"
	}
	netns, err := os.Open(p.netns)
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer netns.Close()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: no other goroutine may use the thread
		done <- enter(netns, private, f)
	}()
	return <-done
}

// From returns what f returns in the place p. The rules of [Place.Do] hold.
func From[T any](p Place, f func() (T, error)) (value T, err error) {
	err = p.Do(func() (err error) {
		value, err = f()
		return err
	})
	return value, err
}

func enter(netns *os.File, private bool, f func() error) error {
	if private {
		if err := joinMounts(); err != nil {
			return err
		}
	}
	if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("join network namespace %s: %w", netns.Name(), err)
	}
	return f()
}

// mountsPrivate reports whether this process has other mounts than process 1.
func mountsPrivate() (bool, error) {
	own, err := os.Readlink("/proc/thread-self/ns/mnt")
	if err != nil {
		return false, fmt.Errorf("find the mount namespace: %w", err)
	}
	first, err := os.Readlink("/proc/1/ns/mnt")
	if errors.Is(err, fs.ErrPermission) {
		return mountsApart()
	}
	if err != nil {
		return false, fmt.Errorf("find the mount namespace of process 1: %w", err)
	}
	return own != first, nil
}

// mountsApart finds the same if the mount namespace of process 1 is not readable. Mount
// ids differ between namespaces, and this process sees at least its own /proc. Roots
// prove nothing: the root of a chroot is no mount.
func mountsApart() (bool, error) {
	seen := make(map[string]int)
	for _, file := range []string{"/proc/1/mountinfo", "/proc/thread-self/mountinfo"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("find the mounts of process 1: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			// id, parent's id, device, root, mount point (proc_pid_mountinfo(5))
			id, _, _ := strings.Cut(line, " ")
			if seen[id]++; seen[id] == 2 {
				return false, nil
			}
		}
	}
	return true, nil
}

func joinMounts() error {
	mounts, err := os.Open("/proc/1/ns/mnt")
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrMounts, err)
	}
	defer mounts.Close()
	// A thread that shares its root and working directory may not join.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("part from the other threads' working directory: %w", err)
	}
	if err := unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("%w (%w)", ErrMounts, err)
	}
	return nil
}
