package model

import (
	"net/netip"

	"weir/pf/resolve"
)

// An Owner is the user and the group of a packet's socket: numbers, or resolve.Nobody.
type Owner struct{ User, Group uint32 }

var nobody = Owner{resolve.Nobody, resolve.Nobody}

// socketOf returns whose socket a packet belongs to where it enters or leaves the box: the
// one that sends it, or the one that it is for. A packet that is forwarded is nobody's. As
// in pf, the socket is that of the addresses before the rules translate them.
func (b *Box) socketOf(p *packet) Owner {
	local, remote := netip.AddrPortFrom(p.tuple.Dst, p.tuple.DPort), netip.AddrPortFrom(p.tuple.Src, p.tuple.SPort)
	switch {
	case b.Owner == nil || p.tuple.Proto != protoTCP && p.tuple.Proto != protoUDP:
		return nobody
	case p.egress() && p.from != nil:
		return nobody
	case p.egress():
		local, remote = remote, local
	case b.owner(local.Addr()) == nil && !b.isOwn(local.Addr()) && local.Addr() != limited:
		return nobody
	}
	return b.Owner(p.tuple.Proto, local, remote)
}
