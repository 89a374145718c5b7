package dataplane

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"weir/internal/model"
	"weir/internal/state"
)

// An event is a frame, or a change of the scene.
type event struct {
	shot  *shot
	of    *state.Tuple // of the state that the frame's mark names; it is gone if that is another's by now
	ticks uint32 // that go by
	sweep bool
}

// traffic draws events that belong together: answers to what was sent, errors
// about it, fragments, time that states expire in.
type traffic struct {
	*drawing
	*twin
	pending []event // what follows from packets before
	sent    []passed
	met     []passed // as they came
}

// A passed frame is one that was seen at an interface.
type passed struct {
	ifindex int
	packet  *pkt
}

// memory is how many frames of the past errors are about.
const memory = 40

// next draws an event.
func (f *traffic) next() event {
	if len(f.pending) > 0 && f.IntN(3) != 0 {
		e := f.pending[0]
		f.pending = f.pending[1:]
		return e
	}
	switch n := f.IntN(100); {
	case n < 3:
		return event{ticks: one[uint32](f.Rand, 1, 1, 10, 99, 100, 101, 200, 500, 1000, 3000, 6000)}
	case n < 4:
		return event{sweep: true}
	}
	for {
		if s := f.draw(); s != nil && len(s.frame) >= s.least() {
			return event{shot: s}
		}
	}
}

// draw draws a frame; nil if what was drawn cannot be one.
func (f *traffic) draw() (s *shot) {
	defer func() {
		if recover() != nil { // quotes of more than there is, and the like
			s = nil
		}
	}()
	switch n := f.IntN(100); {
	case n < 30:
		s = f.place(f.dress(f.opening()))
	case n < 80:
		p := f.follow()
		if p == nil {
			p = f.opening()
		}
		s = f.place(f.dress(p))
	case n < 90:
		s = f.icmpError()
	case n < 95:
		f.fragments()
		return nil
	default:
		s = f.odd()
	}
	return s
}

func (f *traffic) family() int { return one(f.Rand, 4, 4, 4, 6, 6) }

func (f *traffic) end(family int) netip.AddrPort {
	hosts := hosts4
	if family == 6 {
		hosts = hosts6
	}
	return netip.AddrPortFrom(netip.MustParseAddr(one(f.Rand, hosts...)), 0)
}

// opening draws the first packet of a connection, or what looks like one.
func (f *traffic) opening() *pkt {
	family := f.family()
	p := &pkt{src: f.end(family), dst: f.end(family), win: 65535, wscale: -1, ttl: 64, frag: -1, size: one(f.Rand, 0, 0, 8, 20, 21, 100)}
	if f.IntN(25) == 0 {
		f.special(p, family)
	}
	switch f.IntN(10) {
	case 0, 1, 2, 3:
		p.proto, p.size = "tcp", one(f.Rand, 0, 0, 0, 10)
		p.flags = one(f.Rand, "S", "S", "S", "S", "S", "S", "A", "SA", "FA", "R", "SFA", "")
		p.seq = one[uint32](f.Rand, 1000, 0xfffffff0, f.Uint32())
		p.ack = one[uint32](f.Rand, 0, 5000, f.Uint32())
		p.win, p.wscale = one(f.Rand, 65535, 1000, 0), one(f.Rand, -1, -1, 0, 7, 14, 15)
	case 4, 5, 6:
		p.proto = "udp"
	case 7, 8:
		f.icmp(p, family)
	default:
		p.proto = one(f.Rand, "47", "47", "50", "132", "2", "59")
	}
	if p.proto == "tcp" || p.proto == "udp" {
		p.src = netip.AddrPortFrom(p.src.Addr(), uint16(one(f.Rand, 4000, 4000, 4001, 53, 1000, 0)))
		p.dst = netip.AddrPortFrom(p.dst.Addr(), uint16(one(f.Rand, ports...)))
		if p.proto == "udp" && f.IntN(30) == 0 {
			f.dhcp(p, family)
		}
	}
	return p
}

func (f *traffic) icmp(p *pkt, family int) {
	p.proto, p.typ, p.id = "icmp", one(f.Rand, 8, 8, 8, 8, 0, 13, 14, 15, 17, 3, 5, 9, 11), one(f.Rand, 7, 8, 1000)
	if family == 6 {
		p.proto, p.typ = "icmp6", one(f.Rand, 128, 128, 128, 128, 129, 1, 2, 130, 133, 135, 136, 137, 143)
		p.ttl = one(f.Rand, 64, 64, 255, 1)
	}
	p.code = one(f.Rand, 0, 0, 0, 4)
}

// special addresses are those that step 3 and the routes know.
func (f *traffic) special(p *pkt, family int) {
	all := []string{
		"224.0.0.251", "255.255.255.255", "192.168.1.255", "192.168.1.0", "240.0.0.1", "127.0.0.1", "0.0.0.0", "0.1.2.3", "203.0.113.255",
	}
	if family == 6 {
		all = []string{"ff02::1", "fe80::5", "fe80::6", "::", "::1", "::ffff:1.2.3.4", "fd00:1::", "ff0e::7"}
	}
	a := netip.AddrPortFrom(netip.MustParseAddr(one(f.Rand, all...)), 0)
	switch f.IntN(5) {
	case 0, 1:
		p.src = a
	case 2, 3:
		p.dst = a
	default:
		p.dst = p.src
	}
}

func (f *traffic) dhcp(p *pkt, family int) {
	client, server := uint16(68), uint16(67)
	if family == 6 {
		client, server = 546, 547
		p.src = netip.MustParseAddrPort("[fe80::5]:0")
	}
	if f.IntN(2) == 0 {
		client, server = server, client
	}
	p.src, p.dst = netip.AddrPortFrom(p.src.Addr(), client), netip.AddrPortFrom(p.dst.Addr(), server)
}

// follow draws a packet of a state, in either direction; nil if there are none.
func (f *traffic) follow() *pkt {
	states := f.model.States()
	if len(states) == 0 {
		return nil
	}
	s, d := states[len(states)-1], f.IntN(2)
	if f.IntN(3) != 0 {
		s = states[f.IntN(len(states))]
	}
	return f.packetOf(&s, d, s.Tuple[d])
}

// packetOf draws a packet of a state's direction d, with the addresses of t.
func (f *traffic) packetOf(s *state.State, d int, t state.Tuple) *pkt {
	p := &pkt{
		proto: protoName(int(t.Proto)), src: netip.AddrPortFrom(t.Src, 0), dst: netip.AddrPortFrom(t.Dst, 0),
		win: 65535, wscale: -1, ttl: 64, frag: -1, size: one(f.Rand, 0, 8, 10, 21, 100),
	}
	switch p.proto {
	case "tcp":
		f.segment(p, &s.Flow[d], &s.Flow[1-d])
		fallthrough
	case "udp":
		p.src, p.dst = netip.AddrPortFrom(t.Src, t.SPort), netip.AddrPortFrom(t.Dst, t.DPort)
	case "icmp", "icmp6":
		replies := map[uint16]int{8: 0, 13: 14, 15: 16, 17: 18, 128: 129}
		p.typ, p.id = int(t.DPort), int(t.SPort)
		if _, request := replies[t.DPort]; !request {
			p.typ, p.id = replies[t.SPort], int(t.DPort)
		}
	}
	return p
}

// segment draws one that lies in the window of its state, at an edge of it, or not.
func (f *traffic) segment(p *pkt, own, other *state.Flow) {
	const slack = 65535 + 1500
	p.flags = one(f.Rand, "A", "A", "A", "A", "PA", "FA", "FA", "SA", "SA", "S", "R", "RA", "F", "", "SFA", "SAU")
	p.size = one(f.Rand, 0, 0, 0, 1, 100, 1000)
	p.win, p.wscale = one(f.Rand, 65535, 65535, 1000, 1, 0), one(f.Rand, -1, -1, 0, 7, 14, 15)
	p.seq = own.SeqLo
	if own.Flags&state.FlowSeen == 0 {
		p.seq = one[uint32](f.Rand, 5000, f.Uint32())
	}
	size := uint32(p.size)
	p.ack = other.SeqLo
	if f.IntN(2) == 0 {
		p.seq += one(f.Rand, 0, ^uint32(0), 1, 2, 100, ^uint32(99), other.MaxWin, -other.MaxWin, -other.MaxWin-1, slack, slack+1-size, ^uint32(slack-1), ^uint32(slack),
			f.Uint32(), own.SeqHi-own.SeqLo-size, own.SeqHi-own.SeqLo-size+1, other.Grant-own.SeqLo-size, other.Grant-own.SeqLo-size+1)
	}
	if f.IntN(3) == 0 {
		p.ack += one(f.Rand, ^uint32(0), 1, ^uint32(99), 100, slack, slack+1, ^uint32(slack-1), ^uint32(slack), ^uint32(slack<<7), -p.ack, f.Uint32())
	}
}

// dress gives a packet what few have.
func (f *traffic) dress(p *pkt) *pkt {
	switch f.IntN(20) {
	case 0:
		p.ttl = one(f.Rand, 0, 1, 1, 2, 255)
	case 1:
		if p.is6() {
			p.ext = one(f.Rand, []string{"hop"}, []string{"dst"}, []string{"ah"}, []string{"rh4"}, []string{"frag"}, []string{"rh0"},
				[]string{"hop", "dst", "rh4", "ah"}, []string{"dst", "hop"}, []string{"long", "long"}, []string{"long", "dst"}, []string{"frag", "frag"})
		} else {
			p.opts = one(f.Rand, 4, 8, 40)
		}
	case 2:
		p.nosum = p.proto == "udp"
	case 3:
		p.size = one(f.Rand, 1400, 1460, 1480, 1481, 1600, 3)
	}
	return p
}

// owns reports whether an address is the box's.
func (f *traffic) owns(a netip.Addr) bool {
	_, own := f.net.addresses()[a]
	return own
}

// side returns the interface behind which an address is.
func (f *traffic) side(a netip.Addr) int {
	if r := f.route(a); r.Interface != 0 {
		return int(r.Interface)
	}
	return f.net.wan0
}

// place puts a packet where one with such a source is seen, mostly.
func (f *traffic) place(p *pkt) *shot {
	s := &shot{hook: one(f.Rand, model.XDP, model.XDP, model.TCXIngress), ifindex: f.side(p.src.Addr())}
	// the box sends nothing from a group's address: its routes have none for that
	if own := f.owns(p.src.Addr()); own && f.IntN(20) != 0 || f.IntN(50) == 0 && !p.src.Addr().IsMulticast() {
		s.hook, s.ifindex = model.TCXEgress, f.side(p.dst.Addr())
		if f.IntN(60) == 0 {
			s.from = f.net.lan0
		}
	}
	if f.IntN(20) == 0 {
		s.ifindex = one(f.Rand, f.net.lan0, f.net.wan0)
	}
	s.frame = f.framed(p, s)
	return s
}

// framed gives a packet the MACs that it has at the hook.
func (f *traffic) framed(p *pkt, s *shot) []byte {
	from, to := lanHostMAC, lan0MAC
	if s.ifindex == f.net.wan0 {
		from, to = wanHostMAC, wan0MAC
	}
	if s.hook == model.TCXEgress {
		from, to = to, from
	}
	return p.frame(from, to)
}

// icmpError draws an error about a packet that was sent, or came.
func (f *traffic) icmpError() *shot {
	if len(f.sent) == 0 || len(f.met) == 0 {
		return nil
	}
	about := f.sent[f.IntN(len(f.sent))]
	s := &shot{hook: one(f.Rand, model.XDP, model.XDP, model.TCXIngress), ifindex: about.ifindex}
	if f.IntN(4) == 0 { // the box itself says so
		about = f.met[f.IntN(len(f.met))]
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
	s.frame = f.framed(f.dress(p), s)
	return s
}

// fragments draws a packet in pieces, in whatever order, and has them follow.
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
	case 3:
		s.frame = append(s.frame, make([]byte, f.IntN(40))...) // padding
	case 4:
		if s.hook == model.TCXEgress {
			s.mark = model.MarkMagic | one[uint32](f.Rand, 0, model.MarkReply, model.MarkRedirect, twinStates+1)
			s.from = f.net.lan0
		}
	default:
		for range 1 + f.IntN(2) {
			s.frame[14+f.IntN(min(len(s.frame)-14, 90))] = byte(one(f.Rand, 0, 1, 4, 0x45, 0xff, 60, 44, 43, f.IntN(256)))
		}
	}
	return s
}

// remember notes what became of a frame, and what follows from it.
func (f *traffic) remember(s *shot, o *model.Outcome) {
	if s.hook != model.TCXEgress {
		f.met = append(f.met, f.seen(s.ifindex, s.frame)...)
	}
	switch {
	case o.Verdict == model.Redirect:
		f.sent = append(f.sent, f.seen(int(o.Interface), o.Frame)...)
	case o.Verdict == model.Out:
		f.sent = append(f.sent, f.seen(s.ifindex, o.Frame)...)
	case o.Verdict == model.Up && o.Mark&model.MarkMask == model.MarkMagic && o.Mark&model.MarkRedirect == 0:
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

// handedUp is what the stack does with a packet that it shall forward: it leaves
// by TCX egress with its mark, or the box answers with an error.
func (f *traffic) handedUp(s *shot, o *model.Outcome) {
	all := f.seen(s.ifindex, o.Frame)
	if len(all) == 0 {
		return
	}
	f.met = append(f.met, all...)
	p := *all[0].packet
	r := f.route(p.dst.Addr())
	if r.Kind != model.RouteForward || p.ttl <= 1 {
		return
	}
	out := &shot{hook: model.TCXEgress, ifindex: int(r.Interface), from: s.ifindex, mark: o.Mark, frame: slices.Clone(o.Frame)}
	copy(out.frame, r.Dst[:])
	copy(out.frame[6:], r.Src[:])
	ip := out.frame[14:]
	if p.is6() {
		ip[7]--
	} else {
		ip[8]--
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^fold(sum(ip[:20+p.opts])))
	}
	e := event{shot: out}
	for _, s := range f.model.States() {
		if s.Index == o.Mark&model.MarkState {
			e.of = &s.Tuple[0]
		}
	}
	f.pending = slices.Insert(f.pending, 0, e)
}
