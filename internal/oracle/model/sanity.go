package model

import (
	"net/netip"

	"weir/internal/fw/reason"
)

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	reserved4   = netip.MustParsePrefix("240.0.0.0/4")
	limited     = netip.MustParseAddr("255.255.255.255")
	unspecified = netip.MustParseAddr("0.0.0.0")
)

// sanity is step 3: addresses with which no packet may come in.
func (m *Model) sanity(p *packet) *reason.Reason {
	src, dst := p.tuple.Src, p.tuple.Dst
	switch {
	case p.egress() || p.iface.Loopback:
		return nil
	case src == dst:
		return reasonFor(reason.Land)
	case p.family == 4 && martianSource4(p), p.family == 6 && martianSource6(p), m.box.owns(src):
		return reasonFor(reason.MartianSource)
	case martianDestination(dst):
		return reasonFor(reason.MartianDest)
	}
	return nil
}

func martianSource4(p *packet) bool {
	src := p.tuple.Src
	if thisNetwork.Contains(src) {
		asking := p.tuple.Dst == limited || p.tuple.Proto == protoIGMP // before it has an address
		return src != unspecified || !asking
	}
	return src.IsLoopback() || src.IsMulticast() || reserved4.Contains(src)
}

func martianSource6(p *packet) bool {
	src := p.tuple.Src
	if src.IsUnspecified() {
		return !p.isND() && !p.isMLD()
	}
	return src.IsLoopback() || src.IsMulticast()
}

func martianDestination(dst netip.Addr) bool {
	return thisNetwork.Contains(dst) || dst.IsLoopback() || dst.IsUnspecified()
}

// isND reports whether the packet is a neighbour or router discovery message
// (RFC 4861), whatever its hop limit.
func (p *packet) isND() bool {
	return p.family == 6 && p.isICMP() && p.fragment != fragmentLater && p.icmpType >= 133 && p.icmpType <= 137
}

// isMLD reports whether the packet is a multicast listener message (RFC 2710,
// RFC 3810), whatever its hop limit.
func (p *packet) isMLD() bool {
	return p.family == 6 && p.isICMP() && p.fragment != fragmentLater &&
		(p.icmpType >= 130 && p.icmpType <= 132 || p.icmpType == 143)
}
