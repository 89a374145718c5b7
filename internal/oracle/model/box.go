package model

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"weir/pf/resolve"
)

// A Box is the machine between its interfaces, as far as packets can tell.
type Box struct {
	Interfaces []Interface
	Route      func(dst netip.Addr) Route // after the box's own addresses were excluded
	// MarkedRoute returns the route of packets with a mark; nil: marks steer nothing.
	MarkedRoute func(dst netip.Addr, mark uint32) Route
	// TableRoute returns what one routing table says; nil: all say the same.
	TableRoute func(dst netip.Addr, table uint32) Route
	// Owner returns whose socket exchanges packets between a local and a remote end; nil:
	// the box has no sockets.
	Owner     func(proto uint8, local, remote netip.AddrPort) Owner
	Copies    bool // rules have, or had, dup-to
	MarkBlind bool // the route look-up of XDP and TCX knows no marks, as before Linux 6.10
}

// An Interface is one of the box's.
type Interface struct {
	Index     uint32
	Name      string
	Groups    []string
	MAC       [6]byte
	Addresses []netip.Prefix // in the interface's order
	Peers     []netip.Addr   // the other ends of its point-to-point links
	// Deprecated are addresses that no translation uses, and their peers.
	Deprecated []netip.Addr
	L3         bool // no Ethernet header
	Loopback   bool
	XDPTarget  bool // can be reached by a redirect from XDP
	// Parent is the index of the interface that carries this one's frames, with Tag
	// in them; 0: none.
	Parent  uint32
	Tag     uint16 // priority and VLAN id
	TagType uint16 // EtherType of the tag
	Logical bool   // XDP takes frames with the tag, of any priority, for this interface's
	Static4 bool   // has an IPv4 address with unlimited lifetime
	Static6 bool   // has a global IPv6 address with unlimited lifetime
	RDomain uint32 // routing domain
}

// RouteKind says what the kernel would do with a destination.
type RouteKind uint8

// Kinds of routes.
const (
	RouteForward RouteKind = iota
	RouteLocal             // the box's own address, or a broadcast of it
	RouteNone              // no route, blackhole, unreachable, prohibit: the stack replies
)

// A Route is the result of the kernel's look-up for a destination. All fields except Kind
// are valid only for RouteForward.
type Route struct {
	Kind      RouteKind
	Interface uint32
	MTU       int
	Neighbour bool // its MAC is known
	Dst, Src  [6]byte
	Gateway   netip.Addr // the next router; invalid: the destination is on the link
}

// route returns the kernel's route for a packet with that mark.
func (b *Box) route(dst netip.Addr, mark uint32) Route {
	if mark == 0 || b.MarkBlind || b.MarkedRoute == nil {
		return b.Route(dst)
	}
	return b.MarkedRoute(dst, mark)
}

func (b *Box) byIndex(index uint32) *Interface {
	for i := range b.Interfaces {
		if b.Interfaces[i].Index == index {
			return &b.Interfaces[i]
		}
	}
	return nil
}

// tagged reports whether XDP reaches an interface through its parent.
func (b *Box) tagged(i *Interface) bool {
	parent := b.byIndex(i.Parent)
	return !i.XDPTarget && parent != nil && parent.XDPTarget
}

// carried returns the interface whose frames another one carries with a tag; nil: XDP
// knows none.
func (b *Box) carried(carrier *Interface, tagType, id uint16) *Interface {
	for i := range b.Interfaces {
		n := &b.Interfaces[i]
		if n.Logical && n.Parent == carrier.Index && n.TagType == tagType && n.Tag&vlanIDMask == id {
			return n
		}
	}
	return nil
}

// named returns the interface of that name, or the members of that group.
func (b *Box) named(name string) []*Interface {
	var found []*Interface
	for i := range b.Interfaces {
		if name == resolve.Self || b.Interfaces[i].is(name) {
			found = append(found, &b.Interfaces[i])
		}
	}
	return found
}

func (i *Interface) is(name string) bool {
	return i.Name == name || slices.Contains(i.Groups, name)
}

// owns reports whether a is an address of the box.
func (b *Box) owns(a netip.Addr) bool { return b.owner(a) != nil }

// owner returns the interface that has an address; nil: it is none of the box's.
func (b *Box) owner(a netip.Addr) *Interface {
	for i := range b.Interfaces {
		for _, p := range b.Interfaces[i].Addresses {
			if p.Addr() == a {
				return &b.Interfaces[i]
			}
		}
	}
	return nil
}

// broadcast reports whether a is the broadcast address of one of its networks.
func (b *Box) broadcast(a netip.Addr) bool {
	for i := range b.Interfaces {
		for _, p := range b.Interfaces[i].Addresses {
			if p.Addr().Is4() && p.Bits() < 31 && netipx.PrefixLastIP(p) == a {
				return true
			}
		}
	}
	return false
}
