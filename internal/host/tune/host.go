package tune

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/netif"
)

// A Host is the machine, or a recorded tree of one, that is planned for and changed.
type Host struct {
	// Root is the directory that stands for "/". "" is the machine itself, in the
	// process's network namespace.
	Root string
	// Program is the path that the unit runs to set cards and cores at boot. "" is
	// the running program.
	Program string
	// Workers are those of the machine's tunnels; nil: none is in reach.
	Workers Workers

	owner string // command that opened its journal by OpenVolatile; "": weir tune
	sysfs string // directory that stands for /sys; "": the root's
	close func() error
}

// OpenVolatile opens the machine for a command other than weir tune, with a journal and a
// lock of its own. Its settings last until the next boot. Its /sys is that of the
// process's network namespace. The caller closes it.
func OpenVolatile(command string) (*Host, error) {
	fd, folder, err := netif.Sysfs()
	if err != nil {
		return nil, err
	}
	return &Host{owner: command, sysfs: folder, close: func() error { return unix.Close(fd) }}, nil
}

// Close closes what OpenVolatile opened.
func (h *Host) Close() error { return h.close() }

// command returns what people type to change, confirm and revert.
func (h *Host) command() string {
	return cmp.Or(h.owner, "weir tune")
}

// path returns a path below the root.
func (h *Host) path(elem ...string) string {
	path := filepath.Join(elem...)
	if below, isSys := strings.CutPrefix(path, "sys/"); isSys && h.sysfs != "" {
		return filepath.Join(h.sysfs, below)
	}
	if h.Root == "" {
		return filepath.Join("/", path)
	}
	return filepath.Join(h.Root, path)
}

// sysctlPath returns the file of a sysctl: net.ipv4.ip_forward is net/ipv4/ip_forward.
func (h *Host) sysctlPath(key string) string {
	return h.path("proc/sys", strings.ReplaceAll(key, ".", "/"))
}

// Read returns the value of a key as the kernel writes it, without the newline. The key
// is a sysctl, a setting of a card (nic.eth1.queues) or of the cores (cpu.governor), or a
// QueueKey. The error for a missing key is fs.ErrNotExist.
func (h *Host) Read(key string) (string, error) {
	value, err := h.read(key)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", key, err)
	}
	return value, nil
}

func (h *Host) read(key string) (string, error) {
	if card, setting, ok := cardKey(key); ok {
		return h.readCard(card, setting)
	}
	if key == governorKey {
		return h.readGovernors()
	}
	if k, ok := parseQueueKey(key); ok {
		return h.readQueue(k)
	}
	text, err := os.ReadFile(h.sysctlPath(key))
	return strings.TrimRight(string(text), "\n"), unwrapPath(err)
}

// write sets a key and reads it back.
func (h *Host) write(key, value string) error {
	if err := h.set(key, value); err != nil {
		return fmt.Errorf("set %s to %q: %w", key, value, err)
	}
	now, err := h.Read(key)
	if err != nil {
		return err
	}
	if !hasTaken(key, now, value) {
		return fmt.Errorf("set %s to %q: the kernel changed it to %q", key, value, now)
	}
	return nil
}

func (h *Host) set(key, value string) error {
	if card, setting, ok := cardKey(key); ok {
		return h.setCard(card, setting, value)
	}
	if key == governorKey {
		return h.setGovernors(value)
	}
	if k, ok := parseQueueKey(key); ok {
		return h.setQueue(k, value)
	}
	return setFile(h.sysctlPath(key), value)
}

// unwrapPath removes the path from an error that already names the key.
func unwrapPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// sameValue compares two values of a key as the kernel does: field by field, and lists of
// cores as sets.
func sameValue(key, a, b string) bool {
	return slices.EqualFunc(strings.Fields(a), strings.Fields(b), func(x, y string) bool { return normal(key, x) == normal(key, y) })
}

// hasTaken reports whether a key has taken a value. If the card's queues changed meanwhile,
// only fields of existing queues count.
func hasTaken(key, now, value string) bool {
	if _, setting, ok := cardKey(key); ok && perQueueSetting(setting) {
		x, y := strings.Fields(now), strings.Fields(value)
		n := min(len(x), len(y))
		now, value = strings.Join(x[:n], " "), strings.Join(y[:n], " ")
	}
	return sameValue(key, now, value)
}

// normal returns the normal form of a field that can be written in several ways.
func normal(key, field string) string {
	_, setting, _ := cardKey(key)
	var cores []int
	var err error
	switch setting {
	case "rps", "xps":
		cores, err = cpulist.ParseMask(field)
	case "irqs":
		cores, err = cpulist.Parse(field)
	default:
		return field
	}
	if err != nil {
		return field
	}
	return cpulist.FormatMask(cores)
}

// isWholeMachine reports whether host-wide settings are in reach and kept for the boot: in the
// machine's own network namespace, or in a recorded tree. Other namespaces have no
// net.core.netdev_budget, and must not set host-wide values.
func (h *Host) isWholeMachine() bool {
	if h.owner != "" {
		return false
	}
	if h.Root != "" {
		return true
	}
	_, err := os.Stat(h.sysctlPath("net.core.netdev_budget"))
	return err == nil
}
