package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// etcNetns holds files that ip netns exec mounts over those in /etc.
const etcNetns = "/etc/netns"

// Start starts cmd in the network namespace of a host. It sees the machine's mounts, like
// every program that ip netns exec did not start.
func (l *Lab) Start(host string, cmd *exec.Cmd) error {
	if err := l.Do(host, cmd.Start); err != nil {
		return fmt.Errorf("start %s in %s: %w", filepath.Base(cmd.Path), l.Namespace(host), err)
	}
	return nil
}

// Run runs a program in the network namespace of a host and returns its standard output.
// If it fails, the error holds the end of its standard error.
func (l *Lab) Run(ctx context.Context, host, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := l.Start(host, cmd); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return stdout.Bytes(), fmt.Errorf("%s in %s: %w%s", strings.Join(append([]string{program}, args...), " "),
			l.Namespace(host), err, lastLines(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// Exec replaces the process with a program in a host of the lab. /sys and /etc are those
// of the namespace, as with ip netns exec. The mounts follow those of process 1. Exec
// returns only if it fails.
func (l *Lab) Exec(host string, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	ns, err := l.open(host)
	if err != nil {
		return err
	}
	return spoilThread(func() error {
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", l.Namespace(host), err)
		}
		if err := showNamespace(l.Namespace(host)); err != nil {
			return err
		}
		return fmt.Errorf("run %s: %w", path, unix.Exec(path, argv, os.Environ()))
	})
}

// showNamespace gives the thread its own mounts, in which /sys and /etc belong to its
// network namespace. Mounts that others make later are still visible.
func showNamespace(name string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("part from the machine's mounts: %w", err)
	}
	err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // in a chroot, / is no mount, but /sys is
		err = unix.Mount("", "/sys", "", unix.MS_SLAVE|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("follow the machine's mounts: %w", err)
	}
	if err := remountSys(name); err != nil {
		return err
	}
	return bindEtc(filepath.Join(etcNetns, name))
}

// remountSys mounts the namespace's sysfs over /sys. Mounts below /sys (bpffs, cgroups,
// tracing) do not depend on the namespace and stay.
func remountSys(name string) error {
	below := []string{"/sys/fs", "/sys/kernel"}
	trees := make([]int, len(below))
	for i, path := range below {
		tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("keep the mounts below %s: %w", path, err)
		}
		defer unix.Close(tree)
		trees[i] = tree
	}
	if err := unix.Mount(name, "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount the namespace's /sys: %w", err)
	}
	for i, path := range below {
		if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("put back the mounts below %s: %w", path, err)
		}
	}
	return nil
}

// bindEtc mounts the files of dir (resolv.conf) over those of /etc.
func bindEtc(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the namespace's /etc: %w", err)
	}
	for _, e := range entries {
		from, to := filepath.Join(dir, e.Name()), filepath.Join("/etc", e.Name())
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("put %s over %s: %w", from, to, err)
		}
	}
	return nil
}

// lastLines returns the last lines of a program's messages, for an error's text.
func lastLines(s string) string {
	const most = 5
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	lines := strings.Split(s, "\n")
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return ": " + strings.Join(lines, "\n")
}
