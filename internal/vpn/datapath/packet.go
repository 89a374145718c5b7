package datapath

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Parts of headers.
const (
	size4      = 20 // of an IPv4 header without options
	size6      = 40 // of an IPv6 header
	sizeTCP    = 20 // of a TCP header without options
	sizeUDP    = 8
	flagFIN    = 0x01
	flagPSH    = 0x08
	flagACK    = 0x10
	flagCWR    = 0x80
	ecnMask    = 0x03
	ecnECT1    = 0x01
	ecnECT0    = 0x02
	ecnCE      = 0x03
	ipv4Parts  = 0x3fff // of the flags and the offset: what only fragments have
	ipv4Intact = 0x4000 // don't fragment
)

// lengthOf returns the length that a packet's header says, or 0 if it cannot be.
func lengthOf(p []byte) int {
	switch {
	case len(p) >= size4 && p[0]>>4 == 4:
		n, headers := int(binary.BigEndian.Uint16(p[2:])), int(p[0]&15)*4
		if headers >= size4 && headers <= n && n <= len(p) {
			return n
		}
	case len(p) >= size6 && p[0]>>4 == 6:
		if n := size6 + int(binary.BigEndian.Uint16(p[4:])); n <= len(p) {
			return n
		}
	}
	return 0
}

// source returns the source address of a packet that lengthOf has looked at.
func source(p []byte) []byte {
	if p[0]>>4 == 4 {
		return p[12:16]
	}
	return p[8:24]
}

// destination returns its destination address.
func destination(p []byte) []byte {
	if p[0]>>4 == 4 {
		return p[16:20]
	}
	return p[24:40]
}

// class returns its field of DSCP and ECN.
func class(p []byte) byte {
	if p[0]>>4 == 4 {
		return p[1]
	}
	return p[0]<<4 | p[1]>>4
}

// setClass changes that field.
func setClass(p []byte, to byte) {
	if p[0]>>4 == 6 {
		p[0], p[1] = p[0]&0xf0|to>>4, p[1]&0x0f|to<<4
		return
	}
	was := binary.LittleEndian.Uint16(p)
	p[1] = to
	// As RFC 1624 says: a header that was damaged stays so.
	put(p[10:], uint64(^binary.LittleEndian.Uint16(p[10:]))+uint64(^was)+uint64(binary.LittleEndian.Uint16(p)))
}

// decapsulate gives a packet the ECN of what it came in, as section 4.2 of RFC 6040 says. It returns false if
// the packet has to be dropped: it met congestion, and nobody would be told.
func decapsulate(p []byte, outer byte) bool {
	inner := class(p)
	switch {
	case outer&ecnMask == ecnCE && inner&ecnMask == 0:
		return false
	case outer&ecnMask == ecnCE && inner&ecnMask != ecnCE:
		setClass(p, inner|ecnCE)
	case outer&ecnMask == ecnECT1 && inner&ecnMask == ecnECT0:
		setClass(p, inner&^ecnMask|ecnECT1)
	}
	return true
}

// headersOf returns how long the headers of a packet are that may be merged with others of its kind: TCP with
// data and no flags but ACK and PSH, or UDP, and no fragment, no options of IP. Otherwise it returns 0.
func headersOf(p []byte) int {
	ip, protocol := size6, p[6]
	if p[0]>>4 == 4 {
		if p[0]&15 != size4/4 || binary.BigEndian.Uint16(p[6:])&ipv4Parts != 0 {
			return 0
		}
		ip, protocol = size4, p[9]
	}
	switch {
	case protocol == unix.IPPROTO_TCP && len(p) > ip+sizeTCP:
		n := ip + int(p[ip+12]>>4)*4
		if p[ip+13]&^flagPSH == flagACK && p[ip+12]&15 == 0 && n >= ip+sizeTCP && n < len(p) {
			return n
		}
	case protocol == unix.IPPROTO_UDP && len(p) > ip+sizeUDP:
		if int(binary.BigEndian.Uint16(p[ip+4:])) == len(p)-ip && binary.BigEndian.Uint16(p[ip+6:]) != 0 {
			return ip + sizeUDP
		}
	}
	return 0
}

// protocolOf returns the protocol of a packet that headersOf has looked at.
func protocolOf(p []byte) byte {
	if p[0]>>4 == 4 {
		return p[9]
	}
	return p[6]
}

// intact reports whether the checksums of a packet are right that headersOf has looked at.
func intact(p []byte) bool {
	ip, protocol := size6, p[6]
	if p[0]>>4 == 4 {
		if ip, protocol = size4, p[9]; fold(sum(p[:size4], 0)) != 0xffff {
			return false
		}
	}
	return fold(sum(p[ip:], pseudo(p, protocol, len(p)-ip))) == 0xffff
}

// flowOf returns a number that is the same for all packets of a connection, in both directions.
func flowOf(p []byte) uint32 {
	var h uint32
	s, d := source(p), destination(p)
	for i := 0; i < len(s); i += 4 {
		h = h*31 + (binary.BigEndian.Uint32(s[i:]) ^ binary.BigEndian.Uint32(d[i:]))
	}
	ip, protocol := size6, p[6]
	if p[0]>>4 == 4 {
		ip, protocol = int(p[0]&15)*4, p[9]
		if binary.BigEndian.Uint16(p[6:])&ipv4Parts != 0 {
			protocol = 0 // only the first fragment has ports
		}
	}
	if (protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_UDP) && len(p) >= ip+4 {
		h ^= uint32(binary.BigEndian.Uint16(p[ip:])^binary.BigEndian.Uint16(p[ip+2:])) * 0x9e3779b1
	}
	h ^= h >> 15
	h *= 0x85ebca6b
	return h ^ h>>13
}
