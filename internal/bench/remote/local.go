package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/host/netif"
	"weir/internal/lab"
)

// NotOursError refuses to measure a machine that the user has not claimed to own.
type NotOursError struct {
	Host string
	Addr netip.Addr
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("%s (%s) is another machine, and a benchmark fills its processor and the links to it; if it is yours, add --yes-i-own %s",
		e.Host, e.Addr, e.Host)
}

// target returns the address of a host. It refuses unless the address is this machine's
// or in a lab on it, or the user owns the host by name.
func target(ctx context.Context, host, owned string) (netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find %s: %w", plain(host), err)
	}
	if len(addrs) == 0 {
		return netip.Addr{}, fmt.Errorf("find %s: it has no address", plain(host))
	}
	a := addrs[0].Unmap()
	if owned == host {
		return a, nil
	}
	local, err := isLocal(a)
	if err != nil {
		return a, err
	}
	if !local {
		return a, &NotOursError{host, a}
	}
	return a, nil
}

// isLocal reports whether an address belongs to this machine: loopback, one of this
// network namespace, or one in a lab that this namespace is part of.
func isLocal(a netip.Addr) (bool, error) {
	if a.IsLoopback() {
		return true, nil
	}
	if own, err := isOwn(a); own || err != nil {
		return own, err
	}
	return inLab(a)
}

// isOwn reports whether an interface of this network namespace has an address.
func isOwn(a netip.Addr) (bool, error) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("list the machine's addresses: %w", err)
	}
	return slices.ContainsFunc(own, func(o net.Addr) bool {
		p, err := netip.ParsePrefix(o.String())
		return err == nil && p.Addr().Unmap() == a.WithZone("")
	}), nil
}

// inLab reports whether this network namespace is a host of a lab that weir built on this
// machine, and the address is another host's of the same lab.
func inLab(a netip.Addr) (bool, error) {
	names, err := filepath.Glob("/run/netns/*-" + lab.FW)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		l, err := lab.Open(strings.TrimSuffix(filepath.Base(name), "-"+lab.FW), lab.Topology{})
		if err != nil {
			continue // not a lab of ours, or incomplete
		}
		here, err := standsIn(l)
		if err != nil {
			return false, err
		}
		if here && addressOf(l, a) {
			return true, nil
		}
	}
	return false, nil
}

// standsIn reports whether the process is in a host of a lab.
func standsIn(l *lab.Lab) (bool, error) {
	own, err := netif.Cookie()
	if err != nil {
		return false, err
	}
	for _, host := range l.Hosts() {
		var cookie uint64
		err := l.Do(host, func() (err error) {
			cookie, err = netif.Cookie()
			return err
		})
		if errors.Is(err, os.ErrPermission) {
			return false, nil // only root enters labs
		}
		if err != nil {
			return false, err
		}
		if cookie == own {
			return true, nil
		}
	}
	return false, nil
}

// addressOf reports whether a host of the lab has an address.
func addressOf(l *lab.Lab, a netip.Addr) bool {
	for _, host := range l.Hosts() {
		found := false
		if err := l.Do(host, func() (err error) {
			found, err = isOwn(a)
			return err
		}); err == nil && found {
			return true
		}
	}
	return false
}
