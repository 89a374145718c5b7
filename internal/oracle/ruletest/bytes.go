package ruletest

import (
	"encoding/binary"

	"weir/internal/oracle/model"
)

// Hop limits. Messages that never leave a link have one that proves it.
const (
	hops       = 64
	hopsND     = 255 // RFC 4861: neighbour discovery
	hopsMLD    = 1   // RFC 2710, RFC 3376: group membership
	firstND    = 133
	lastND     = 137
	firstMLD   = 130
	lastMLD    = 132
	mldReport2 = 143
)

// Bytes returns the IP packet, with right lengths and sums.
func (p *Packet) Bytes() []byte {
	return model.IPPacket(p.payload(), p.Src, p.Dst, p.Proto, p.TOS, p.hopLimit())
}

func (p *Packet) hopLimit() byte {
	switch {
	case p.Proto == protoICMP6 && p.Type >= firstND && p.Type <= lastND:
		return hopsND
	case p.Proto == protoICMP6 && (p.Type >= firstMLD && p.Type <= lastMLD || p.Type == mldReport2), p.Proto == protoIGMP:
		return hopsMLD
	}
	return hops
}

// payload returns what follows the IP header.
func (p *Packet) payload() []byte {
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, p.SPort), p.DPort)
	icmp := append([]byte{p.Type, p.Code, 0, 0, 0, 1, 0, 1}, p.quoted()...)
	sum := func(b []byte, at int) []byte {
		binary.BigEndian.PutUint16(b[at:], model.PseudoSum(p.Src, p.Dst, p.Proto, b))
		return b
	}
	switch p.Proto {
	case protoTCP:
		return sum(append(ports, 0, 0, 0, 1, 0, 0, 0, 0, 5<<4, p.Flags, 0xff, 0xff, 0, 0, 0, 0), 16)
	case protoUDP:
		return sum(append(ports, 0, 8, 0, 0), 6)
	case protoSCTP:
		return append(ports, make([]byte, 8)...)
	case protoICMP:
		binary.BigEndian.PutUint16(icmp[2:], model.Sum(icmp))
		return icmp
	case protoICMP6:
		return sum(icmp, 2)
	}
	return make([]byte, 8)
}

// quoted returns the packet that an ICMP error is about: a UDP packet without a state,
// from the error's destination to its source.
func (p *Packet) quoted() []byte {
	isError := p.Proto == protoICMP6 && p.Type < 128
	switch p.Type {
	case 3, 4, 5, 11, 12:
		isError = isError || p.Proto == protoICMP
	}
	if !isError {
		return nil
	}
	about := Packet{Proto: protoUDP, Src: p.Dst, Dst: p.Src, SPort: 1, DPort: 1}
	return about.Bytes()
}
