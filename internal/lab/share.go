package lab

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// Share connects a device of another host to a device's wire, as a switch would: a
// macvlan with its own MAC address, and routes for its host. It vanishes with the wire.
func (l *Lab) Share(host, device string, e End, routes ...Route) error {
	h, err := l.handle(host)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s in %s: %w", device, l.Namespace(host), err)
	}
	target, err := l.open(e.Host)
	if err != nil {
		return err
	}
	defer target.Close()
	mac, err := net.ParseMAC(e.MAC)
	if err != nil {
		return fmt.Errorf("%s: %w", l.endName(&e), err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.ParentIndex, attrs.Namespace = e.Device, mac, link.Attrs().Index, netlink.NsFd(target)
	if err := h.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}); err != nil {
		return fmt.Errorf("put %s on the wire of %s in %s: %w", l.endName(&e), device, l.Namespace(host), err)
	}
	if err := l.setUpEnd(&e, 1); err != nil {
		return err
	}
	return l.setRoutes(Host{Name: e.Host, Routes: routes})
}
