package datapath

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Limits of what is merged into one packet: UDP_MAX_SEGMENTS of older kernels, and the fields of lengths.
const (
	maxMerged = 64
	maxPacket = 0xffff
)

// A merger puts packets of one connection that follow each other together, as the kernel's GRO does. Nothing is
// copied: it collects where the parts are, for one write.
type merger struct {
	vnet    [sizeVnet]byte
	first   []byte // the first packet
	ip      int    // how long its IP header is
	tcp     bool
	headers int    // how long all its headers are
	segment int    // bytes of its payload
	size    int    // of all
	count   int    // of packets
	next    uint32 // TCP's sequence number of the next
	full    bool   // nothing may be added
	parts   [1 + maxMerged]unix.Iovec
}

// begin takes a packet as the first. headers is how long its headers are, 0 if nothing may be added.
func (m *merger) begin(p []byte, headers int) {
	m.first, m.headers, m.size, m.count, m.full = p, headers, len(p), 1, headers == 0
	m.part(1, p)
	if m.full {
		return
	}
	m.ip, m.tcp = size6, p[6] == unix.IPPROTO_TCP
	if p[0]>>4 == 4 {
		m.ip, m.tcp = size4, p[9] == unix.IPPROTO_TCP
	}
	m.segment = len(p) - headers
	if m.tcp {
		m.next = binary.BigEndian.Uint32(p[m.ip+4:]) + uint32(m.segment)
		m.full = p[m.ip+13]&flagPSH != 0
	}
}

func (m *merger) part(i int, b []byte) {
	m.parts[i].Base = &b[0]
	m.parts[i].SetLen(len(b))
}

// add adds a packet, or returns false.
func (m *merger) add(p []byte, headers int) bool {
	payload := len(p) - headers
	if m.full || headers != m.headers || m.count == maxMerged || payload > m.segment || m.size+payload > maxPacket || !m.follows(p) {
		return false
	}
	m.count++
	m.part(m.count, p[headers:])
	m.size += payload
	m.full = payload < m.segment
	if m.tcp {
		m.next += uint32(payload)
		if p[m.ip+13]&flagPSH != 0 {
			m.first[m.ip+13] |= flagPSH
			m.full = true
		}
	}
	return true
}

// follows reports whether the headers of a packet are those of the next one of the connection. They are as long
// as those of the first.
func (m *merger) follows(p []byte) bool {
	f, t := m.first, m.ip
	if m.ip == size4 {
		same := p[0] == f[0] && p[1] == f[1] && bytes.Equal(p[6:10], f[6:10]) && bytes.Equal(p[12:20], f[12:20])
		numbered := binary.BigEndian.Uint16(p[4:]) == binary.BigEndian.Uint16(f[4:])+uint16(m.count)
		if !same || !numbered && binary.BigEndian.Uint16(p[6:])&ipv4Intact == 0 {
			return false
		}
	} else if !bytes.Equal(p[:4], f[:4]) || !bytes.Equal(p[6:size6], f[6:size6]) {
		return false
	}
	if !bytes.Equal(p[t:t+4], f[t:t+4]) { // the ports
		return false
	}
	if !m.tcp {
		return true
	}
	return binary.BigEndian.Uint32(p[t+4:]) == m.next && bytes.Equal(p[t+8:t+13], f[t+8:t+13]) && (p[t+13]^f[t+13])&^flagPSH == 0 &&
		bytes.Equal(p[t+14:t+16], f[t+14:t+16]) && bytes.Equal(p[t+18:m.headers], f[t+18:m.headers])
}

// end returns what is to be written to the tun device. Nothing may be added after that.
func (m *merger) end() []unix.Iovec {
	m.vnet = [sizeVnet]byte{}
	m.part(0, m.vnet[:])
	if m.count == 1 {
		return m.parts[:2]
	}
	p, kind, check, protocol := m.first, byte(udpGSO), 6, byte(unix.IPPROTO_UDP)
	if m.tcp {
		kind, check, protocol = unix.VIRTIO_NET_HDR_GSO_TCPV6, 16, unix.IPPROTO_TCP
		if m.ip == size4 {
			kind = unix.VIRTIO_NET_HDR_GSO_TCPV4
		}
	} else {
		binary.BigEndian.PutUint16(p[m.ip+4:], uint16(m.size-m.ip))
	}
	if m.ip == size4 {
		binary.BigEndian.PutUint16(p[2:], uint16(m.size))
		p[10], p[11] = 0, 0
		put(p[10:], sum(p[:size4], 0))
	} else {
		binary.BigEndian.PutUint16(p[4:], uint16(m.size-size6))
	}
	// The kernel, or the hardware, adds the rest of the sum.
	binary.LittleEndian.PutUint16(p[m.ip+check:], fold(pseudo(p, protocol, m.size-m.ip)))
	m.vnet[0], m.vnet[1] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM, kind
	binary.LittleEndian.PutUint16(m.vnet[2:], uint16(m.headers))
	binary.LittleEndian.PutUint16(m.vnet[4:], uint16(m.segment))
	binary.LittleEndian.PutUint16(m.vnet[6:], uint16(m.ip))
	binary.LittleEndian.PutUint16(m.vnet[8:], uint16(check))
	return m.parts[:m.count+1]
}
