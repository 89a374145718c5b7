package dataplane

import (
	"encoding/binary"
	"hash/crc32"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Encoding and decoding of the packets in text_test.go, including checksums. The tests
// have their own encoder, so that they compare bytes that neither the dataplane nor the
// model has made.

var protoNumbers = map[string]int{"icmp": 1, "tcp": 6, "udp": 17, "icmp6": 58, "sctp": 132}

func protoName(n int) string {
	for name, number := range protoNumbers {
		if number == n {
			return name
		}
	}
	return strconv.Itoa(n)
}

func (p *pkt) number() int {
	if n, ok := protoNumbers[p.proto]; ok {
		return n
	}
	n, err := strconv.Atoi(p.proto)
	if err != nil {
		panic("packet: protocol " + p.proto)
	}
	return n
}

// frame returns the packet as a frame from one station to another.
func (p *pkt) frame(from, to string) []byte {
	ethertype := uint16(0x0800)
	if p.is6() {
		ethertype = 0x86dd
	}
	return append(ethernet(from, to, ethertype), p.encode()...)
}

func ethernet(from, to string, ethertype uint16) []byte {
	src, err := net.ParseMAC(from)
	if err != nil {
		panic(err)
	}
	dst, err := net.ParseMAC(to)
	if err != nil {
		panic(err)
	}
	return binary.BigEndian.AppendUint16(slices.Concat(dst, src), ethertype)
}

// encode returns the packet from its IP header on.
func (p *pkt) encode() []byte {
	l4 := p.encodeL4()
	if p.is6() {
		return p.encode6(l4)
	}
	head := make([]byte, 20+p.opts)
	for i := 20; i < len(head); i++ {
		head[i] = 1 // no operation
	}
	head[0] = 4<<4 | byte(len(head)/4)
	binary.BigEndian.PutUint16(head[2:], uint16(len(head)+len(l4)))
	if p.frag >= 0 {
		binary.BigEndian.PutUint16(head[4:], uint16(p.id))
		field := uint16(p.frag / 8)
		if p.more {
			field |= 0x2000
		}
		binary.BigEndian.PutUint16(head[6:], field)
	}
	head[8], head[9] = byte(p.ttl), byte(p.number())
	copy(head[12:], p.src.Addr().AsSlice())
	copy(head[16:], p.dst.Addr().AsSlice())
	binary.BigEndian.PutUint16(head[10:], ^fold(sum(head)))
	return append(head, l4...)
}

// extension returns an IPv6 extension header by name: its number and bytes.
func (p *pkt) extension(name string) (number byte, body []byte) {
	switch name {
	case "hop":
		return 0, []byte{0, 0, 1, 4, 0, 0, 0, 0}
	case "dst":
		return 60, []byte{0, 0, 1, 4, 0, 0, 0, 0}
	case "rh0":
		return 43, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}
	case "rh4":
		return 43, []byte{0, 2, 4, 0, 0, 0, 0, 0, 0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}
	case "ah":
		return 51, make([]byte, 24)
	case "long":
		return 60, append([]byte{0, 31, 1, 252}, make([]byte, 252)...)
	case "frag":
		body := make([]byte, 8)
		field := uint16(max(p.frag, 0))
		if p.more {
			field |= 1
		}
		binary.BigEndian.PutUint16(body[2:], field)
		binary.BigEndian.PutUint32(body[4:], uint32(p.id))
		return 44, body
	}
	panic("packet: extension header " + name)
}

func (p *pkt) encode6(l4 []byte) []byte {
	names := slices.Clone(p.ext)
	if p.frag >= 0 && !slices.Contains(names, "frag") {
		names = append(names, "frag")
	}
	var chain []byte
	next := byte(p.number())
	for _, name := range slices.Backward(names) {
		number, body := p.extension(name)
		body[0] = next
		if name == "ah" {
			body[1] = 4 // in words of 4 bytes, minus 2
		}
		chain = append(body, chain...)
		next = number
	}
	head := make([]byte, 40)
	head[0] = 6 << 4
	binary.BigEndian.PutUint16(head[4:], uint16(len(chain)+len(l4)))
	head[6], head[7] = next, byte(p.ttl)
	copy(head[8:], p.src.Addr().AsSlice())
	copy(head[24:], p.dst.Addr().AsSlice())
	return slices.Concat(head, chain, l4)
}

func (p *pkt) encodeL4() []byte {
	payload := make([]byte, p.size)
	for i := range payload {
		payload[i] = byte(i)
	}
	if p.frag > 0 {
		return payload
	}
	var head []byte
	var at int
	switch p.proto {
	case "tcp":
		head, at = p.encodeTCP(), 16
	case "udp":
		head, at = make([]byte, 8), 6
		binary.BigEndian.PutUint16(head[4:], uint16(8+p.size))
	case "sctp":
		return p.encodeSCTP(payload)
	case "icmp", "icmp6":
		head, at = make([]byte, 8), 2
		head[0], head[1] = byte(p.typ), byte(p.code)
		if p.frag < 0 {
			binary.BigEndian.PutUint16(head[4:], uint16(p.id))
		}
		binary.BigEndian.PutUint16(head[6:], uint16(p.rest))
		payload = append(payload, p.encodeQuoted()...)
	default:
		return payload
	}
	if p.proto == "tcp" || p.proto == "udp" {
		binary.BigEndian.PutUint16(head, p.src.Port())
		binary.BigEndian.PutUint16(head[2:], p.dst.Port())
	}
	l4 := append(head, payload...)
	if !p.nosum {
		check := ^fold(sum(l4) + p.pseudo(len(l4)))
		if check == 0 && p.proto == "udp" {
			check = 0xffff
		}
		binary.BigEndian.PutUint16(l4[at:], check)
	}
	return l4
}

func (p *pkt) encodeSCTP(payload []byte) []byte {
	head := make([]byte, 12)
	binary.BigEndian.PutUint16(head, p.src.Port())
	binary.BigEndian.PutUint16(head[2:], p.dst.Port())
	l4 := append(head, payload...)
	binary.LittleEndian.PutUint32(l4[8:], crc32.Checksum(l4, crc32.MakeTable(crc32.Castagnoli)))
	return l4
}

func (p *pkt) encodeTCP() []byte {
	head := make([]byte, 20)
	if p.mss > 0 {
		mss := []byte{2, 4, byte(p.mss >> 8), byte(p.mss)}
		if p.odd {
			mss = slices.Concat([]byte{1}, mss, []byte{1, 1, 1})
		}
		head = append(head, mss...)
	}
	if p.wscale >= 0 {
		head = append(head, 1, 3, 3, byte(p.wscale))
	}
	if p.stamp != nil {
		stamp := make([]byte, 8)
		binary.BigEndian.PutUint32(stamp, p.stamp[0])
		binary.BigEndian.PutUint32(stamp[4:], p.stamp[1])
		option := slices.Concat([]byte{8, 10}, stamp)
		switch {
		case p.twice:
			option = slices.Concat(option, option)
		case p.odd:
			option = slices.Concat([]byte{1}, option, []byte{1})
		default:
			option = slices.Concat([]byte{1, 1}, option)
		}
		head = append(head, option...)
	}
	binary.BigEndian.PutUint32(head[4:], p.seq)
	binary.BigEndian.PutUint32(head[8:], p.ack)
	head[12] = byte(len(head)/4) << 4
	for _, f := range p.flags {
		head[13] |= 1 << strings.IndexRune("FSRPAU", f)
	}
	binary.BigEndian.PutUint16(head[14:], uint16(p.win))
	return head
}

func (p *pkt) encodeQuoted() []byte {
	if p.quoted == nil {
		return nil
	}
	inner := p.quoted.encode()
	if p.quote > 0 {
		head := 40
		if !p.is6() {
			head = int(inner[0]&15) * 4
		}
		inner = inner[:head+p.quote]
	}
	return inner
}

// pseudo returns the sum of the pseudo header. ICMP has none.
func (p *pkt) pseudo(size int) uint32 {
	if p.proto == "icmp" {
		return 0
	}
	return sum(p.src.Addr().AsSlice()) + sum(p.dst.Addr().AsSlice()) + uint32(p.number()) + uint32(size)
}

func sum(b []byte) uint32 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		s += uint32(b[len(b)-1]) << 8
	}
	return s
}

func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// decodePkt decodes a packet from its IP header on and checks all its checksums.
func decodePkt(b []byte) *pkt {
	p := &pkt{win: 65535, wscale: -1, frag: -1}
	if b[0]>>4 == 6 {
		return p.decode6(b)
	}
	head := int(b[0]&15) * 4
	p.opts = head - 20
	p.ttl, p.proto = int(b[8]), protoName(int(b[9]))
	p.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:16])), 0)
	p.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), 0)
	if field := binary.BigEndian.Uint16(b[6:]); field&0x3fff != 0 {
		p.frag, p.more = int(field&0x1fff)*8, field&0x2000 != 0
		p.id = int(binary.BigEndian.Uint16(b[4:]))
	}
	if fold(sum(b[:head])) != 0xffff {
		p.sums = "ip"
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	p.decodeL4(b[head:min(total, len(b))], total-head)
	return p
}

func (p *pkt) decode6(b []byte) *pkt {
	p.ttl = int(b[7])
	p.src = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), 0)
	p.dst = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[24:40])), 0)
	total := 40 + int(binary.BigEndian.Uint16(b[4:]))
	next, at := b[6], 40
	names := map[byte]string{0: "hop", 60: "dst", 51: "ah", 43: "rh4"}
	for {
		name, ok := names[next]
		if next == 44 {
			field := binary.BigEndian.Uint16(b[at+2:])
			p.frag, p.more = int(field&^7), field&1 != 0
			p.id = int(binary.BigEndian.Uint32(b[at+4:]))
			next, at = b[at], at+8
			continue
		}
		if !ok {
			break
		}
		p.ext = append(p.ext, name)
		size := (int(b[at+1]) + 1) * 8
		if next == 51 {
			size = (int(b[at+1]) + 2) * 4
		}
		next, at = b[at], at+size
	}
	p.proto = protoName(int(next))
	p.decodeL4(b[at:min(total, len(b))], total-at)
	return p
}

// decodeL4 decodes the available part of an L4 packet of that size.
func (p *pkt) decodeL4(l4 []byte, size int) {
	head := map[string]int{"tcp": 20, "udp": 8, "icmp": 8, "icmp6": 8, "sctp": 12}[p.proto]
	p.size = size - head
	if head == 0 || p.frag > 0 || len(l4) < 8 {
		p.size = size
		return
	}
	if p.proto == "sctp" {
		p.decodeSCTP(l4, size)
		return
	}
	p.nosum = p.proto == "udp" && l4[6] == 0 && l4[7] == 0
	if whole := len(l4) == size; whole && !p.nosum && fold(sum(l4)+p.pseudo(size)) != 0xffff {
		p.sums = strings.TrimSpace(p.sums + " l4")
	}
	switch p.proto {
	case "tcp", "udp":
		p.src = netip.AddrPortFrom(p.src.Addr(), binary.BigEndian.Uint16(l4))
		p.dst = netip.AddrPortFrom(p.dst.Addr(), binary.BigEndian.Uint16(l4[2:]))
		if p.proto == "tcp" {
			p.decodeTCP(l4, size)
		}
	default:
		p.decodeICMP(l4)
	}
}

func (p *pkt) decodeSCTP(l4 []byte, size int) {
	p.src = netip.AddrPortFrom(p.src.Addr(), binary.BigEndian.Uint16(l4))
	p.dst = netip.AddrPortFrom(p.dst.Addr(), binary.BigEndian.Uint16(l4[2:]))
	if len(l4) != size || size < 12 {
		return
	}
	unsummed := slices.Clone(l4)
	clear(unsummed[8:12])
	if crc32.Checksum(unsummed, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(l4[8:]) {
		p.sums = strings.TrimSpace(p.sums + " l4")
	}
}

func (p *pkt) decodeTCP(l4 []byte, size int) {
	p.seq = binary.BigEndian.Uint32(l4[4:])
	if len(l4) < 20 {
		return
	}
	p.ack = binary.BigEndian.Uint32(l4[8:])
	p.size = size - int(l4[12]>>4)*4
	for i, f := range "FSRPAU" {
		if l4[13]&(1<<i) != 0 {
			p.flags += string(f)
		}
	}
	p.win = int(binary.BigEndian.Uint16(l4[14:]))
	for at := 20; at+2 < min(int(l4[12]>>4)*4, len(l4)); {
		switch l4[at] {
		case 2:
			p.mss = int(l4[at+2])<<8 | int(l4[min(at+3, len(l4)-1)])
			at += 4
		case 3:
			p.wscale = int(l4[at+2])
			at += 3
		case 8:
			if at+10 <= len(l4) {
				p.twice = p.stamp != nil
				p.stamp = &[2]uint32{binary.BigEndian.Uint32(l4[at+2:]), binary.BigEndian.Uint32(l4[at+6:])}
			}
			at += 10
		default:
			at++
		}
	}
}

func (p *pkt) decodeICMP(l4 []byte) {
	p.typ, p.code = int(l4[0]), int(l4[1])
	if p.frag < 0 {
		p.id = int(binary.BigEndian.Uint16(l4[4:]))
	}
	isError := p.proto == "icmp" && slices.Contains([]int{3, 4, 5, 11, 12}, p.typ) || p.proto == "icmp6" && p.typ < 128
	if isError && len(l4) >= 28 {
		p.size, p.rest = 0, int(binary.BigEndian.Uint16(l4[6:]))
		p.quoted = decodePkt(l4[8:])
		if p.quoted.sums != "" {
			p.sums = strings.TrimSpace(p.sums + " quote")
		}
	}
}
