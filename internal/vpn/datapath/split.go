package datapath

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// sizeVnet is the size of the header that stands before each packet of the tun device, struct virtio_net_hdr.
const sizeVnet = 10

// udpGSO is VIRTIO_NET_HDR_GSO_UDP_L4 in linux/virtio_net.h.
const udpGSO = 5

// maxHeaders is how long the headers of a packet may be that the kernel has put together.
const maxHeaders = 256

// A splitter splits what the kernel has put together into packets, in place: each gets its headers where the
// end of the one before was, which must have been used by then.
type splitter struct {
	buffer    []byte // the packet
	headers   [maxHeaders]byte
	size      int // of headers
	transport int // where TCP's or UDP's begins
	tcp       bool
	segment   int // bytes of payload in each
	at        int // where the next payload begins
	count     int // of packets that next has yet to return
	done      int // those it has
}

// start begins with what was read from the tun device. It returns false if that is no packet.
func (s *splitter) start(read []byte) bool {
	if len(read) < sizeVnet {
		return false
	}
	flags, kind := read[0], read[1]&^unix.VIRTIO_NET_HDR_GSO_ECN
	segment, begin, offset := int(binary.LittleEndian.Uint16(read[4:])), int(binary.LittleEndian.Uint16(read[6:])), int(binary.LittleEndian.Uint16(read[8:]))
	s.buffer = read[sizeVnet:]
	n := lengthOf(s.buffer)
	if kind == unix.VIRTIO_NET_HDR_GSO_NONE {
		if n == 0 {
			return false
		}
		if flags&unix.VIRTIO_NET_HDR_F_NEEDS_CSUM != 0 {
			if begin >= len(s.buffer) || begin+offset+2 > len(s.buffer) {
				return false
			}
			check := sum(s.buffer[begin:], 0)
			put(s.buffer[begin+offset:], check)
			if offset == 6 && s.buffer[begin+6]|s.buffer[begin+7] == 0 { // zero would say that UDP has none
				s.buffer[begin+6], s.buffer[begin+7] = 0xff, 0xff
			}
		}
		s.count, s.done, s.segment = 1, 0, 0
		return true
	}
	return s.startSegments(kind, segment, begin)
}

func (s *splitter) startSegments(kind byte, segment, begin int) bool {
	p := s.buffer
	if len(p) < size4 || segment == 0 {
		return false
	}
	four := p[0]>>4 == 4
	ip := size6
	if four {
		ip = int(p[0]&15) * 4
	}
	if ip < size4 || begin < ip || begin+sizeTCP > len(p) && kind != udpGSO || begin+sizeUDP > len(p) {
		return false
	}
	switch kind {
	case unix.VIRTIO_NET_HDR_GSO_TCPV4, unix.VIRTIO_NET_HDR_GSO_TCPV6:
		if four != (kind == unix.VIRTIO_NET_HDR_GSO_TCPV4) {
			return false
		}
		s.tcp, s.size = true, begin+int(p[begin+12]>>4)*4
		if s.size < begin+sizeTCP {
			return false
		}
	case udpGSO:
		s.tcp, s.size = false, begin+sizeUDP
	default:
		return false
	}
	if s.size >= len(p) || s.size > maxHeaders {
		return false
	}
	copy(s.headers[:], p[:s.size])
	s.transport, s.segment, s.at, s.done = begin, segment, s.size, 0
	s.count = (len(p) - s.size + segment - 1) / segment
	return true
}

// nextSize returns the size of the next packet.
func (s *splitter) nextSize() int {
	if s.segment == 0 {
		return len(s.buffer)
	}
	return s.size + min(s.segment, len(s.buffer)-s.at)
}

// next returns the next packet. Behind it is room for what it is padded with.
func (s *splitter) next() []byte {
	s.count--
	s.done++
	if s.segment == 0 {
		return s.buffer
	}
	end := min(s.at+s.segment, len(s.buffer))
	p := s.buffer[s.at-s.size : end]
	copy(p, s.headers[:s.size])
	s.at = end
	index := s.done - 1
	if p[0]>>4 == 4 {
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
		binary.BigEndian.PutUint16(p[4:], binary.BigEndian.Uint16(s.headers[4:])+uint16(index))
		p[10], p[11] = 0, 0
		put(p[10:], sum(p[:int(p[0]&15)*4], 0))
	} else {
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-size6))
	}
	t, protocol, check := p[s.transport:], byte(unix.IPPROTO_UDP), 6
	if s.tcp {
		protocol, check = unix.IPPROTO_TCP, 16
		binary.BigEndian.PutUint32(t[4:], binary.BigEndian.Uint32(t[4:])+uint32(index*s.segment))
		if s.count > 0 {
			t[13] &^= flagFIN | flagPSH
		}
		if index > 0 {
			t[13] &^= flagCWR
		}
	} else {
		binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
	}
	t[check], t[check+1] = 0, 0
	put(t[check:], sum(t, pseudo(p, protocol, len(t))))
	if !s.tcp && t[check]|t[check+1] == 0 {
		t[check], t[check+1] = 0xff, 0xff
	}
	return p
}
