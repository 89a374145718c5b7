package datapath

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A sample says what a packet of a test is like.
type sample struct {
	from, to     netip.AddrPort
	protocol     byte
	class        byte
	id           uint16 // of IPv4
	fragments    bool   // it may be fragmented
	seq          uint32
	flags        byte
	options      []byte // of TCP
	payload      []byte
	withoutCheck bool // the checksum of TCP or UDP is wrong
}

// bytes returns the packet, its checksums made by arithmetic that is not that of the package.
func (s *sample) bytes() []byte {
	var transport []byte
	check := -1
	switch s.protocol {
	case unix.IPPROTO_TCP:
		transport = binary.BigEndian.AppendUint16(nil, s.from.Port())
		transport = binary.BigEndian.AppendUint16(transport, s.to.Port())
		transport = binary.BigEndian.AppendUint32(transport, s.seq)
		transport = binary.BigEndian.AppendUint32(transport, 0x01020304)
		transport = append(transport, byte(5+len(s.options)/4)<<4, s.flags, 0x20, 0, 0, 0, 0, 0)
		transport, check = append(transport, s.options...), 16
	case unix.IPPROTO_UDP:
		transport = binary.BigEndian.AppendUint16(nil, s.from.Port())
		transport = binary.BigEndian.AppendUint16(transport, s.to.Port())
		transport = binary.BigEndian.AppendUint16(transport, uint16(8+len(s.payload)))
		transport, check = append(transport, 0, 0), 6
	}
	transport = append(transport, s.payload...)
	from, to := s.from.Addr().AsSlice(), s.to.Addr().AsSlice()
	if check >= 0 {
		head := append(append([]byte{}, from...), to...)
		head = binary.BigEndian.AppendUint32(head, uint32(len(transport)))
		head = append(head, 0, 0, 0, s.protocol)
		c := slowSum(append(head, transport...))
		if s.protocol == unix.IPPROTO_UDP && c == 0 {
			c = 0xffff
		}
		if s.withoutCheck {
			c ^= 0x1111
		}
		binary.BigEndian.PutUint16(transport[check:], c)
	}
	if s.from.Addr().Is6() {
		p := append([]byte{0x60 | s.class>>4, s.class << 4, 0x12, 0x34}, 0, 0, s.protocol, 61)
		binary.BigEndian.PutUint16(p[4:], uint16(len(transport)))
		return append(append(append(p, from...), to...), transport...)
	}
	p := append([]byte{0x45, s.class, 0, 0, 0, 0, 0x40, 0, 61, s.protocol, 0, 0}, from...)
	p = append(p, to...)
	if s.fragments {
		p[6] = 0
	}
	binary.BigEndian.PutUint16(p[2:], uint16(20+len(transport)))
	binary.BigEndian.PutUint16(p[4:], s.id)
	binary.BigEndian.PutUint16(p[10:], slowSum(p))
	return append(p, transport...)
}

// slowSum is the checksum of RFC 1071, a word at a time.
func slowSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		s += w
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}

// right reports whether all checksums of a packet are right.
func right(p []byte) bool {
	ip, protocol, from, to := 40, p[6], source(p), destination(p)
	if p[0]>>4 == 4 {
		if ip, protocol = int(p[0]&15)*4, p[9]; slowSum(p[:ip]) != 0 {
			return false
		}
	}
	if protocol != unix.IPPROTO_TCP && protocol != unix.IPPROTO_UDP {
		return true
	}
	head := append(append([]byte{}, from...), to...)
	head = binary.BigEndian.AppendUint32(head, uint32(len(p)-ip))
	head = append(head, 0, 0, 0, protocol)
	return slowSum(append(head, p[ip:]...)) == 0
}

// together returns what the tun device gives for packets that the kernel has put together, or for one packet:
// the checksum is left to the reader.
func together(first *sample, segment int) []byte {
	p := first.bytes()
	ip := 40
	if first.from.Addr().Is4() {
		ip = 20
	}
	check := map[byte]int{unix.IPPROTO_TCP: 16, unix.IPPROTO_UDP: 6}[first.protocol]
	if check == 0 {
		return append(make([]byte, sizeVnet), p...)
	}
	binary.LittleEndian.PutUint16(p[ip+check:], fold(pseudo(p, first.protocol, len(p)-ip)))
	h := make([]byte, sizeVnet, sizeVnet+len(p))
	h[0] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM
	if len(first.payload) > segment {
		switch {
		case first.protocol == unix.IPPROTO_UDP:
			h[1] = udpGSO
		case ip == 20:
			h[1] = unix.VIRTIO_NET_HDR_GSO_TCPV4
		default:
			h[1] = unix.VIRTIO_NET_HDR_GSO_TCPV6
		}
		binary.LittleEndian.PutUint16(h[4:], uint16(segment))
	}
	binary.LittleEndian.PutUint16(h[6:], uint16(ip))
	binary.LittleEndian.PutUint16(h[8:], uint16(check))
	return append(h, p...)
}

func netipPort(a netip.AddrPort, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr(), port)
}

func netipAddr(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
