package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
)

// An errorHeader is the header of an ICMP error without its checksum.
type errorHeader struct {
	kind, code uint8
	rest       uint32 // the other four bytes
}

// A codes entry says what becomes of an error's code. pointer: the new header has this one.
type codes struct {
	from, to []uint8
	kind     uint8
	pointer  uint32
}

// unreachable4 and unreachable6 are the kinds of "destination unreachable" of IPv4 and IPv6
// that correspond to one of the other family (RFC 7915, 4.2 and 5.2). "Fragmentation
// needed" is not among them.
var (
	unreachable4 = []codes{
		{from: []uint8{0, 1, 5, 6, 7, 8, 11, 12}, to: []uint8{0}, kind: 1},
		{from: []uint8{9, 10, 13, 15}, to: []uint8{1}, kind: 1},
		{from: []uint8{3}, to: []uint8{4}, kind: 1},
		{from: []uint8{2}, to: []uint8{1}, kind: 4, pointer: 6},
	}
	unreachable6 = []codes{
		{from: []uint8{0, 2, 3}, to: []uint8{1}, kind: 3},
		{from: []uint8{1}, to: []uint8{10}, kind: 3},
		{from: []uint8{4}, to: []uint8{3}, kind: 3},
	}
)

// A place is a field of a header: its offsets in IPv4's and IPv6's. The first offset is what
// a pointer to any of the other family's becomes.
type place struct{ in4, in6 []uint32 }

var places4And6 = []place{
	{octets(0, 1), octets(0, 1)},
	{octets(1, 1), octets(1, 1)},
	{octets(2, 2), octets(4, 2)},    // length
	{octets(8, 1), octets(7, 1)},    // TTL
	{octets(9, 1), octets(6, 1)},    // protocol
	{octets(12, 4), octets(8, 16)},  // source
	{octets(16, 4), octets(24, 16)}, // destination
}

func octets(from, length uint32) (all []uint32) {
	for i := range length {
		all = append(all, from+i)
	}
	return all
}

// pointer returns the new place of a pointer of a family.
func pointer(family int, at uint32) (uint32, bool) {
	for _, p := range places4And6 {
		if family == 4 && slices.Contains(p.in4, at) {
			return p.in6[0], true
		}
		if family == 6 && slices.Contains(p.in6, at) {
			return p.in4[0], true
		}
	}
	return 0, false
}

// plateaus are the usual sizes of links (RFC 1191, 7) that IPv6 could use.
var plateaus = []int{32000, 17914, 8166, 4352, 2002, 1492, cutLength}

func (h *errorHeader) unreachable(all []codes) (errorHeader, bool) {
	for _, c := range all {
		if slices.Contains(c.from, h.code) {
			return errorHeader{c.kind, c.to[0], c.pointer}, true
		}
	}
	return errorHeader{}, false
}

// in6 returns the error of IPv6 for one of IPv4; length is what the quoted packet says of
// itself.
func (h *errorHeader) in6(length int) (errorHeader, bool) {
	switch {
	case h.kind == 3 && h.code == 4:
		mtu := int(h.rest & 0xffff)
		if mtu == 0 {
			mtu = plateaus[max(0, slices.IndexFunc(plateaus, func(n int) bool { return n < length || n == cutLength }))]
		}
		return errorHeader{2, 0, uint32(max(mtu+20, leastMTU6))}, true
	case h.kind == 3:
		return h.unreachable(unreachable4)
	case h.kind == 11:
		return errorHeader{3, h.code, 0}, true
	case h.kind == 12 && (h.code == 0 || h.code == 2):
		at, ok := pointer(4, h.rest>>24)
		return errorHeader{4, 0, at}, ok
	}
	return errorHeader{}, false
}

// in4 returns the error of IPv4 for one of IPv6. The quoted packet has so much shorter headers
// there.
func (h *errorHeader) in4(shorter int) (errorHeader, bool) {
	switch {
	case h.kind == 1:
		return h.unreachable(unreachable6)
	case h.kind == 2:
		return errorHeader{3, 4, uint32(min(max(int(h.rest), leastMTU6)-shorter, 0xffff))}, true
	case h.kind == 3:
		return errorHeader{11, h.code, 0}, true
	case h.kind == 4 && h.code == 1:
		return errorHeader{3, 2, 0}, true
	case h.kind == 4 && h.code == 0:
		at, ok := pointer(6, h.rest)
		return errorHeader{12, 0, at << 24}, ok
	}
	return errorHeader{}, false
}

// quoteLength returns how much of an error is quote if more follows it (RFC 4884), else 0.
func (h *errorHeader) quoteLength(family int) int {
	n := int(h.rest>>16&0xff) * 4
	if family == 6 {
		n = int(h.rest>>24) * 8
		if h.kind == 2 || h.kind == 4 {
			n = 0
		}
	}
	if n < 128 {
		return 0
	}
	return n
}

// quotedSize returns what the quoted packet says that it has behind its headers.
func (q *quote) quotedSize() int {
	if q.ip.family == 4 {
		return int(binary.BigEndian.Uint16(q.ip.header[2:]) - header4)
	}
	return int(binary.BigEndian.Uint16(q.ip.header[4:]) - uint16(len(q.ip.header)-header6))
}

// isPlain reports whether weir may have sent the quoted packet: it sends neither options nor
// extension headers, except for that of a fragment.
func (q *quote) isPlain() bool {
	n := len(q.ip.header)
	if q.ip.family == 4 {
		return n == header4
	}
	return n == header6 || n == header6+fragmentHeader && q.ip.header[6] == nextFragment
}

// inOtherFamily returns the quoted packet's IP header as its sender sent it, with the tuple t.
// It is whole, or a first fragment.
func (q *quote) inOtherFamily(t state.Tuple) []byte {
	old := q.ip.header
	if q.ip.family == 4 {
		b := make([]byte, header6)
		b[0], b[1] = 0x60|old[1]>>4, old[1]<<4
		b[6], b[7] = t.Proto, old[8]
		copy(b[8:], t.Src.AsSlice())
		copy(b[24:], t.Dst.AsSlice())
		if old[6]&0x20 != 0 {
			b[6] = nextFragment
			b = append(b, t.Proto, 0, 0, 1, 0, 0, old[4], old[5])
		}
		put16(b[4:], fitting(len(b)-header6+q.quotedSize()))
		return b
	}
	b := make([]byte, header4)
	b[0], b[1] = 0x45, old[0]<<4|old[1]>>4
	put16(b[2:], fitting(header4+q.quotedSize()))
	b[6] = 0x40
	if len(old) > header6 && old[header6+3]&1 != 0 {
		b[6] = 0x20
		copy(b[4:6], old[header6+6:])
	}
	b[8], b[9] = old[7], t.Proto
	copy(b[12:], t.Src.AsSlice())
	copy(b[16:], t.Dst.AsSlice())
	put16(b[10:], Sum(b))
	return b
}

// fitting returns a length, or 0 if the field is too small for it.
func fitting(n int) uint16 {
	if n > 0xffff {
		return 0
	}
	return uint16(n)
}

// quotedL4 returns what is quoted behind the IP header, as its sender sent it.
func (q *quote) quotedL4(header []byte, t state.Tuple) []byte {
	old := &q.ip
	after := &ipPacket{family: 10 - old.family, header: header, l4: slices.Clone(old.l4), proto: t.Proto}
	sum, now := old.l4Sum(), after.l4Sum()
	if sum != nil {
		sum.remember()
		now.total = onesSum(append(sum.covers(), q.pseudo(old))...)
	}
	if isICMP(old.family, old.proto) {
		after.l4[0] = changedType(after.family, old.l4[0])
	}
	after.writePorts(t)
	if sum != nil {
		covers := now.covers
		now.covers = func() [][]byte { return append(covers(), q.pseudo(after)) }
		now.restore()
	}
	return after.l4
}

// pseudo is like pseudoOf, for a packet that is quoted only in part.
func (q *quote) pseudo(ip *ipPacket) []byte {
	if ip.family == 4 && ip.proto == protoICMP {
		return nil
	}
	return binary.BigEndian.AppendUint16([]byte{0, ip.proto}, uint16(q.quotedSize()))
}

// sendFamilyError sends an error about a packet of a connection with two address families.
func (m *Model) sendFamilyError(p *packet, q *quote, c *connection, d int) Outcome {
	if !q.isPlain() {
		return p.drop(reason.ICMPMismatch)
	}
	header, ok := p.errorInOtherFamily(q)
	if !ok {
		return p.drop(reason.AfTo)
	}
	r := m.familyWay(p, c, d)
	if r.drop != nil {
		return m.familyFault(p, *r.drop, 0)
	}
	if d == 1 {
		p.logSide(c, d, true, r.route.Interface, p.came)
	}
	m.countPath(c.path, d, p)
	p.normalise(c.scrubOf(d))
	to, cut := p.errorFrame(q, c, d, header)
	switch {
	case !p.isPlain():
		return p.drop(reason.Options)
	case p.group:
		return p.drop(reason.AfTo)
	case p.ttl <= 1:
		return m.familyFault(p, reason.GatewayTTL, 0)
	case to.length() > r.route.MTU:
		return m.familyFault(p, reason.GatewayMTU, 0)
	}
	p.qos = c.qos[d]
	if o := m.familyObstacle(p, c, d, r); o != nil && p.hook == XDP {
		return p.redirectLater(*o, c, d)
	}
	if !cut {
		to.frame = append(to.frame, p.frame[p.end:]...)
	}
	return m.redirectFamily(p, to, c, d, r, reason.State)
}

// errorInOtherFamily returns the new ICMP header; false: the other family has none like it.
func (p *packet) errorInOtherFamily(q *quote) (errorHeader, bool) {
	h := p.errorHeader()
	if p.family == 4 {
		return h.in6(int(uint16(q.quotedSize() + header4)))
	}
	return h.in4(len(q.ip.header) - header4)
}

func (p *packet) errorHeader() errorHeader {
	b := p.frame[p.l4:]
	return errorHeader{b[0], b[1], binary.BigEndian.Uint32(b[4:])}
}

// errorFrame returns the error in its new family, without padding. cut: its end is missing.
func (p *packet) errorFrame(q *quote, c *connection, d int, header errorHeader) (to *packet, cut bool) {
	leaves := state.Tuple{Src: c.errorSource(p, q, d), Dst: c.leaving(d).Dst, Proto: sameIn(10-p.family, p.tuple.Proto)}
	inner := q.inOtherFamily(c.Tuple[1-d])
	l4 := q.quotedL4(inner, c.Tuple[1-d])
	left, front := len(l4), 8+len(inner)
	if h := p.errorHeader(); h.quoteLength(p.family) != 0 {
		left = min(left, h.quoteLength(p.family)-len(q.ip.header))
	}
	most := rejectMax6 - header6
	if p.family == 6 {
		most = rejectMax4 - header4
	}
	left = min(left, most-front)
	icmp := []byte{header.kind, header.code, p.frame[p.l4+2], p.frame[p.l4+3]}
	icmp = binary.BigEndian.AppendUint32(icmp, header.rest)
	icmp = slices.Concat(icmp, inner, l4[:left])
	copied := *p
	to = &copied
	to.family, to.tuple, to.end, to.l4 = 10-p.family, leaves, 0, 0
	ip := p.header4
	if to.family == 6 {
		ip = p.header6
	}
	to.frame = p.front(to.family, ip(leaves, len(icmp)), icmp)
	to.end, to.l4 = len(to.frame), len(to.frame)-len(icmp)
	before, after := p.ip(), to.ip()
	was, now := before.l4Sum(), after.l4Sum()
	now.total = onesSum(append(was.covers(), pseudoOf(before))...)
	covers := now.covers
	now.covers = func() [][]byte { return append(covers(), pseudoOf(after)) }
	now.restore()
	return to, left < len(l4)
}

// errorSource returns the source of an error. An IPv4 address other than the quoted packet's
// destination goes where that is in its IPv6 address, or into the last 32 bits. An IPv6 address
// has no counterpart: the error comes from the destination.
func (c *connection) errorSource(p *packet, q *quote, d int) netip.Addr {
	a := c.leaving(d).Src
	if p.family == 6 || p.tuple.Src == q.tuple.Dst {
		return a
	}
	for _, bits := range []int{96, 64, 56, 48, 40, 32} {
		if network := netip.PrefixFrom(a, bits); extract(network, a) == q.tuple.Dst {
			return embed(network, p.tuple.Src)
		}
	}
	return embed(netip.PrefixFrom(a, maxEmbedding), p.tuple.Src)
}
