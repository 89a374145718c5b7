package pktrecord

import (
	"encoding/binary"
	"fmt"
)

// icmpNames holds the names of messages by type (IANA, "ICMP Parameters" and "ICMPv6
// Parameters"). Those in icmpUnreachable also depend on the code.
var icmpNames = map[uint8]map[uint8]string{
	protoICMP: {
		0: "echo reply", 3: "unreachable", 5: "redirect", 8: "echo request", 11: "time exceeded in-transit",
		12: "parameter problem", 13: "time stamp query", 14: "time stamp reply",
	},
	protoICMP6: {
		1: "destination unreachable", 2: "packet too big", 3: "time exceeded in-transit", 4: "parameter problem",
		128: "echo request", 129: "echo reply", 130: "multicast listener query", 131: "multicast listener report",
		133: "router solicitation", 134: "router advertisement", 135: "neighbor solicitation",
		136: "neighbor advertisement", 137: "redirect", 143: "multicast listener report v2",
	},
}

// icmpUnreachable says what is unreachable, by code (RFC 792, RFC 1812, 5.2.7.1; RFC
// 4443, 3.1).
var icmpUnreachable = map[uint8]map[uint8]string{
	protoICMP: {
		0: "net unreachable", 1: "host unreachable", 2: "protocol unreachable", 3: "port unreachable",
		4: "unreachable - need to frag", 9: "net unreachable - admin prohibited",
		10: "host unreachable - admin prohibited", 13: "unreachable - admin prohibited filter",
	},
	protoICMP6: {
		0: "unreachable, no route", 1: "unreachable, administratively prohibited", 3: "unreachable, address unreachable",
		4: "unreachable, port unreachable", 5: "unreachable, source address failed policy", 6: "unreachable, reject route",
	},
}

// icmp describes a message. For an error it also describes the quoted packet.
func (l *layer4) icmp() string {
	if len(l.data) < shortHeader {
		return l.cut()
	}
	head := "ICMP"
	if l.proto == protoICMP6 {
		head = "ICMP6,"
	}
	kind, code := l.data[0], l.data[1]
	name := icmpNames[l.proto][kind]
	if name == "" {
		name = fmt.Sprintf("type %d code %d", kind, code)
	}
	if what := icmpUnreachable[l.proto][code]; what != "" && isUnreachable(l.proto, kind) {
		name = what
	}
	if isEcho(l.proto, kind) {
		name += fmt.Sprintf(", id %d, seq %d", binary.BigEndian.Uint16(l.data[4:]), binary.BigEndian.Uint16(l.data[6:]))
	}
	if mtu := l.mtu(); mtu > 0 {
		name += fmt.Sprintf(" (mtu %d)", mtu)
	}
	line := fmt.Sprintf("%s > %s: %s %s, length %d", l.src, l.dst, head, name, l.length)
	if isICMPError(l.proto, kind) && len(l.data) > shortHeader {
		line += ", about " + ipSummary(l.data[shortHeader:])
	}
	return line
}

// mtu returns the MTU in a "too big" message (RFC 1191, 4; RFC 4443, 3.2). It returns 0
// if this is another message or the router reports none.
func (l *layer4) mtu() uint32 {
	switch {
	case l.proto == protoICMP && l.data[0] == 3 && l.data[1] == 4:
		return uint32(binary.BigEndian.Uint16(l.data[6:]))
	case l.proto == protoICMP6 && l.data[0] == 2:
		return binary.BigEndian.Uint32(l.data[4:])
	}
	return 0
}

func isUnreachable(proto, kind uint8) bool {
	return proto == protoICMP && kind == 3 || proto == protoICMP6 && kind == 1
}

func isEcho(proto, kind uint8) bool {
	return proto == protoICMP && (kind == 0 || kind == 8) || proto == protoICMP6 && (kind == 128 || kind == 129)
}

// isICMPError reports whether the message quotes a packet.
func isICMPError(proto, kind uint8) bool {
	if proto == protoICMP6 {
		return kind < 128
	}
	return kind == 3 || kind == 4 || kind == 5 || kind == 11 || kind == 12
}
