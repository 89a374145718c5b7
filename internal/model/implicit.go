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
		return !p.iface.Static4 && p.clientPorts(68, 67)
	case p.tuple.Proto == protoUDP && p.family == 6:
		return !p.iface.Static6 && p.tuple.Src.IsLinkLocalUnicast() && p.clientPorts(546, 547)
	}
	return false
}

// clientPorts reports whether the packet is between the box's own DHCP client
// and a server: from client to server at egress, the other way at ingress.
func (p *packet) clientPorts(client, server uint16) bool {
	if p.egress() {
		return p.tuple.SPort == client && p.tuple.DPort == server
	}
	return p.tuple.SPort == server && p.tuple.DPort == client
}
