package daemon

import (
	"errors"
	"fmt"
	"io/fs"

	"weir/internal/host/netif"
)

// The kernel's switches that forwarding needs. bpf_fib_lookup answers only on
// an interface that forwards, and the stack forwards what is handed up to it.
const (
	forwarding4 = "net/ipv4/conf/%s/forwarding"
	forwarding6 = "net/ipv6/conf/%s/forwarding"
	// force6 makes the stack forward on one interface; without it (before
	// Linux 6.17) only all6 does, which sets every interface and the default.
	force6 = "net/ipv6/conf/%s/force_forwarding"
	all6   = "net/ipv6/conf/all/forwarding"
	// acceptRA 1 means: unless the interface forwards; 2: also then.
	acceptRA = "net/ipv6/conf/%s/accept_ra"
)

// forwardOn makes the kernel forward on interfaces that have weir's programs,
// and records first what was found. all are the interfaces of the namespace.
func (f *Found) forwardOn(hooked, all []netif.Link) error {
	for _, l := range hooked {
		err := f.sysctl(forwarding4, l.Index, l.Name, "1")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forward IPv4 on %s: %w", l.Name, err)
		}
		err = f.forward6On(l)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // no IPv6 here: nothing to forward
			return fmt.Errorf("forward IPv6 on %s: %w", l.Name, err)
		}
	}
	if netif.HasSysctl(sysctlPath(force6, "default")) || !netif.HasSysctl(all6) {
		return nil
	}
	return f.forwardAll6(all)
}

// forward6On switches IPv6 forwarding of one interface on. One that took router
// advertisements keeps taking them, and is told so before: the switch throws
// away the routes that came by them unless they are accepted all the same.
func (f *Found) forward6On(l netif.Link) error {
	forwards, err := netif.Sysctl(sysctlPath(forwarding6, l.Name))
	if err != nil {
		return err
	}
	accepts, err := netif.Sysctl(sysctlPath(acceptRA, l.Name))
	if err != nil {
		return err
	}
	if accepts == "1" && forwards == "0" {
		if err := f.sysctl(acceptRA, l.Index, l.Name, "2"); err != nil {
			return err
		}
	}
	if err := f.sysctl(forwarding6, l.Index, l.Name, "1"); err != nil {
		return err
	}
	return f.sysctl(force6, l.Index, l.Name, "1")
}

// forwardAll6 is for kernels whose stack forwards IPv6 everywhere or nowhere.
// The switch overwrites every interface's own and the default for new ones, so
// those are recorded first, and given back after it.
func (f *Found) forwardAll6(all []netif.Link) error {
	if sysctlOn(all6) {
		return nil
	}
	if err := f.record(sysctlPath(forwarding6, "default"), 0, ""); err != nil {
		return err
	}
	for _, l := range all {
		if err := f.record(forwarding6, l.Index, l.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.sysctl(all6, 0, "", "1")
}

// forwards says what a box with these interfaces forwards without weir.
func forwards(links []netif.Link) (v4, v6 bool) {
	v6 = sysctlOn(all6)
	for _, l := range links {
		if l.Kind == netif.Loopback {
			continue
		}
		v4 = v4 || sysctlOn(sysctlPath(forwarding4, l.Name))
		v6 = v6 || sysctlOn(sysctlPath(force6, l.Name))
	}
	return v4, v6
}

func sysctlOn(path string) bool {
	value, err := netif.Sysctl(path)
	return err == nil && value == "1"
}
