package dataplane

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/fw/state"
	"weir/internal/oracle/model"
)

// A passed frame is one that was seen at an interface.
type passed struct {
	ifindex int
	packet  *pkt
}

// memory is how many past frames errors may refer to.
const memory = 40

// icmpError draws an error about a packet that was sent, or came.
func (f *traffic) icmpError() *shot {
	if len(f.sent) == 0 || len(f.met) == 0 {
		return nil
	}
	about := f.sent[f.IntN(len(f.sent))]
	changed := f.inOtherFamily()
	if changed != nil {
		about = *changed
	}
	s := &shot{hook: one(f.Rand, model.XDP, model.XDP, model.TCXIngress), ifindex: about.ifindex}
	if f.IntN(4) == 0 { // the box itself says so
		if about = f.met[f.IntN(len(f.met))]; changed != nil && f.IntN(2) == 0 {
			about = passed{f.side(changed.packet.src.Addr()), changed.packet} // its kernel did not find the neighbour
		}
		s.hook, s.ifindex = model.TCXEgress, about.ifindex
	}
	q := *about.packet
	if f.IntN(4) == 0 {
		q.seq += one(f.Rand, 1, ^uint32(0), 65535+1500, 65535+1501, f.Uint32())
	}
	p := &pkt{proto: "icmp", typ: one(f.Rand, 3, 3, 11, 12, 4, 5), code: one(f.Rand, 0, 1, 3, 4), ttl: 64, frag: -1, quoted: &q}
	p.src, p.dst = netip.AddrPortFrom(q.dst.Addr(), 0), netip.AddrPortFrom(q.src.Addr(), 0)
	router := one(f.Rand, "203.0.113.1", "198.51.100.99", "192.168.1.10")
	if q.is6() {
		p.proto, p.typ, router = "icmp6", one(f.Rand, 1, 2, 3, 4), one(f.Rand, "2001:db8:113::1", "2001:db8:9::9", "fd00:1::10")
	}
	if s.hook == model.TCXEgress {
		router = map[bool]string{true: "192.168.1.1", false: "203.0.113.2"}[s.ifindex == f.net.lan0]
		if q.is6() {
			router = map[bool]string{true: "fd00:1::1", false: "2001:db8:113::2"}[s.ifindex == f.net.lan0]
		}
	}
	if f.IntN(3) != 0 {
		p.src = netip.AddrPortFrom(netip.MustParseAddr(router), 0)
	}
	if f.IntN(20) == 0 {
		p.dst = f.end(map[bool]int{true: 6, false: 4}[q.is6()])
	}
	p.quote = one(f.Rand, 0, 0, 8, 8, 20, 4, 12)
	if f.IntN(3) != 0 {
		p.typ, p.code = f.likelyError(q.is6())
	}
	p.id = one(f.Rand, 0, 0, f.IntN(1<<16))
	s.frame = f.framed(f.dress(p), s)
	if f.IntN(4) == 0 {
		f.mutateError(s.frame, q.is6())
	}
	return s
}

// inOtherFamily draws a packet of a connection with two address families, as it has left; nil
// if there is none.
func (f *traffic) inOtherFamily() *passed {
	states := slices.Collect(f.model.Live())
	states = slices.DeleteFunc(states, func(s *state.State) bool { return s.Tuple[0].Dst.Is4() == s.Tuple[1].Src.Is4() })
	if len(states) == 0 || f.IntN(3) == 0 {
		return nil
	}
	s, d := states[f.IntN(len(states))], f.IntN(2)
	p := f.packetOf(s, d, s.Tuple[1-d].Reverse())
	p.size = one(f.Rand, p.size, p.size, 100, 130, 600, 1400, 1401)
	if f.IntN(4) == 0 {
		p.frag, p.more, p.id = 0, f.IntN(4) != 0, int(f.Uint32()>>1)
	}
	return &passed{f.side(p.dst.Addr()), p}
}

// likelyError draws the type and code of an error that both families know, mostly.
func (f *traffic) likelyError(is6 bool) (typ, code int) {
	if is6 {
		return one(f.Rand, 1, 1, 2, 2, 3, 4, 4), one(f.Rand, 0, 0, 0, 1, f.IntN(6))
	}
	typ = one(f.Rand, 3, 3, 3, 11, 12)
	return typ, map[bool]int{true: f.IntN(17), false: one(f.Rand, 0, 0, 1, 2)}[typ == 3]
}

// mutateError changes what an error says: its MTU, pointer or the length of its quote, or a
// byte of the quoted headers. Its checksum is wrong then, and stays so. At times its quote is
// followed by more (RFC 4884).
func (f *traffic) mutateError(frame []byte, is6 bool) {
	defer func() { _ = recover() }() // it has extension headers, and is shorter
	l4 := 14 + 20
	if is6 {
		l4 = 14 + 40
	}
	icmp := frame[l4:]
	switch f.IntN(5) {
	case 0:
		binary.BigEndian.PutUint32(icmp[4:], one(f.Rand, 0, 68, 576, 1260, 1280, 1281, 1492, 1500, 65535, f.Uint32()))
	case 1: // a pointer
		icmp[4], icmp[7] = byte(f.IntN(24)), byte(f.IntN(44))
	case 2: // the length of the quote
		icmp[4], icmp[5] = byte(f.IntN(20)), byte(f.IntN(60))
	case 3:
		icmp[8+f.IntN(48)] = byte(one(f.Rand, 0, 1, 4, 0x20, 0xff, 44, f.IntN(256)))
	default:
		at := one(f.Rand, 2, 4) // the length of the quoted packet, which a quote of IPv4 and one of IPv6 has elsewhere
		binary.BigEndian.PutUint16(icmp[8+at:], one(f.Rand, 0, 19, 20, 28, 47, 1500, 1493, 2003, 4353, 8167, 17915, 32001, 65535, uint16(f.Uint32())))
	}
}

// fragments draws a packet in pieces, in any order, and queues them.
func (f *traffic) fragments() {
	whole := f.opening()
	if p := f.follow(); p != nil && f.IntN(2) == 0 {
		whole = p
	}
	whole.id, whole.more, whole.wscale = 1+f.IntN(6), true, -1
	head := map[string]int{"tcp": 20, "udp": 8, "icmp": 8, "icmp6": 8}[whole.proto]
	var pieces []event
	offset := 0
	for n := 2 + f.IntN(4); n > 0; n-- {
		p := *whole
		p.frag, p.size = offset, 8*(1+f.IntN(6))
		if offset == 0 {
			p.size += (8 - head%8) % 8
			offset = head
		}
		if n == 1 {
			p.more = f.IntN(10) == 0
			p.size += one(f.Rand, 0, 0, 3)
		}
		offset += p.size
		if f.IntN(12) == 0 {
			offset += 8 * (f.IntN(4) - 2) // a hole, or an overlap
		}
		pieces = append(pieces, event{shot: f.place(f.dressFragment(&p))})
	}
	if f.IntN(10) == 0 { // far apart
		for i := range 10 {
			p := *whole
			p.frag, p.size = 2000+16*i, 8
			pieces = append(pieces, event{shot: f.place(&p)})
		}
	}
	if f.IntN(3) == 0 {
		f.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	}
	if f.IntN(5) == 0 {
		pieces = append(pieces, pieces[f.IntN(len(pieces))])
	}
	f.pending = append(f.pending, pieces...)
}

func (f *traffic) dressFragment(p *pkt) *pkt {
	switch f.IntN(30) {
	case 0:
		p.ttl = 1
	case 1:
		if p.is6() {
			p.ext = []string{one(f.Rand, "dst", "hop", "rh4")}
		} else {
			p.opts = 8
		}
	}
	return p
}

// odd draws a frame that few stations send.
func (f *traffic) odd() *shot {
	p := f.follow()
	if p == nil || f.IntN(2) == 0 {
		p = f.opening()
	}
	s := f.place(f.dress(p))
	switch f.IntN(7) {
	case 6: // as IPv6, with mapped addresses
		p.src = netip.AddrPortFrom(netip.AddrFrom16(p.src.Addr().As16()), p.src.Port())
		p.dst = netip.AddrPortFrom(netip.AddrFrom16(p.dst.Addr().As16()), p.dst.Port())
		p.ext = nil
		s.frame = f.framed(p, s)
	case 0:
		copy(s.frame, one(f.Rand, "\x02\x77\x65\x00\x09\x09", "\xff\xff\xff\xff\xff\xff", "\x01\x00\x5e\x00\x00\x01"))
	case 1:
		copy(s.frame[12:], one(f.Rand, "\x08\x06", "\x81\x00", "\x86\xdd", "\x08\x00", "\x88\x63"))
	case 2:
		s.frame = s.frame[:14+f.IntN(len(s.frame)-14)]
	case 3: // padding, which must not be read
		for range f.IntN(40) {
			s.frame = append(s.frame, byte(f.Uint32()))
		}
	case 4:
		if s.hook == model.TCXEgress {
			s.mark = one(f.Rand, f.Uint32(), weirs.Set(0, uint32(f.IntN(8))))
			s.from = one(f.Rand, f.net.lan0, f.net.lan0, 0)
		}
		if s.hook == model.TCXIngress { // a netkit may bring any from another namespace
			s.mark = f.Uint32()
		}
	default:
		for range 1 + f.IntN(2) {
			s.frame[14+f.IntN(min(len(s.frame)-14, 90))] = byte(one(f.Rand, 0, 1, 4, 0x45, 0xff, 60, 44, 43, f.IntN(256)))
		}
	}
	return s
}

// remember notes what happened to a frame, and what follows from it.
func (f *traffic) remember(s *shot, o *model.Outcome) {
	if s.hook != model.TCXEgress {
		f.met = append(f.met, f.seen(s.ifindex, s.frame)...)
	}
	switch {
	case o.Verdict == model.Redirect:
		f.sent = append(f.sent, f.seen(int(o.Interface), o.Frame)...)
	case o.Verdict == model.Out:
		f.sent = append(f.sent, f.seen(s.ifindex, o.Frame)...)
	case o.Verdict == model.Up && weirs.Of(o.Mark) != 0:
		f.handedUp(s, o)
	}
	f.sent = f.sent[max(0, len(f.sent)-memory):]
	f.met = f.met[max(0, len(f.met)-memory):]
}

func (f *traffic) seen(ifindex int, frame []byte) (all []passed) {
	defer func() {
		if recover() != nil {
			all = nil
		}
	}()
	p := decodePkt(frame[14:])
	if p.frag > 0 && f.IntN(8) != 0 {
		return nil
	}
	p.ext = slices.DeleteFunc(p.ext, func(name string) bool { return name == "long" })
	return []passed{{ifindex, p}}
}

// handedUp plays the stack's part for a packet that it must forward: the packet leaves by
// TCX egress with its mark, or the box answers with an error.
func (f *traffic) handedUp(s *shot, o *model.Outcome) {
	all := f.seen(s.ifindex, o.Frame)
	if len(all) == 0 {
		return
	}
	f.met = append(f.met, all...)
	p := *all[0].packet
	r := f.route(p.dst.Addr())
	if p.dst.Addr().IsMulticast() { // out of any interface, that of its entry included
		r = model.Route{Kind: model.RouteForward, Interface: uint32(one(f.Rand, f.net.lan0, f.net.wan0))}
	}
	if r.Kind != model.RouteForward || p.ttl <= 1 {
		return
	}
	if f.IntN(8) == 0 { // a rule of the administrator's sets bits of its own
		o.Mark |= 0x8000
	}
	out := &shot{hook: model.TCXEgress, ifindex: int(r.Interface), from: s.ifindex, mark: o.Mark, frame: slices.Clone(o.Frame)}
	copy(out.frame, r.Dst[:])
	copy(out.frame[6:], r.Src[:])
	ip := out.frame[14:]
	if p.is6() {
		ip[7]--
	} else {
		ip[8]--
		setHeaderSum(ip[:20+p.opts])
	}
	e := event{shot: out}
	for s := range f.model.Live() {
		if o.Number != 0 && s.Index == o.Number>>1 {
			e.number, e.of = o.Number, &s.Tuple[0]
		}
	}
	f.pending = slices.Insert(f.pending, 0, e)
}
