package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Host is the machine, or a tree recorded of one, that is planned for and changed.
type Host struct {
	// Root is the folder that stands for "/"; "" is the machine itself, in the
	// network namespace of the process.
	Root string
}

// path is a path below the root.
func (h *Host) path(elem ...string) string {
	root := h.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(append([]string{root}, elem...)...)
}

// sysctlPath is where a sysctl lies: net.ipv4.ip_forward in net/ipv4/ip_forward.
func (h *Host) sysctlPath(key string) string {
	return h.path("proc/sys", strings.ReplaceAll(key, ".", "/"))
}

// Read is the value of a sysctl as the kernel writes it, without its line end. The
// error of a sysctl that is not there is fs.ErrNotExist.
func (h *Host) Read(key string) (string, error) {
	text, err := os.ReadFile(h.sysctlPath(key))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", key, unwrapPath(err))
	}
	return strings.TrimRight(string(text), "\n"), nil
}

// write sets a sysctl and reads it back.
func (h *Host) write(key, value string) error {
	file, err := os.OpenFile(h.sysctlPath(key), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("set %s: %w", key, unwrapPath(err))
	}
	_, err = file.WriteString(value + "\n")
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("set %s to %q: %w", key, value, unwrapPath(err))
	}
	now, err := h.Read(key)
	if err != nil {
		return err
	}
	if !same(now, value) {
		return fmt.Errorf("set %s to %q: the kernel made %q of it", key, value, now)
	}
	return nil
}

// unwrapPath takes the path out of an error that names the key already.
func unwrapPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// same compares values as the kernel does: by their fields.
func same(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

// whole reports whether host-wide settings are in reach: the machine's own network
// namespace, or a recorded tree. Other namespaces show no net.core.netdev_budget,
// and what they show of host-wide values is not theirs to set.
func (h *Host) whole() bool {
	if h.Root != "" {
		return true
	}
	_, err := os.Stat(h.sysctlPath("net.core.netdev_budget"))
	return err == nil
}
