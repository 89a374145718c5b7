package ruletest

import (
	"encoding/binary"
	"slices"
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
	payload := p.payload()
	if p.Src.Is4() {
		return p.ip4(payload)
	}
	header := []byte{6<<4 | p.TOS>>4, p.TOS << 4, 0, 0, 0, 0, p.Proto, p.hopLimit()}
	binary.BigEndian.PutUint16(header[4:], uint16(len(payload)))
	return slices.Concat(header, p.Src.AsSlice(), p.Dst.AsSlice(), payload)
}

func (p *Packet) ip4(payload []byte) []byte {
	header := slices.Concat([]byte{4<<4 | 5, p.TOS, 0, 0, 0, 0, 0x40, 0, p.hopLimit(), p.Proto, 0, 0}, p.Src.AsSlice(), p.Dst.AsSlice())
	binary.BigEndian.PutUint16(header[2:], uint16(len(header)+len(payload)))
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	return append(header, payload...)
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
	switch p.Proto {
	case protoTCP:
		b := append(ports, 0, 0, 0, 1, 0, 0, 0, 0, 5<<4, p.Flags, 0xff, 0xff, 0, 0, 0, 0)
		binary.BigEndian.PutUint16(b[16:], p.sum(b))
		return b
	case protoUDP:
		b := append(ports, 0, 8, 0, 0)
		binary.BigEndian.PutUint16(b[6:], p.sum(b))
		return b
	case protoSCTP:
		return append(ports, make([]byte, 8)...)
	case protoICMP:
		b := append([]byte{p.Type, p.Code, 0, 0, 0, 1, 0, 1}, p.quoted()...)
		binary.BigEndian.PutUint16(b[2:], checksum(b))
		return b
	case protoICMP6:
		b := append([]byte{p.Type, p.Code, 0, 0, 0, 1, 0, 1}, p.quoted()...)
		binary.BigEndian.PutUint16(b[2:], p.sum(b))
		return b
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

// sum returns the checksum of a payload with its pseudo header.
func (p *Packet) sum(payload []byte) uint16 {
	length := binary.BigEndian.AppendUint16(nil, uint16(len(payload)))
	return checksum(slices.Concat(p.Src.AsSlice(), p.Dst.AsSlice(), length, []byte{0, p.Proto}, payload))
}

// checksum follows RFC 1071, over whole 16-bit words; an odd byte is the upper half of
// one.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i]) << 8
		if i+1 < len(b) {
			sum += uint32(b[i+1])
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
