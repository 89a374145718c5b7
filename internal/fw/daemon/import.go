package daemon

import (
	"fmt"
	"net/netip"

	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
)

// importSockets creates states for the box's TCP connections if no states are kept.
// Otherwise the session that starts weir would be cut off. If the kernel cannot list the
// connections, the start fails, except with --or-block: at boot there is no session yet.
func (b *box) importSockets(m *machine) error {
	if !b.dp.Fresh() {
		return nil
	}
	sockets, err := netif.Connections()
	if err != nil {
		err = fmt.Errorf("find the box's connections: %w", err)
		if !b.cfg.OrBlock {
			return err
		}
		b.cfg.Log.Warn("cannot keep the TCP connections of this box", "error", err)
		return nil
	}
	connections := connectionsOf(sockets, m.links)
	entered, err := b.dp.ImportConnections(connections)
	if err != nil {
		return err
	}
	if entered > 0 {
		b.cfg.Log.Info("kept the TCP connections of this box", "connections", entered)
	}
	if lost := len(connections) - entered; lost > 0 {
		b.cfg.Log.Warn("cannot keep all TCP connections of this box: no room for their states", "connections", lost)
	}
	return nil
}

// connectionsOf returns the connections of the sockets, each once. A connection between
// two sockets of the box counts for the side that opened it.
func connectionsOf(sockets []netif.Connection, links []netif.Link) []dataplane.Connection {
	own := make(map[netip.Addr]bool)
	for _, l := range links {
		for _, a := range l.Addresses {
			own[a.Prefix.Addr()] = true
		}
	}
	var all []dataplane.Connection
	for i := range sockets {
		s := &sockets[i]
		inside := s.Remote.Addr().IsLoopback() || own[s.Remote.Addr()]
		if inside && s.Accepted {
			continue
		}
		local := dataplane.End{Window: s.LocalWindow, Scale: s.LocalScale, Closed: s.LocalClosed}
		remote := dataplane.End{Window: s.RemoteWindow, Scale: s.RemoteScale, Closed: s.RemoteClosed}
		c := dataplane.Connection{
			From: s.Local, To: s.Remote, Own: [2]bool{true, inside},
			Ends: [2]dataplane.End{local, remote}, Scaled: s.Scaled,
		}
		if s.Accepted {
			c.From, c.To, c.Own = s.Remote, s.Local, [2]bool{false, true}
			c.Ends = [2]dataplane.End{remote, local}
		}
		if c.From.Addr().IsLinkLocalUnicast() && c.From.Addr().Is6() || c.To.Addr().IsLinkLocalUnicast() && c.To.Addr().Is6() {
			c.Zone = s.Link
		}
		all = append(all, c)
	}
	return all
}
