package daemon

import (
	"errors"
	"fmt"
	"io/fs"

	"weir/internal/host/netif"
)

// Kernel settings that forwarding needs. bpf_fib_lookup works only on an interface that
// forwards, and the stack must forward what weir hands off to it.
const (
	forwarding4 = "net/ipv4/conf/%s/forwarding"
	forwarding6 = "net/ipv6/conf/%s/forwarding"
	// force6 makes the stack forward on one interface. Before Linux 6.17 it does not
	// exist. Then only all6 does this, and it sets every interface and the default.
	force6 = "net/ipv6/conf/%s/force_forwarding"
	all6   = "net/ipv6/conf/all/forwarding"
	// acceptRA: 1 accepts unless the interface forwards; 2 accepts even then.
	acceptRA = "net/ipv6/conf/%s/accept_ra"
)

// forwardOn switches forwarding on for interfaces that have weir's programs, and first
// records the settings found. all holds the interfaces of the namespace.
func (f *Found) forwardOn(hooked, all []netif.Link) error {
	for _, l := range hooked {
		err := f.sysctl(forwarding4, l.Index, l.Name, "1")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forward IPv4 on %s: %w", l.Name, err)
		}
		err = f.forward6On(l)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // no IPv6 here: nothing to switch on
			return fmt.Errorf("forward IPv6 on %s: %w", l.Name, err)
		}
	}
	if netif.HasSysctl(sysctlPath(force6, "default")) || !netif.HasSysctl(all6) {
		return nil
	}
	return f.forwardAll6(all)
}

// forward6On switches IPv6 forwarding on for one interface. If the interface accepted
// router advertisements, accept_ra is set to 2 first. Otherwise the switch removes the
// routes that came from advertisements.
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

// forwardAll6 is for kernels that forward IPv6 on all interfaces or on none. The switch
// overwrites the setting of every interface and the default for new ones. These are
// recorded first, and restored after it.
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

// forwards reports what a box with these interfaces forwards without weir.
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
