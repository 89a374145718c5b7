package model

import "weir/internal/fw/state"

// Checksums (RFC 1071) are recomputed over everything that they cover in the frame. A
// right sum stays right, and a wrong one stays wrong by the same amount, so that the end
// host still notices.

// onesSum adds 16-bit words, the last odd byte padded with zero, and folds.
func onesSum(parts ...[]byte) uint32 {
	var sum uint64
	for _, b := range parts {
		for i := 0; i < len(b); i += 2 {
			sum += uint64(b[i]) << 8
			if i+1 < len(b) {
				sum += uint64(b[i+1])
			}
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint32(sum)
}

// Sum returns the checksum of bytes.
func Sum(b []byte) uint16 { return ^uint16(onesSum(b)) }

// A checksum is a field and the bytes that it covers.
type checksum struct {
	field  []byte // two of the covered bytes
	covers func() [][]byte
	udp    bool // 0 means none; a sum of 0 is written as 0xffff (RFC 768)
	total  uint32
}

// remember notes the total over the covered bytes, before something changes them.
func (c *checksum) remember() { c.total = onesSum(c.covers()...) }

// restore sets the field so that the total is what it was.
func (c *checksum) restore() {
	none := c.udp && c.field[0] == 0 && c.field[1] == 0
	if none || onesSum(c.covers()...) == c.total {
		return
	}
	c.field[0], c.field[1] = 0, 0
	sum := (c.total + 0xffff - onesSum(c.covers()...)) % 0xffff
	if sum == 0 && c.udp {
		sum = 0xffff
	}
	c.field[0], c.field[1] = byte(sum>>8), byte(sum)
}

// An ipPacket is the bytes of an IP packet, or of the quoted part of one.
type ipPacket struct {
	family int
	header []byte
	l4     []byte // empty for a later fragment
	proto  uint8
}

func (p *packet) ip() *ipPacket {
	ip := &ipPacket{family: p.family, header: p.frame[p.l3:p.l4], proto: p.tuple.Proto}
	if p.fragment != fragmentLater {
		ip.l4 = p.frame[p.l4:p.end]
	}
	return ip
}

// addresses returns the bytes of both addresses.
func (ip *ipPacket) addresses() []byte {
	if ip.family == 4 {
		return ip.header[12:20]
	}
	return ip.header[8:40]
}

// headerSum returns the IPv4 header's checksum; nil for IPv6, which has none.
func (ip *ipPacket) headerSum() *checksum {
	if ip.family != 4 {
		return nil
	}
	return &checksum{field: ip.header[10:12], covers: func() [][]byte { return [][]byte{ip.header} }}
}

// l4Sum returns the checksum of the protocols that translation knows; nil for others, and
// if the field is not quoted.
func (ip *ipPacket) l4Sum() *checksum {
	var at int
	pseudo := true
	switch {
	case ip.proto == protoTCP:
		at = 16
	case ip.proto == protoUDP:
		at = 6
	case isICMP(ip.family, ip.proto):
		at, pseudo = 2, ip.family == 6
	default:
		return nil
	}
	if len(ip.l4) < at+2 {
		return nil
	}
	return &checksum{
		field: ip.l4[at : at+2],
		udp:   ip.proto == protoUDP,
		covers: func() [][]byte {
			if pseudo {
				return [][]byte{ip.addresses(), ip.l4}
			}
			return [][]byte{ip.l4}
		},
	}
}

// write puts the tuple's addresses and ports (or ICMP id) into the packet and
// corrects its sums.
func (ip *ipPacket) write(t state.Tuple) {
	keep(func() {
		src, dst := t.Src.AsSlice(), t.Dst.AsSlice()
		copy(ip.addresses(), src)
		copy(ip.addresses()[len(src):], dst)
		ip.writePorts(t)
	}, ip.headerSum(), ip.l4Sum())
}

func (ip *ipPacket) writePorts(t state.Tuple) {
	if len(ip.l4) < 8 {
		return
	}
	switch {
	case translatesPorts(ip.proto):
		put16(ip.l4, t.SPort)
		put16(ip.l4[2:], t.DPort)
	case isICMP(ip.family, ip.proto):
		request, query := icmpQuery(ip.family, ip.l4[0])
		if query && ip.l4[0] == request {
			put16(ip.l4[4:], t.SPort)
		} else if query {
			put16(ip.l4[4:], t.DPort)
		}
	}
}

func put16(b []byte, v uint16) { b[0], b[1] = byte(v>>8), byte(v) }

// keep makes a change and keeps the totals of the sums; it ignores nil.
func keep(change func(), sums ...*checksum) {
	for _, s := range sums {
		if s != nil {
			s.remember()
		}
	}
	change()
	for _, s := range sums {
		if s != nil {
			s.restore()
		}
	}
}
