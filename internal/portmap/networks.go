package portmap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"weir/internal/portmap/mapping"
)

// A view is what the server knows of the box's interfaces.
type view struct {
	wan Network
	lan []Network
}

// networks follow changes of the interfaces.
type networks struct {
	*Server
	now atomic.Pointer[view]
}

var errGone = errors.New("the interface is another one now")

// read reads all interfaces. Sockets are bound to an interface, not to its name, so the
// server has to end if one of the LAN has been made anew.
func (n *networks) read() (err error) {
	var v view
	if v.wan, err = n.Machine.Of(n.WAN); err != nil {
		if n.now.Load() == nil {
			return err
		}
		v.wan = Network{Name: n.WAN} // a dial-up line comes and goes
	}
	before := n.now.Load()
	for i, name := range n.LAN {
		one, err := n.Machine.Of(name)
		if err != nil {
			return err
		}
		if before != nil && before.lan[i].Index != one.Index {
			return fmt.Errorf("%s: %w", name, errGone)
		}
		v.lan = append(v.lan, one)
	}
	n.now.Store(&v)
	return nil
}

// external returns the address that hosts are told.
func (n *networks) external() netip.Addr {
	if n.External.IsValid() {
		return n.External
	}
	return n.now.Load().wan.first4()
}

func (w *Network) first4() netip.Addr {
	for _, p := range w.Networks {
		if p.Addr().Is4() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// local reports whether a host is in a network of the LAN, or is named by a permission.
func (n *networks) local(host netip.Addr) bool {
	for _, lan := range n.now.Load().lan {
		if lan.has(host) {
			return true
		}
	}
	return n.Permissions.Name(host)
}

// same reports whether two addresses of the LAN are of one host.
func (n *networks) same(a, b netip.Addr) bool {
	for _, lan := range n.now.Load().lan {
		if lan.has(a) && lan.has(b) {
			return n.Machine.Same(lan.Index, a, b)
		}
	}
	return false
}

// has reports whether another host than the box is in one of the networks.
func (w *Network) has(host netip.Addr) bool {
	in := false
	for _, p := range w.Networks {
		if p.Addr() == host {
			return false
		}
		in = in || p.Contains(host)
	}
	return in
}

// facing returns the box's address in the network of a host.
func (w *Network) facing(host netip.Addr) (netip.Addr, bool) {
	for _, p := range w.Networks {
		if p.Contains(host) {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// told returns the address of a family that is announced. The further it reaches the better:
// hosts then ask by such an address, too, and a pinhole is for the address that has asked.
func (w *Network) told(is4 bool) (best netip.Addr, ok bool) {
	reach := func(a netip.Addr) int {
		switch {
		case a.IsLinkLocalUnicast():
			return 1
		case a.IsPrivate() && !is4:
			return 2
		}
		return 3
	}
	for _, p := range w.Networks {
		if a := p.Addr(); a.Is4() == is4 && (!ok || reach(a) > reach(best)) {
			best, ok = a, true
		}
	}
	return best, ok
}

// own reports whether the box itself uses a port of its external address.
func (n *networks) own(p mapping.Protocol, port uint16) bool {
	address := n.now.Load().wan.first4()
	if !address.IsValid() {
		return false
	}
	kind := unix.SOCK_DGRAM
	if p == mapping.TCP {
		kind = unix.SOCK_STREAM
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd) //nolint:errcheck // it was only bound
	return unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: address.As4()}) != nil
}

// watch follows the machine until ctx ends. moved is told when the external address is
// another one.
func (n *networks) watch(ctx context.Context, moved func(netip.Addr)) error {
	for {
		if err := n.Machine.Next(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		before, lan := n.external(), n.now.Load().lan
		if err := n.read(); err != nil {
			return err
		}
		if !slices.EqualFunc(lan, n.now.Load().lan, func(a, b Network) bool { return slices.Equal(a.Networks, b.Networks) }) {
			n.Log.Info("the networks of the lan are others now")
		}
		if now := n.external(); now != before {
			n.Log.Info("the external address is another one", "address", now, "before", before)
			n.warnPrivate(now)
			moved(now)
		}
	}
}

// shared is what providers use between their own NAT and their customers (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// warnPrivate warns if there is another NAT in front of the box. Mappings are made all the
// same: what is before the box may send everything on.
func (n *networks) warnPrivate(address netip.Addr) {
	if address.IsPrivate() || address.IsLinkLocalUnicast() || address.IsLoopback() || shared.Contains(address) {
		n.Log.Warn("the external address is not a public one: another nat is before this box, and it has to send on what is for a mapping", "address", address)
	}
}
