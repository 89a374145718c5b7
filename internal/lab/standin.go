package lab

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"weir/internal/host/netif"
)

// StandInFor returns the name of a device while another stands in for it.
func StandInFor(device string) string { return device + ".wire" }

// StandIn replaces a device of a wire by one without a wire. The stand-in gets its name,
// MAC address, addresses, neighbours and the host's routes. The device itself keeps
// carrying frames, under the name of StandInFor. back undoes this, even if StandIn failed.
func (l *Lab) StandIn(host, device string) (back func() error, err error) {
	own, peer := l.topology.end(host, device)
	if own == nil {
		return func() error { return nil }, fmt.Errorf("stand in for a device: %s has no %s", l.Namespace(host), device)
	}
	back = func() error {
		below := *own
		below.Device = StandInFor(device)
		return errors.Join(l.deleteDevice(own), l.rename(&below, device), l.settle(own, peer))
	}
	if err := l.rename(own, StandInFor(device)); err != nil {
		return back, err
	}
	return back, errors.Join(l.addIdle(own), l.settle(own, peer))
}

// rename gives a device another name and removes its addresses.
func (l *Lab) rename(e *End, name string) error {
	h, err := l.handle(e.Host)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(e.Device)
	if err != nil {
		return fmt.Errorf("find %s: %w", l.endName(e), err)
	}
	addresses, err := h.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", l.endName(e), err)
	}
	if err := h.LinkSetDown(link); err != nil {
		return fmt.Errorf("set %s down: %w", l.endName(e), err)
	}
	for i := range addresses {
		if addresses[i].IP.To4() == nil {
			continue // gone with its state
		}
		if err := h.AddrDel(link, &addresses[i]); err != nil {
			return fmt.Errorf("take %s from %s: %w", addresses[i].IPNet, l.endName(e), err)
		}
	}
	if err := errors.Join(h.LinkSetName(link, name), l.settleAtOnce(e.Host, name), h.LinkSetUp(link)); err != nil {
		return fmt.Errorf("rename %s to %s: %w", l.endName(e), name, err)
	}
	return nil
}

// settleAtOnce makes a device's link-local address usable as soon as it is up, so nothing
// changes a second later.
func (l *Lab) settleAtOnce(host, device string) error {
	return l.Do(host, func() error { return netif.SetSysctl("net/ipv6/conf/"+device+"/accept_dad", "0") })
}

// addIdle makes a veth pair whose other end is unused. Not every kernel has dummy devices.
func (l *Lab) addIdle(e *End) error {
	h, err := l.handle(e.Host)
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = e.Device
	if attrs.HardwareAddr, err = net.ParseMAC(e.MAC); err != nil {
		return fmt.Errorf("%s: %w", l.endName(e), err)
	}
	far := e.Device + ".idle"
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: far}); err != nil {
		return fmt.Errorf("make %s: %w", l.endName(e), err)
	}
	if err := errors.Join(l.settleAtOnce(e.Host, e.Device), l.settleAtOnce(e.Host, far)); err != nil {
		return fmt.Errorf("make %s: %w", l.endName(e), err)
	}
	link, err := h.LinkByName(far)
	if err != nil {
		return fmt.Errorf("find the other end of %s: %w", l.endName(e), err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("set the other end of %s up: %w", l.endName(e), err)
	}
	return nil
}

// settle gives a device its addresses, neighbours and routes from the topology.
func (l *Lab) settle(own, peer *End) error {
	if err := l.setUpEnd(own, 1); err != nil {
		return err
	}
	if err := l.setNeighbours(own, peer, true); err != nil {
		return err
	}
	for _, host := range l.topology.Hosts {
		if host.Name != own.Host {
			continue
		}
		// This also adds routes through another device that has no addresses now.
		for _, r := range host.Routes {
			if !reaches(own, r) {
				continue
			}
			if err := l.setRoutes(Host{Name: host.Name, Routes: []Route{r}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// reaches reports whether the neighbour of a route is on a device's networks.
func reaches(e *End, r Route) bool {
	for _, p := range e.Addresses {
		if p.Contains(r.Via) {
			return true
		}
	}
	return false
}
