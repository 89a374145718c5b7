package keeper

import (
	"net/netip"

	"weir/internal/host/netif"
	"weir/internal/vpn/key"
	"weir/pf/ast"
	"weir/pf/resolve"
)

func isWide(p resolve.Peer) bool { return p.Wide > 0 }

// width returns how many ports the link to a peer is to have. Where the statement leaves that to weir, it is as many as
// the card that its messages come by has receive queues, or as the tunnel has workers if these are more: with few ports,
// the card may have two of them in one queue.
func (t *running) width(p *resolve.Peer) int {
	if !p.WideAuto {
		return int(p.Wide)
	}
	n := 2
	if e, ok := t.engine.(workers); ok {
		n = max(n, len(e.Work()))
	}
	if k, err := key.ParsePublic(p.Key); err == nil {
		if at := t.states[k].Endpoint; at.IsValid() {
			n = max(n, queuesTo(at.Addr()))
		}
	}
	return min(n, ast.MostPorts)
}

// widthsChanged reports whether links are to have other ports than the engine was told, as queues or ways have changed.
func (t *running) widthsChanged() bool {
	for i := range t.of.Peers {
		p := &t.of.Peers[i]
		if k, err := key.ParsePublic(p.Key); err == nil && p.WideAuto {
			if is := t.before(k); is != nil && is.Wide != t.width(p) {
				return true
			}
		}
	}
	return false
}

// queuesTo returns how many receive queues the cards have by which packets to an address leave.
func queuesTo(to netip.Addr) int {
	index, _, err := netif.WayTo(to)
	if err != nil {
		return 0
	}
	all, err := netif.Links()
	if err != nil {
		return 0
	}
	return queuesOf(all, index, len(all))
}

// queuesOf returns how many receive queues are below an interface: below VLANs, and of the members of a group of links.
// depth is how far down it looks.
func queuesOf(all []netif.Link, index, depth int) (n int) {
	if depth == 0 {
		return 0
	}
	var is *netif.Link
	for i := range all {
		if all[i].Index == index {
			is = &all[i]
		}
	}
	switch {
	case is == nil:
		return 0
	case is.Parent != 0:
		return queuesOf(all, is.Parent, depth-1)
	case is.Kind == netif.Bond, is.Kind == netif.Team, is.Kind == netif.Bridge:
		for i := range all {
			if all[i].Master == index {
				n += queuesOf(all, all[i].Index, depth-1)
			}
		}
		return n
	}
	return netif.Queues(is)
}
