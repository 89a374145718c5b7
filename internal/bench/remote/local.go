package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/host/netif"
	"weir/internal/lab"
)

// NotOursError refuses to measure towards a machine of which nobody has said
// whose it is.
type NotOursError struct {
	Host string
	Addr netip.Addr
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("%s (%s) is another machine: a benchmark fills the links to it and its processor; if it is yours, add --yes-i-own %s",
		e.Host, e.Addr, e.Host)
}

// target finds the address of a host and refuses it unless it is this
// machine's, or that of a lab of this machine, or the user owns it by name.
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

// isLocal tells whether an address is of this machine: loopback, one of its own in
// this network namespace, or one in a lab whose namespace this is.
func isLocal(a netip.Addr) (bool, error) {
	if a.IsLoopback() {
		return true, nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("list the machine's addresses: %w", err)
	}
	for _, o := range own {
		if p, err := netip.ParsePrefix(o.String()); err == nil && p.Addr().Unmap() == a.WithZone("") {
			return true, nil
		}
	}
	return inLab(a)
}

// inLab tells whether this network namespace is a host's of a lab that weir has
// built on this machine, and an address is another's of the same lab.
func inLab(a netip.Addr) (bool, error) {
	names, err := filepath.Glob("/run/netns/*-" + lab.FW)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		l, err := lab.Open(strings.TrimSuffix(filepath.Base(name), "-"+lab.FW), lab.Topology{})
		if err != nil {
			continue // no lab of ours, or not whole
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

// standsIn tells whether the process acts in a host of a lab.
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

// addressOf tells whether a device of the lab, as weir has made it, has an
// address. Its MAC address is looked at too: a namespace can have any name.
func addressOf(l *lab.Lab, a netip.Addr) bool {
	for _, w := range lab.Gateway().Wires {
		for _, end := range w {
			for _, p := range end.Addresses {
				if p.Addr() == a && hasMAC(l, end) {
					return true
				}
			}
		}
	}
	return false
}

func hasMAC(l *lab.Lab, end lab.End) bool {
	found := false
	err := l.Do(end.Host, func() error {
		i, err := net.InterfaceByName(end.Device)
		found = err == nil && i.HardwareAddr.String() == end.MAC
		return err
	})
	return err == nil && found
}
