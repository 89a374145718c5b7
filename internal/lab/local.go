package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/host/netif"
)

// OnThisMachine reports whether an address is this machine's: loopback, one of this
// network namespace, or one in a lab that this namespace is part of.
func OnThisMachine(a netip.Addr) (bool, error) {
	if a.IsLoopback() {
		return true, nil
	}
	own, err := isOwn(a)
	if own || err != nil {
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
// machine, and the address is a host's of the same lab.
func inLab(a netip.Addr) (bool, error) {
	own, err := netif.Cookie()
	names, failed := filepath.Glob("/run/netns/*-" + FW)
	if err = errors.Join(err, failed); err != nil {
		return false, err
	}
	for _, name := range names {
		l, err := Open(strings.TrimSuffix(filepath.Base(name), "-"+FW), Topology{})
		if err != nil {
			continue // not a lab of ours, or incomplete
		}
		here, there := false, false
		for _, host := range l.Hosts() {
			err := l.Do(host, func() error {
				cookie, err := netif.Cookie()
				found, failed := isOwn(a)
				here, there = here || cookie == own, there || found
				return errors.Join(err, failed)
			})
			if errors.Is(err, os.ErrPermission) {
				return false, nil // only root enters labs
			}
			if err != nil {
				return false, err
			}
		}
		if here && there {
			return true, nil
		}
	}
	return false, nil
}
