package netif

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/killpoint"
)

// sysctlRoot holds the sysctls. Those under net belong to the reader's namespace.
const sysctlRoot = "/proc/sys"

// Sysctl reads a sysctl, named by its path under /proc/sys, such as
// "net/ipv4/conf/eth0/forwarding". The error is fs.ErrNotExist if the kernel does not
// have it.
func Sysctl(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(sysctlRoot, name))
	if err != nil {
		return "", fmt.Errorf("read sysctl: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// SetSysctl writes a sysctl and reads it back.
func SetSysctl(name, value string) error {
	if err := os.WriteFile(filepath.Join(sysctlRoot, name), []byte(value), 0); err != nil {
		return fmt.Errorf("set sysctl: %w", err)
	}
	killpoint.Done("set %s to %s", name, value)
	got, err := Sysctl(name)
	if err != nil {
		return err
	}
	if got != value {
		return fmt.Errorf("set sysctl %s: it reads %s after writing %s", name, got, value)
	}
	return nil
}

// HasSysctl reports whether the kernel has a sysctl of that name.
func HasSysctl(name string) bool {
	_, err := os.Stat(filepath.Join(sysctlRoot, name))
	return !errors.Is(err, fs.ErrNotExist)
}
