package pktrecord

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
)

// Numbers of protocols, EtherTypes and IPv6 extension headers that a line names (IANA,
// "Protocol Numbers" and "IEEE 802 Numbers").
const (
	etherIP4  = 0x0800
	etherARP  = 0x0806
	etherVLAN = 0x8100
	etherQinQ = 0x88a8
	etherIP6  = 0x86dd

	protoHopByHop    = 0
	protoICMP        = 1
	protoTCP         = 6
	protoUDP         = 17
	protoRouting     = 43
	protoFragment    = 44
	protoAuth        = 51
	protoICMP6       = 58
	protoDestination = 60
	protoSCTP        = 132
)

const (
	etherHeader = 14
	vlanTag     = 4
	ip4Header   = 20
	ip6Header   = 40
	tcpHeader   = 20
	sctpHeader  = 12
	shortHeader = 8 // size of UDP, ICMP and IPv6 extension headers
)

// maxHeaders is the most VLAN tags, and the most IPv6 extension headers, that are
// skipped.
const maxHeaders = 8

// Summary returns a frame as one line, as tcpdump -n prints it: addresses, ports and what
// distinguishes packets of one connection. bare says that it begins with the IP header.
// If the captured bytes end too early, the line says so, as "[|tcp]".
func Summary(frame []byte, bare bool) string {
	if bare {
		return ipSummary(frame)
	}
	at, kind, tags := etherPayload(frame)
	if at > len(frame) {
		return "[|ether]"
	}
	data := frame[at:]
	switch kind {
	case etherIP4, etherIP6:
		return tags + ipSummary(data)
	case etherARP:
		return tags + arpSummary(data)
	}
	return fmt.Sprintf("%sethertype 0x%04x, length %d", tags, kind, len(data))
}

// etherPayload returns where the payload of an Ethernet frame begins, its type, and the
// VLAN tags before it as text. If the frame is too short, at is beyond its end.
func etherPayload(frame []byte) (at int, kind uint16, tags string) {
	at = etherHeader
	if len(frame) < at {
		return at, 0, ""
	}
	kind = binary.BigEndian.Uint16(frame[at-2:])
	for range maxHeaders {
		if kind != etherVLAN && kind != etherQinQ {
			break
		}
		if at += vlanTag; len(frame) < at {
			return at, 0, tags
		}
		tags += fmt.Sprintf("vlan %d, ", binary.BigEndian.Uint16(frame[at-4:])&0xfff)
		kind = binary.BigEndian.Uint16(frame[at-2:])
	}
	return at, kind, tags
}

func ipSummary(b []byte) string {
	if len(b) == 0 {
		return "[|ip]"
	}
	switch b[0] >> 4 {
	case 4:
		return ip4Summary(b)
	case 6:
		return ip6Summary(b)
	}
	return fmt.Sprintf("IP version %d, length %d", b[0]>>4, len(b))
}

// layer4 is the part after an IP header.
type layer4 struct {
	src, dst netip.Addr
	proto    uint8
	data     []byte // the captured bytes
	length   int    // of data on the wire, from the IP header
	fragment string // description of a fragment
	later    bool   // a fragment without L4 header
}

func ip4Summary(b []byte) string {
	if len(b) < ip4Header {
		return "[|ip]"
	}
	header := int(b[0]&0xf) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 {
		total = len(b) // a super-packet, which TCX sees before it is segmented
	}
	l := layer4{src: addr4(b[12:]), dst: addr4(b[16:]), proto: b[9], length: total - header}
	if header < ip4Header || header > len(b) || l.length < 0 {
		return fmt.Sprintf("%s > %s: bad header: ihl %d, total length %d", l.src, l.dst, b[0]&0xf, total)
	}
	l.data = captured(b[header:], l.length)
	l.setFragment(int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint16(b[6:])&0x1fff)*8, b[6]&0x20 != 0)
	return l.String()
}

func ip6Summary(b []byte) string {
	if len(b) < ip6Header {
		return "[|ip6]"
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length == 0 {
		length = len(b) - ip6Header
	}
	l := layer4{src: addr6(b[8:]), dst: addr6(b[24:]), proto: b[6], length: length}
	l.data = captured(b[ip6Header:], length)
	l.skipExtensions()
	return l.String()
}

// skipExtensions goes to the header after the IPv6 extension headers (RFC 8200, 4).
func (l *layer4) skipExtensions() {
	for range maxHeaders {
		if len(l.data) < shortHeader {
			return
		}
		size := (int(l.data[1]) + 1) * 8
		switch l.proto {
		case protoHopByHop, protoRouting, protoDestination:
		case protoAuth:
			size = (int(l.data[1]) + 2) * 4
		case protoFragment:
			size = shortHeader
			offset := binary.BigEndian.Uint16(l.data[2:])
			l.setFragment(int(binary.BigEndian.Uint32(l.data[4:])), int(offset&^7), offset&1 != 0)
		default:
			return
		}
		if size > len(l.data) {
			return
		}
		l.proto, l.data, l.length = l.data[0], l.data[size:], l.length-size
		if l.later {
			return
		}
	}
}

func (l *layer4) setFragment(id, offset int, more bool) {
	if offset == 0 && !more {
		return
	}
	plus := ""
	if more {
		plus = "+"
	}
	l.fragment = fmt.Sprintf(" (frag %d@%d%s)", id, offset, plus)
	l.later = offset > 0
}

// String returns the line: the addresses, then the protocol's details.
func (l *layer4) String() string {
	if l.later {
		return fmt.Sprintf("%s > %s: %s%s, length %d", l.src, l.dst, protoName(l.proto), l.fragment, l.length)
	}
	var said string
	switch l.proto {
	case protoTCP:
		said = l.tcp()
	case protoUDP:
		said = l.udp()
	case protoICMP, protoICMP6:
		said = l.icmp()
	case protoSCTP:
		said = l.sctp()
	default:
		return fmt.Sprintf("%s > %s: %s%s, length %d", l.src, l.dst, protoName(l.proto), l.fragment, l.length)
	}
	return said + l.fragment
}

// ends returns the addresses with their ports.
func (l *layer4) ends() string {
	return fmt.Sprintf("%s.%d > %s.%d", l.src, binary.BigEndian.Uint16(l.data), l.dst, binary.BigEndian.Uint16(l.data[2:]))
}

// cut returns the line of a packet whose header is incomplete. ICMP errors quote no more
// than the ports.
func (l *layer4) cut() string {
	if len(l.data) >= 4 && (l.proto == protoTCP || l.proto == protoUDP || l.proto == protoSCTP) {
		return fmt.Sprintf("%s: [|%s]", l.ends(), protoName(l.proto))
	}
	return fmt.Sprintf("%s > %s: [|%s]", l.src, l.dst, protoName(l.proto))
}

// tcpFlags holds the letters of the header's bits as tcpdump shows them, in its order.
const tcpFlags = "FSRP.UEW"

func (l *layer4) tcp() string {
	if len(l.data) < tcpHeader {
		return l.cut()
	}
	flags := ""
	for i, letter := range tcpFlags {
		if l.data[13]&(1<<i) != 0 {
			flags += string(letter)
		}
	}
	if flags == "" {
		flags = "none"
	}
	seq, payload := binary.BigEndian.Uint32(l.data[4:]), l.length-int(l.data[12]>>4)*4
	line := fmt.Sprintf("%s: Flags [%s]", l.ends(), flags)
	if payload < 0 {
		return fmt.Sprintf("%s, bad header: data offset %d", line, l.data[12]>>4)
	}
	switch {
	case payload > 0:
		line += fmt.Sprintf(", seq %d:%d", seq, seq+uint32(payload))
	case l.data[13]&0x07 != 0: // FIN, SYN and RST occupy or mark a sequence number
		line += fmt.Sprintf(", seq %d", seq)
	}
	if l.data[13]&0x10 != 0 {
		line += fmt.Sprintf(", ack %d", binary.BigEndian.Uint32(l.data[8:]))
	}
	return fmt.Sprintf("%s, win %d, length %d", line, binary.BigEndian.Uint16(l.data[14:]), payload)
}

func (l *layer4) udp() string {
	if len(l.data) < shortHeader {
		return l.cut()
	}
	length := int(binary.BigEndian.Uint16(l.data[4:])) - shortHeader
	if length < 0 {
		return fmt.Sprintf("%s: UDP, bad length %d", l.ends(), length+shortHeader)
	}
	return fmt.Sprintf("%s: UDP, length %d", l.ends(), length)
}

func (l *layer4) sctp() string {
	if len(l.data) < sctpHeader {
		return l.cut()
	}
	return fmt.Sprintf("%s: SCTP, length %d", l.ends(), l.length-sctpHeader)
}

func arpSummary(b []byte) string {
	const arp4 = 28 // bytes of ARP for IPv4 over Ethernet (RFC 826)
	if len(b) < arp4 || binary.BigEndian.Uint16(b[2:]) != etherIP4 {
		return fmt.Sprintf("ARP, length %d", len(b))
	}
	sender, target := addr4(b[14:]), addr4(b[24:])
	switch op := binary.BigEndian.Uint16(b[6:]); op {
	case 1:
		return fmt.Sprintf("ARP, Request who-has %s tell %s, length %d", target, sender, len(b))
	case 2:
		return fmt.Sprintf("ARP, Reply %s is-at %x:%x:%x:%x:%x:%x, length %d", sender, b[8], b[9], b[10], b[11], b[12], b[13], len(b))
	default:
		return fmt.Sprintf("ARP, operation %d, length %d", op, len(b))
	}
}

// captured removes padding after the packet.
func captured(b []byte, length int) []byte { return b[:min(len(b), max(length, 0))] }

func addr4(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b)) }
func addr6(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b)) }

func protoName(proto uint8) string {
	switch proto {
	case protoICMP:
		return "icmp"
	case protoTCP:
		return "tcp"
	case protoUDP:
		return "udp"
	case protoICMP6:
		return "icmp6"
	case protoSCTP:
		return "sctp"
	}
	return "ip-proto-" + strconv.Itoa(int(proto))
}
