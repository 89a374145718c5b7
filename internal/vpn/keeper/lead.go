package keeper

import (
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// lead has messages to a peer leave by where the routes lead now, if they did so before. The engine sends from the address and by the
// interface that the last message came to, which is right for a peer that came by another uplink than the routes lead to, and wrong after
// the routes have changed: then packets of the peer that still come by the uplink of before count for nothing. A peer without an endpoint
// has begun by itself, and stays where it came.
func (t *running) lead(p *resolve.Peer, k key.Public) {
	w, s := t.watched[k], t.states[k]
	if w == nil || p.Endpoint == "" || !s.Endpoint.IsValid() || s.Endpoint.Addr().IsLinkLocalUnicast() || s.Interface == 0 && w.led == 0 {
		return
	}
	way, err := t.keeper.cards.way(netif.Flow{Protocol: unix.IPPROTO_UDP, From: netip.AddrPortFrom(netip.Addr{}, t.of.Port), To: s.Endpoint, Mark: s.Mark})
	if err != nil { // a route may come back
		return
	}
	f, follows := t.engine.(tunnel.Follower)
	if w.led != 0 { // the engine may have made the peer anew
		f.Lead(k, way.Link)
	}
	from := s.Interface
	if from == 0 {
		from = w.led
	}
	moves := w.led != 0 && way.Link != w.led || w.ledTo == s.Endpoint && w.ledBy == from && way.Link != from
	w.ledTo, w.ledBy = s.Endpoint, way.Link
	if !moves {
		return
	}
	t.note(OfEndpoint, p.Name, "messages to it leave by %s instead of %s: the routes have changed", linkName(way.Link), linkName(from))
	if follows {
		f.Lead(k, way.Link)
		w.led = way.Link
	}
	err = t.engine.Move(k, s.Endpoint)
	if err == nil {
		err = t.engine.Greet(k) // it is to know where this end is
	}
	if err != nil {
		t.keeper.Log.Warn("send by another interface", "interface", t.of.Name, "peer", p.Name, "error", err)
	}
}

func linkName(index int) string {
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return "interface " + strconv.Itoa(index)
	}
	return i.Name
}
