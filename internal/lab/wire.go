package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"
)

// makeWire makes the pair, unless both ends exist with the right number of queues, and
// brings it up.
func (l *Lab) makeWire(w Wire, opts *Options) error {
	whole, err := l.wireIsWhole(w, opts.Queues)
	if err != nil {
		return err
	}
	if !whole {
		if err := l.newWire(w, opts.Queues); err != nil {
			return err
		}
	}
	for side, e := range w {
		if err := l.setUpEnd(&e, opts.Queues); err != nil {
			return err
		}
		if err := l.setNeighbours(&e, &w[1-side], opts.Neighbours); err != nil {
			return err
		}
		if err := l.setOffloads(&e, opts.Offloads); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) wireIsWhole(w Wire, queues int) (bool, error) {
	for _, e := range w {
		h, err := l.handle(e.Host)
		if err != nil {
			return false, err
		}
		link, err := h.LinkByName(e.Device)
		h.Close()
		var none netlink.LinkNotFoundError
		if errors.As(err, &none) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("find %s in %s: %w", e.Device, l.Namespace(e.Host), err)
		}
		if link.Attrs().NumRxQueues != queues || link.Attrs().NumTxQueues != queues {
			return false, nil
		}
	}
	return true, nil
}

// newWire makes the pair inside the namespace of its first end, so it is never visible
// outside the lab.
func (l *Lab) newWire(w Wire, queues int) error {
	for _, e := range w {
		if err := l.deleteDevice(&e); err != nil {
			return err
		}
	}
	h, err := l.handle(w[0].Host)
	if err != nil {
		return err
	}
	defer h.Close()
	far, err := l.open(w[1].Host)
	if err != nil {
		return err
	}
	defer far.Close()
	mac, err := net.ParseMAC(w[0].MAC)
	if err != nil {
		return fmt.Errorf("%s in %s: %w", w[0].Device, l.Namespace(w[0].Host), err)
	}
	peerMAC, err := net.ParseMAC(w[1].MAC)
	if err != nil {
		return fmt.Errorf("%s in %s: %w", w[1].Device, l.Namespace(w[1].Host), err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = w[0].Device, mac
	attrs.NumRxQueues, attrs.NumTxQueues = queues, queues
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerHardwareAddr, veth.PeerNamespace = w[1].Device, peerMAC, netlink.NsFd(far)
	veth.PeerNumRxQueues, veth.PeerNumTxQueues = uint32(queues), uint32(queues)
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("make the pair %s – %s: %w", l.endName(&w[0]), l.endName(&w[1]), err)
	}
	return nil
}

func (l *Lab) deleteDevice(e *End) error {
	h, err := l.handle(e.Host)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(e.Device)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err == nil {
		err = h.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", l.endName(e), err)
	}
	return nil
}

// setUpEnd sets a device's addresses, brings it up and spreads its queues.
func (l *Lab) setUpEnd(e *End, queues int) error {
	h, err := l.handle(e.Host)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(e.Device)
	if err != nil {
		return fmt.Errorf("find %s: %w", l.endName(e), err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", l.endName(e), err)
	}
	for _, p := range e.Addresses {
		addr := &netlink.Addr{IPNet: netipx.PrefixIPNet(p)}
		if p.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := h.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("give %s the address %s: %w", l.endName(e), p, err)
		}
	}
	return l.Do(e.Host, func() error { return spreadQueues(e.Device, queues) })
}

// setNeighbours adds permanent entries for the peer's addresses, or removes those of an
// earlier Up.
func (l *Lab) setNeighbours(e, peer *End, permanent bool) error {
	h, err := l.handle(e.Host)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(e.Device)
	if err != nil {
		return fmt.Errorf("find %s: %w", l.endName(e), err)
	}
	mac, err := net.ParseMAC(peer.MAC)
	if err != nil {
		return fmt.Errorf("%s: %w", l.endName(peer), err)
	}
	for _, p := range peer.Addresses {
		n := &netlink.Neigh{LinkIndex: link.Attrs().Index, IP: p.Addr().AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT}
		if permanent {
			err = h.NeighSet(n)
		} else if err = h.NeighDel(n); errors.Is(err, unix.ENOENT) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("neighbour %s of %s: %w", p.Addr(), l.endName(e), err)
		}
	}
	return nil
}

// AddNeighbours adds permanent entries that map addresses to the device at the other end
// of the wire: one device may stand for many hosts.
func (l *Lab) AddNeighbours(host, device string, addrs []netip.Addr) error {
	own, peer := l.topology.end(host, device)
	if own == nil {
		return fmt.Errorf("add neighbours: %s has no device %s", l.Namespace(host), device)
	}
	many := End{Host: peer.Host, Device: peer.Device, MAC: peer.MAC}
	for _, a := range addrs {
		many.Addresses = append(many.Addresses, netip.PrefixFrom(a, a.BitLen()))
	}
	return l.setNeighbours(own, &many, true)
}

// AddRoute routes a network to a device of a host, on link or through a neighbour.
func (l *Lab) AddRoute(host, device string, to netip.Prefix, via netip.Addr) error {
	h, err := l.handle(host)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s in %s: %w", device, l.Namespace(host), err)
	}
	r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: netipx.PrefixIPNet(to)}
	if via.IsValid() {
		r.Gw = via.AsSlice()
	} else if to.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	if err := h.RouteReplace(r); err != nil {
		return fmt.Errorf("route to %s by %s in %s: %w", to, device, l.Namespace(host), err)
	}
	return nil
}

// AddLocal makes every address of a network local to a host. Servers that listen on all
// addresses answer for each.
func (l *Lab) AddLocal(host string, network netip.Prefix) error {
	h, err := l.handle(host)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo in %s: %w", l.Namespace(host), err)
	}
	r := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: netipx.PrefixIPNet(network), Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST}
	if err := h.RouteReplace(r); err != nil {
		return fmt.Errorf("make %s an own network of %s: %w", network, l.Namespace(host), err)
	}
	return nil
}

func (l *Lab) setRoutes(host Host) error {
	if len(host.Routes) == 0 {
		return nil
	}
	h, err := l.handle(host.Name)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, r := range host.Routes {
		if err := h.RouteReplace(&netlink.Route{Dst: netipx.PrefixIPNet(r.To), Gw: r.Via.AsSlice()}); err != nil {
			return fmt.Errorf("route to %s via %s in %s: %w", r.To, r.Via, l.Namespace(host.Name), err)
		}
	}
	return nil
}

func (l *Lab) endName(e *End) string { return e.Device + " in " + l.Namespace(e.Host) }
