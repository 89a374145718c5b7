package ipsec

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Versions from which on each core may have keys of its own (RFC 9611).
var (
	leastCharon = []int{6, 0, 2}
	leastKernel = []int{6, 13}
)

// perCPU returns "" if each core can have keys of its own, or why not.
func (c *Charon) perCPU() string {
	switch {
	case !atLeast(c.client.version, leastCharon):
		return fmt.Sprintf("per-cpu needs strongSwan 6.0.2, and this is %s: one core encrypts", c.client.version)
	case !atLeast(c.kernel, leastKernel):
		return fmt.Sprintf("per-cpu needs Linux 6.13, and this is %s: one core encrypts", c.kernel)
	}
	return ""
}

// atLeast compares a version, as far as it is numbers and dots, with another.
func atLeast(version string, least []int) bool {
	parts := strings.Split(version, ".")
	for i, want := range least {
		if i >= len(parts) {
			return false
		}
		digits := parts[i]
		if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = digits[:end]
		}
		is, err := strconv.Atoi(digits)
		if err != nil || is != want {
			return err == nil && is > want
		}
	}
	return true
}

// release returns that of the kernel.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
