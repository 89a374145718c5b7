package model

import "encoding/binary"

// icmpQuery returns the request's type if t is a query or the reply to one.
func icmpQuery(family int, t uint8) (request uint8, ok bool) {
	if family == 6 {
		return 128, t == 128 || t == 129
	}
	switch t {
	case 0, 8: // echo
		return 8, true
	case 13, 14: // timestamp
		return 13, true
	case 15, 16: // information
		return 15, true
	case 17, 18: // address mask
		return 17, true
	}
	return 0, false
}

// isICMPError reports whether messages of type t quote the packet they are about.
func isICMPError(family int, t uint8) bool {
	if family == 6 {
		return t >= 1 && t <= 4
	}
	switch t {
	case 3, 4, 5, 11, 12:
		return true
	}
	return false
}

// icmpPorts returns the ports of an ICMP message: for queries the id on the asking side
// and the request's type on the other; else the type.
func icmpPorts(family int, icmp []byte) (sport, dport uint16) {
	request, query := icmpQuery(family, icmp[0])
	if !query {
		return uint16(icmp[0]), 0
	}
	id := binary.BigEndian.Uint16(icmp[4:])
	if icmp[0] == request {
		return id, uint16(request)
	}
	return uint16(request), id
}
