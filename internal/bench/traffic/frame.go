package traffic

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
)

// Lengths of headers, and of the checksum at the end of a frame on a wire. Frame sizes
// include it (RFC 2544).
const (
	ethLen     = 14
	vlanLen    = 4
	sessionLen = 8 // PPPoE and PPP
	ip4Len     = 20
	ip6Len     = 40
	udpLen     = 8
	tcpLen     = 20
	fcsLen     = 4
	LeastFrame = 64 // Ethernet's minimum, with checksum
	hops       = 64 // TTL or hop limit at the start
)

// maxHeader is HEADER_WORDS of frame.h, in bytes.
const maxHeader = 88

// TCP flags.
const (
	flagSYN = 0x02
	flagRST = 0x04
	flagACK = 0x10
)

// tcpOptions are the options of a SYN: a segment size of 1460, a window scale of 14.
var tcpOptions = []byte{2, 4, 0x05, 0xb4, 1, 3, 3, 14}

// segment is what distinguishes the TCP frames of one step of a connection from those of
// another.
type segment struct {
	flags         byte
	sequence, ack uint32
	options       []byte
}

// First sequence numbers of both sides, the same for every connection.
const (
	nearSequence = 0x10000000
	farSequence  = 0x20000000
)

// frameSpec is what all frames of one kind share.
type frameSpec struct {
	ipv6           bool
	tcp            *segment // nil: UDP
	length         int      // length in memory, without the frame's checksum
	source, target net.HardwareAddr
	from, to       netip.Addr // networks, with host bits zero
	tag            uint16     // VLAN id; 0: no tag
	session        uint16     // of PPPoE, instead of a tag; 0: none
	fromIPv6       bool       // IPv4: the router gives it an id, and it may be cut
}

// link returns the length of the Ethernet header with its tag or session.
func (s *frameSpec) link() int { return ethLen + s.tagLen() }

// tagLen returns the length of what stands in front of the EtherType, or of PPP's protocol.
func (s *frameSpec) tagLen() int {
	switch {
	case s.session != 0:
		return sessionLen
	case s.tag != 0:
		return vlanLen
	}
	return 0
}

// TrueSize returns size, raised to the minimum of the frame's kind. Both include the
// frame's checksum.
func TrueSize(size int, ipv6, tcp bool) int {
	return max(size, plain(ipv6, tcp).headerLen()+fcsLen, LeastFrame)
}

// plain returns a frame without addresses, tag and TCP options.
func plain(ipv6, tcp bool) *frameSpec {
	s := &frameSpec{ipv6: ipv6}
	if tcp {
		s.tcp = &segment{}
	}
	return s
}

func (s *frameSpec) l4() int {
	if s.ipv6 {
		return s.link() + ip6Len
	}
	return s.link() + ip4Len
}

func (s *frameSpec) headerLen() int {
	if s.tcp == nil {
		return s.l4() + udpLen
	}
	return s.l4() + tcpLen + len(s.tcp.options)
}

// ethertype returns the two bytes in front of the IP header: in a session, PPP's protocol.
func (s *frameSpec) ethertype() uint16 {
	switch {
	case s.session != 0 && s.ipv6:
		return 0x0057
	case s.session != 0:
		return 0x0021
	case s.ipv6:
		return 0x86dd
	}
	return 0x0800
}

// header returns the frame's header with zeroes where frames differ: in the lowest 32
// bits of the addresses, ports, TCP sequence numbers and checksums.
func (s *frameSpec) header(ttl byte) []byte {
	h := make([]byte, s.headerLen())
	copy(h, s.target)
	copy(h[6:], s.source)
	switch {
	case s.session != 0:
		binary.BigEndian.PutUint16(h[12:], 0x8864)
		h[14] = 0x11 // version and type
		binary.BigEndian.PutUint16(h[16:], s.session)
		binary.BigEndian.PutUint16(h[18:], uint16(s.length-s.link()+2)) // with PPP's protocol
	case s.tag != 0:
		binary.BigEndian.PutUint16(h[12:], 0x8100)
		binary.BigEndian.PutUint16(h[14:], s.tag)
	}
	binary.BigEndian.PutUint16(h[s.link()-2:], s.ethertype())
	if s.ipv6 {
		s.putIPv6(h[s.link():], ttl)
	} else {
		s.putIPv4(h[s.link():], ttl)
	}
	s.putL4(h[s.l4():])
	return h
}

func (s *frameSpec) protocol() byte {
	if s.tcp != nil {
		return 6
	}
	return 17
}

func (s *frameSpec) putIPv4(ip []byte, ttl byte) {
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(s.length-s.link()))
	ip[6] = 0x40 // don't fragment
	ip[8], ip[9] = ttl, s.protocol()
}

func (s *frameSpec) putIPv6(ip []byte, ttl byte) {
	ip[0] = 0x60
	binary.BigEndian.PutUint16(ip[4:], uint16(s.length-s.link()-ip6Len))
	ip[6], ip[7] = s.protocol(), ttl
	from, to := s.from.As16(), s.to.As16()
	copy(ip[8:], from[:12])
	copy(ip[24:], to[:12])
}

func (s *frameSpec) putL4(l4 []byte) {
	if s.tcp == nil {
		binary.BigEndian.PutUint16(l4[4:], uint16(s.length-s.l4()))
		return
	}
	binary.BigEndian.PutUint32(l4[8:], s.tcp.ack)
	l4[12] = byte((tcpLen + len(s.tcp.options)) / 4 << 4)
	l4[13] = s.tcp.flags
	binary.BigEndian.PutUint16(l4[14:], 0xffff)
	copy(l4[tcpLen:], s.tcp.options)
}

// expected returns the header as it has to arrive in the first round.
func (s *frameSpec) expected(ttl byte) []byte {
	h := s.header(ttl)
	if s.tcp != nil {
		binary.BigEndian.PutUint32(h[s.l4()+4:], s.tcp.sequence)
	}
	return h
}

// sums returns the checksums of the header's constant parts: the IPv4 header, and the L4
// header with its pseudo header. The payload is zero.
func (s *frameSpec) sums() (ip, l4 uint32) {
	h := s.header(hops)
	l4 = sum16(h[s.l4():]) + uint32(s.length-s.l4()) + uint32(s.protocol())
	if s.ipv6 {
		return 0, l4 + sum16(h[s.link()+8:s.l4()])
	}
	return sum16(h[s.link():s.l4()]), l4
}

func sum16(b []byte) uint32 {
	sum := uint32(0)
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	return sum
}

// compared returns a mask of the header bits that are compared. Bits in which flows
// differ, and checksums, are not compared.
func (s *frameSpec) compared() []byte {
	mask := bytes.Repeat([]byte{0xff}, s.headerLen())
	ip, l4 := mask[s.link():], mask[s.l4():]
	if s.ipv6 {
		clear(ip[20:24])
		clear(ip[36:40])
	} else {
		clear(ip[10:20])
		if s.fromIPv6 {
			clear(ip[4:7])
		}
	}
	clear(l4[:4])
	if s.tcp != nil {
		clear(l4[16:18])
	} else {
		clear(l4[6:8])
	}
	return mask
}

// words converts bytes to the form that the BPF programs use.
func words(b []byte) [maxHeader / 8]uint64 {
	var padded [maxHeader]byte
	copy(padded[:], b)
	var w [maxHeader / 8]uint64
	for i := range w {
		w[i] = binary.NativeEndian.Uint64(padded[8*i:])
	}
	return w
}

// low32 returns the network's lowest 32 bits.
func low32(a netip.Addr) uint32 {
	b := a.AsSlice()
	return binary.BigEndian.Uint32(b[len(b)-4:])
}
