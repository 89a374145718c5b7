package model

// implicit is step 4: what a box needs to have addresses and neighbours at all.
func (m *Model) implicit(p *packet) bool {
	if !m.rules.Options.ImplicitPass || p.fragment != fragmentNone {
		return false
	}
	linkScope := p.tuple.Src.IsLinkLocalUnicast() || p.tuple.Src.IsUnspecified()
	switch {
	case p.isND():
		return p.ttl == 255 && p.icmpCode == 0
	case p.isMLD():
		return linkScope && p.ttl == 1
	case p.family == 4 && p.tuple.Proto == protoIGMP:
		return p.ttl == 1
	case p.tuple.Proto == protoUDP && p.family == 4:
		return p.clientPorts(68, 67) && m.dhcp(p, p.iface.Static4)
	case p.tuple.Proto == protoUDP && p.family == 6:
		return p.tuple.Src.IsLinkLocalUnicast() && p.clientPorts(546, 547) && m.dhcp(p, p.iface.Static6)
	}
	return false
}

// dhcpPatience is how long servers may reply.
const dhcpPatience = 6400 // ticks

// dhcp reports whether a packet between the box's own DHCP client and a server passes.
// Queries always do. Replies do if the box has no address with unlimited lifetime there,
// or has asked.
func (m *Model) dhcp(p *packet, static bool) bool {
	if p.egress() {
		m.asked[p.iface.Index] = m.now
		return true
	}
	asked, ever := m.asked[p.iface.Index]
	return !static || ever && m.now-asked < dhcpPatience
}

// clientPorts reports whether the packet is between the box's own DHCP client
// and a server: from client to server at egress, the other way at ingress.
func (p *packet) clientPorts(client, server uint16) bool {
	if p.egress() {
		return p.tuple.SPort == client && p.tuple.DPort == server
	}
	return p.tuple.SPort == server && p.tuple.DPort == client
}
