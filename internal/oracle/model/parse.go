package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

const (
	etherHeader     = 14
	etherTypeIPv4   = 0x0800
	etherTypeIPv6   = 0x86dd
	etherType8021Q  = 0x8100
	etherType8021AD = 0x88a8
	tagLength       = 4
	mostTags        = 2
	vlanIDMask      = 0x0fff
)

// parse is step 1. It returns the packet, and the reason if the frame ends here. Then
// only the interface that it belongs to is known.
func parse(f *Frame, i *Interface, b *Box, rules *resolve.Ruleset) (*packet, *reason.Reason) {
	p := &packet{frame: f.Bytes, iface: i, hook: f.Hook}
	p.pieces = rules != nil && rules.Options.FragmentsAlone && !p.egress()
	etherType, why := p.parseEthernet(b)
	if why != nil {
		return p, why
	}
	switch etherType {
	case etherTypeIPv4:
		why = p.parseIPv4()
	case etherTypeIPv6:
		why = p.parseIPv6()
	default:
		why = reasonFor(reason.Implicit)
	}
	if why != nil {
		return p, why
	}
	if why := p.parseL4(); why != nil {
		return p, why
	}
	p.came, p.prio = slices.Clone(p.frame[p.l3:p.end]), p.prioOf(f)
	return p, nil
}

func reasonFor(r reason.Reason) *reason.Reason { return &r }

// parseEthernet returns the frame's EtherType. Devices without Ethernet header have it
// beside the frame; here it comes from the version field.
func (p *packet) parseEthernet(b *Box) (uint16, *reason.Reason) {
	if p.iface.L3 {
		if len(p.frame) > 0 && p.frame[0]>>4 == 6 {
			return etherTypeIPv6, nil
		}
		return etherTypeIPv4, nil
	}
	if len(p.frame) < etherHeader {
		return 0, reasonFor(reason.Short)
	}
	p.l3 = etherHeader
	if p.hook == XDP {
		p.parseTags(b)
	}
	if !p.egress() && !p.iface.Loopback {
		p.group = p.frame[0]&1 != 0
		if !p.group && [6]byte(p.frame[:6]) != p.iface.MAC {
			return 0, reasonFor(reason.OtherMAC)
		}
	}
	return binary.BigEndian.Uint16(p.frame[p.l3-2:]), nil
}

// parseTags skips the tags of a frame if it belongs to an interface by them.
func (p *packet) parseTags(b *Box) {
	found, at := p.iface, p.l3
	for range mostTags {
		kind := binary.BigEndian.Uint16(p.frame[at-2:])
		if kind != etherType8021Q && kind != etherType8021AD {
			break
		}
		if len(p.frame) < at+tagLength {
			return
		}
		if found = b.carried(found, kind, binary.BigEndian.Uint16(p.frame[at:])&vlanIDMask); found == nil {
			return
		}
		p.tagged, p.tci = true, binary.BigEndian.Uint16(p.frame[at:])
		at += tagLength
	}
	p.iface, p.l3 = found, at
}

func (p *packet) parseIPv4() *reason.Reason {
	ip := p.frame[p.l3:]
	if len(ip) < 20 {
		return reasonFor(reason.Short)
	}
	header := int(ip[0]&15) * 4
	total := int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || header < 20 || total < header || total > len(ip) {
		return reasonFor(reason.Malformed)
	}
	if !p.egress() && header == 20 && Sum(ip[:20]) != 0 {
		return reasonFor(reason.IPChecksum)
	}
	p.family = 4
	p.ttl, p.tos = ip[8], ip[1]
	p.l4 = p.l3 + header
	p.end = p.l3 + total
	p.options = header > 20
	p.tuple = state.Tuple{
		Src:   netip.AddrFrom4([4]byte(ip[12:16])),
		Dst:   netip.AddrFrom4([4]byte(ip[16:20])),
		Proto: ip[9],
	}
	field := binary.BigEndian.Uint16(ip[6:])
	offset, more := int(field&0x1fff)*8, field&0x2000 != 0
	if offset == 0 && !more {
		return nil
	}
	p.fragmentID = uint32(binary.BigEndian.Uint16(ip[4:]))
	p.fragmentProto = p.tuple.Proto
	return p.parseFragment(offset, total-header, more)
}

// parseFragment notes a fragment with payload bytes.
func (p *packet) parseFragment(offset, payload int, more bool) *reason.Reason {
	p.fragment, p.fragmentOffset, p.fragmentPayload, p.more = fragmentFirst, offset, payload, more
	if offset > 0 || p.pieces {
		p.fragment = fragmentLater
	}
	if offset+payload > 65535 || more && payload%8 != 0 {
		return reasonFor(reason.Malformed)
	}
	return nil
}

func (p *packet) parseIPv6() *reason.Reason {
	ip := p.frame[p.l3:]
	if len(ip) < 40 {
		return reasonFor(reason.Short)
	}
	total := 40 + int(binary.BigEndian.Uint16(ip[4:]))
	if ip[0]>>4 != 6 || total > len(ip) {
		return reasonFor(reason.Malformed)
	}
	p.family = 6
	p.ttl, p.tos = ip[7], (ip[0]<<4|ip[1]>>4)&0xfc
	p.l4 = p.l3 + 40
	p.end = p.l3 + total
	p.tuple = state.Tuple{
		Src:   netip.AddrFrom16([16]byte(ip[8:24])),
		Dst:   netip.AddrFrom16([16]byte(ip[24:40])),
		Proto: ip[6],
	}
	switch {
	case p.tuple.Src.Is4In6():
		return reasonFor(reason.MartianSource)
	case p.tuple.Dst.Is4In6():
		return reasonFor(reason.MartianDest)
	}
	if p.tuple.Src.IsLinkLocalUnicast() || p.tuple.Dst.IsLinkLocalUnicast() {
		p.tuple.Zone = uint16(p.iface.Index)
	}
	return p.parseExtensions()
}

// short returns the reason for a packet that ends before a header it must have.
func (p *packet) short() *reason.Reason {
	if p.fragment == fragmentFirst {
		return reasonFor(reason.FragmentShort)
	}
	return reasonFor(reason.Short)
}

func (p *packet) parseL4() *reason.Reason {
	if p.fragment == fragmentLater {
		return nil
	}
	l4 := p.frame[p.l4:p.end]
	switch {
	case p.tuple.Proto == protoTCP:
		return p.parseTCP(l4)
	case p.tuple.Proto == protoUDP:
		return p.parseUDP(l4)
	case p.tuple.Proto == protoSCTP:
		return p.parseSCTP(l4)
	case p.isICMP():
		return p.parseICMP(l4)
	}
	return nil
}

func (p *packet) parseTCP(tcp []byte) *reason.Reason {
	if len(tcp) < 20 {
		return p.short()
	}
	header := int(tcp[12]>>4) * 4
	if header < 20 || header > len(tcp) && p.fragment == fragmentNone {
		return reasonFor(reason.Malformed)
	}
	if header > len(tcp) {
		return p.short()
	}
	p.setPorts(tcp)
	p.tcp = segment{
		flags:   tcp[13],
		header:  header,
		payload: len(tcp) - header,
		seq:     binary.BigEndian.Uint32(tcp[4:]),
		ack:     binary.BigEndian.Uint32(tcp[8:]),
		window:  uint32(binary.BigEndian.Uint16(tcp[14:])),
	}
	if !p.tcp.possible() {
		return reasonFor(reason.TCPFlags)
	}
	if p.tcp.has(flagSYN) && p.tcp.has(flagFIN) {
		p.tcp.flags &^= flagFIN
		p.losesFIN = true
	}
	return nil
}

// possible reports whether TCP can send the flags together. SYN with FIN may pass, without
// the FIN.
func (s *segment) possible() bool {
	syn, fin, rst, push, ack, urgent := s.has(flagSYN), s.has(flagFIN), s.has(flagRST), s.has(flagPSH), s.has(flagACK), s.has(flagURG)
	switch {
	case syn && rst, !syn && !ack && !rst:
		return false
	case !ack:
		return !(fin && !syn) && !push && !urgent
	}
	return true
}

func (s *segment) has(flag uint8) bool { return s.flags&flag != 0 }

func (p *packet) parseUDP(udp []byte) *reason.Reason {
	if len(udp) < 8 {
		return p.short()
	}
	length := int(binary.BigEndian.Uint16(udp[4:]))
	if p.fragment == fragmentNone && (length < 8 || length > len(udp)) {
		return reasonFor(reason.Malformed)
	}
	p.setPorts(udp)
	if p.tuple.DPort == 0 {
		return reasonFor(reason.Malformed)
	}
	return nil
}

func (p *packet) parseSCTP(sctp []byte) *reason.Reason {
	if len(sctp) < 12 {
		return p.short()
	}
	p.setPorts(sctp)
	return nil
}

func (p *packet) setPorts(l4 []byte) {
	p.tuple.SPort = binary.BigEndian.Uint16(l4)
	p.tuple.DPort = binary.BigEndian.Uint16(l4[2:])
}

func (p *packet) parseICMP(icmp []byte) *reason.Reason {
	if len(icmp) < 4 {
		return p.short()
	}
	p.icmpType, p.icmpCode = icmp[0], icmp[1]
	p.icmpError = isICMPError(p.family, p.icmpType)
	_, query := icmpQuery(p.family, p.icmpType)
	if len(icmp) < 8 && (p.family == 4 || p.icmpError || query) {
		return p.short()
	}
	p.tuple.SPort, p.tuple.DPort = icmpPorts(p.family, icmp)
	return nil
}
