package hostdb

import (
	"net/netip"
	"os"

	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// Host returns what the resolver needs to know about this machine. With an error that
// wraps ErrUnreadable, it returns the host without the names of that database.
func Host(links []netif.Link) (*resolve.Host, error) {
	defaults, err := netif.DefaultRoutes()
	if err != nil {
		return nil, err
	}
	named, unreadable := LinkGroups(os.DirFS("/"))
	host := &resolve.Host{}
	for _, l := range links {
		addresses := make([]netip.Prefix, 0, len(l.Addresses))
		var peers []netip.Addr
		for _, a := range l.Addresses {
			addresses = append(addresses, a.Prefix)
			if a.Peer.IsValid() {
				peers = append(peers, a.Peer)
			}
		}
		gateways, egress := defaults[l.Index]
		if egress && len(gateways) == 0 {
			gateways = peers[:min(1, len(peers))] // there is no other station on such a link
		}
		host.Interfaces = append(host.Interfaces, resolve.HostInterface{
			Name: l.Name, Groups: netif.Groups(&l, egress, named[l.Group]), Addresses: addresses, Peers: peers, MTU: uint32(l.MTU), Default: gateways,
		})
	}
	return host, unreadable
}
