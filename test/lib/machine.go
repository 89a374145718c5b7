package lib

import (
	"fmt"
	"os/exec"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
)

// sysctls are those that weir may change, below net/.
var sysctls = [...]string{
	"ipv4/conf/%s/forwarding", "ipv6/conf/%s/forwarding",
	"ipv6/conf/%s/force_forwarding", "ipv6/conf/%s/accept_ra",
}

// Machine describes everything that weir may change in a host: sysctls,
// offloads, nftables, programs at interfaces.
func (b *Box) Machine(host string) string {
	b.Helper()
	var all []string
	err := b.Do(host, func() error {
		links, err := netif.Links()
		if err != nil {
			return err
		}
		names := []string{"all", "default"}
		for _, l := range links {
			names = append(names, l.Name)
			stripping, err := netif.VLANStripping(l.Name)
			if err != nil {
				return err
			}
			all = append(all, fmt.Sprintf("%s strips %v, has XDP program %v", l.Name, stripping, l.XDP != 0))
		}
		for _, name := range names {
			for _, format := range sysctls {
				path := "net/" + fmt.Sprintf(format, name)
				if value, err := netif.Sysctl(path); err == nil {
					all = append(all, path+" "+value)
				}
			}
		}
		ruleset, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
		all = append(all, "nft "+string(ruleset))
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}

// KernelBefore reports whether the running kernel is older than this version.
func KernelBefore(tb testing.TB, major, minor int) bool {
	tb.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		tb.Fatal(err)
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b); err != nil {
		tb.Fatalf("read the kernel's release: %v", err)
	}
	return a < major || a == major && b < minor
}

// SameMachine compares a host with an earlier result of Machine.
func (b *Box) SameMachine(host, was, when string) {
	b.Helper()
	if now := b.Machine(host); now != was {
		b.Errorf("%s the box is not as it was:\n%s\n--- now:\n%s", when, was, now)
	}
}

// Sysctl sets a sysctl of a host.
func (b *Box) Sysctl(host, name, value string) {
	b.Helper()
	if err := b.Do(host, func() error { return netif.SetSysctl(name, value) }); err != nil {
		b.Fatal(err)
	}
}

// WeirBuiltin starts weir run without a rule file and waits until it is ready.
func (b *Box) WeirBuiltin(args ...string) *Process {
	b.Helper()
	p := b.WeirCommand(append([]string{"run", "--hook", b.Hook}, args...)...)
	b.awaitReady(p)
	return p
}
