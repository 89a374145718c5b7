package model

import (
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// wantsEndpoint reports whether a packet's source has one address and port outside for all
// destinations: FreeBSD's endpoint-independent, which is for UDP. With static-port the port
// stays anyway.
func (m *Model) wantsEndpoint(p *packet, nat *target) bool {
	return nat != nil && nat.translation.EndpointIndependent && !nat.translation.StaticPort && p.tuple.Proto == protoUDP
}

// reserveEndpoint is reserve for such a packet.
func (m *Model) reserveEndpoint(p *packet, reply state.Tuple, nat *target, made *state.State) (state.Tuple, *reason.Reason) {
	for _, c := range m.states {
		if !c.endpoint || !sameSource(c.Tuple[0], p.tuple) || c.Tuple[1].Dst.Is4() != reply.Dst.Is4() {
			continue
		}
		if c.unseen && made != nil {
			c.Tuple[1].Dst, c.Tuple[1].DPort, c.unseen = made.Tuple[1].Dst, made.Tuple[1].DPort, false
		}
		now := c.Tuple[1]
		if now.Dst != reply.Dst && m.hasOneAddress(p, nat, familyOf(reply.Dst)) {
			c.endpoint = false // the pool has this address no more
			continue
		}
		reply.Dst, reply.DPort = now.Dst, now.DPort
		if !m.free(reply) {
			return reply, reasonFor(reason.TupleTaken)
		}
		return reply, nil
	}
	ports := portsOf(nat)
	if made == nil && m.unseenEndpoints() >= m.freePorts(p.tuple, reply, ports) {
		return reply, reasonFor(reason.NATPorts)
	}
	reply, ok := m.choosePort(p.tuple, reply, ports, made, m.isEndpoint)
	if !ok {
		return reply, reasonFor(reason.NATPorts)
	}
	return reply, nil
}

// unseenEndpoints returns how many mappings have a port that is not known.
func (m *Model) unseenEndpoints() (n int) {
	for _, c := range m.states {
		if c.endpoint && c.unseen {
			n++
		}
	}
	return n
}

// freePorts returns how many ports no known mapping has, up to one more than there are unknown
// ones: these have some of them.
func (m *Model) freePorts(asked, reply state.Tuple, ports portSet) (n int) {
	for port := int(ports.low); port <= int(ports.high) && n <= m.unseenEndpoints(); port++ {
		reply.DPort = uint16(port)
		if ports.has(reply.DPort) && reply != asked && m.free(reply) && !m.isEndpoint(reply) {
			n++
		}
	}
	return n
}

// isEndpoint reports whether another source has the address and port that replies go to.
func (m *Model) isEndpoint(reply state.Tuple) bool {
	for _, c := range m.states {
		if now := c.Tuple[1]; c.endpoint && !c.unseen && now.Dst == reply.Dst && now.DPort == reply.DPort && now.Zone == reply.Zone {
			return true
		}
	}
	return false
}

func sameSource(a, b state.Tuple) bool {
	return a.Src == b.Src && a.SPort == b.SPort && a.Zone == b.Zone
}

// hasOneAddress reports whether a translation has a single address of a family to choose for a
// packet. An address that the packet's own goes into is one.
func (m *Model) hasOneAddress(p *packet, t *target, family int) bool {
	if _, embeds := t.translation.Embedding(); embeds && family != p.family {
		return true
	}
	all := m.candidates(t, family)
	return t.translation.Choice.Type != resolve.Bitmask && len(all) == 1 && all[0].IsSingleIP()
}
