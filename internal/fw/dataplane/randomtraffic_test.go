package dataplane

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/fw/state"
	"weir/internal/oracle/model"
	"weir/pf/resolve"
)

// An event is a frame, or a change of the scene.
type event struct {
	shot   *shot
	number uint32       // of the state that the frame was handed up for, with its direction
	of     *state.Tuple // of that state; it is gone if the number is another's by now
	ticks  uint32       // that go by
	sweep  bool
	moves  bool // routes of some hosts move to the other interface
}

// traffic draws events that belong together: replies to packets, errors about them,
// fragments, and time in which states expire.
type traffic struct {
	*drawing
	*twin
	pending []event // what follows from earlier packets
	sent    []passed
	met     []passed // as they came
}

// largest is more than any device of the test takes, and less than the kernel runs
// programs on.
const largest = 3000

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
	case n == 4 && f.IntN(2) == 0:
		return event{moves: true}
	}
	for {
		if s := f.draw(); s != nil && len(s.frame) >= s.least() && len(s.frame) <= largest {
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
		p.flags = one(f.Rand, "S", "S", "S", "S", "S", "S", "A", "SA", "FA", "R", "SF", "SFA", "")
		p.seq = one[uint32](f.Rand, 1000, 0xfffffff0, f.Uint32())
		p.ack = one[uint32](f.Rand, 0, 5000, f.Uint32())
		p.win, p.wscale = one(f.Rand, 65535, 1000, 0), one(f.Rand, -1, -1, 0, 7, 14, 15)
		f.offer(p)
	case 4, 5, 6:
		p.proto = "udp"
	case 7, 8:
		f.icmp(p, family)
	default:
		p.proto = one(f.Rand, "47", "47", "50", "sctp", "sctp", "sctp", "2", "59")
	}
	if p.proto == "tcp" || p.proto == "udp" || p.proto == "sctp" {
		p.src = netip.AddrPortFrom(p.src.Addr(), uint16(one(f.Rand, 4000, 4000, 4001, 53, 1000, 0)))
		p.dst = netip.AddrPortFrom(p.dst.Addr(), uint16(one(f.Rand, ports...)))
		if p.proto == "udp" && f.IntN(30) == 0 {
			f.dhcp(p, family)
		}
	}
	return p
}

// offer draws the MSS that a segment offers.
func (f *traffic) offer(p *pkt) {
	p.mss, p.odd = one(f.Rand, 0, 0, 1460, 1460, 1400, 1220, 536, 65535), f.IntN(3) == 0
	if f.IntN(2) == 0 {
		p.stamp = &[2]uint32{one[uint32](f.Rand, 0, 1, 5000, 0xfffffff0, f.Uint32()), one[uint32](f.Rand, 0, 0, 0, 7, f.Uint32())}
		p.twice = f.IntN(20) == 0
	}
}

// stampAgain draws timestamps that fit those of a state, are at their edge, or outside.
func (f *traffic) stampAgain(p *pkt, own, other *state.Normal) {
	if f.IntN(8) == 0 {
		return
	}
	p.stamp, p.odd, p.twice = &[2]uint32{own.Value, other.Value}, f.IntN(3) == 0, f.IntN(40) == 0
	if own.Flags&state.NormalBegun == 0 {
		p.stamp[0] = one[uint32](f.Rand, 7000, 0x7ffffff0, f.Uint32())
	}
	if strings.Contains(p.flags, "R") && f.IntN(2) == 0 {
		p.flags = "A" // so that more connections live on
	}
	if f.IntN(3) == 0 {
		p.stamp[0] += one(f.Rand, 0, 1, 10, ^uint32(0), 29*1100, 30*1100, 30*1100+1, 32*1100, 1<<31, f.Uint32(), other.Echo-own.Value, other.Echo-own.Value-1)
	}
	if f.IntN(3) == 0 {
		p.stamp[1] += one(f.Rand, 0, 1, ^uint32(0), other.First-other.Value, other.First-other.Value-1, f.Uint32())
	}
	if other.Flags&state.NormalStamped != 0 {
		p.stamp[1] += other.Offset
	}
	if f.IntN(10) == 0 {
		p.stamp[1] = 0
	}
}

func (f *traffic) icmp(p *pkt, family int) {
	p.proto, p.typ, p.id = "icmp", one(f.Rand, 8, 8, 8, 8, 0, 13, 14, 15, 17, 3, 5, 9, 11), one(f.Rand, 7, 9, 1000)
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
		all = []string{"fe80::5", "fe80::6", "::", "::1", "::ffff:1.2.3.4", "fd00:1::", "ff02::1", "ff0e::7"}
		// redirected, errors about it would come from a group: the kernel has no route for that
		if slices.ContainsFunc(f.rules.Rules, func(r *resolve.Rule) bool { return r.Rdr != nil }) {
			all = all[:6]
		}
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
	}
	if family == 6 && f.IntN(3) != 0 {
		p.src = netip.MustParseAddrPort("[fe80::5]:0")
	}
	if f.IntN(2) == 0 {
		client, server = server, client
	}
	p.src, p.dst = netip.AddrPortFrom(p.src.Addr(), client), netip.AddrPortFrom(p.dst.Addr(), server)
}

// follow draws a packet of a state, in either direction; nil if there are none.
func (f *traffic) follow() *pkt {
	states := slices.Collect(f.model.Live())
	if len(states) == 0 {
		return nil
	}
	s, d := states[len(states)-1], f.IntN(2)
	if f.IntN(3) != 0 {
		s = states[f.IntN(len(states))]
	}
	return f.packetOf(s, d, s.Tuple[d])
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
		if s.Flow[0].Flags&state.FlowNormal != 0 {
			f.stampAgain(p, &s.Normal[d], &s.Normal[1-d])
		}
		fallthrough
	case "udp", "sctp":
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

// segment draws a segment that is inside the window of its state, at its edge, or
// outside.
func (f *traffic) segment(p *pkt, own, other *state.Flow) {
	const slack = 65535 + 1500
	p.flags = one(f.Rand, "A", "A", "A", "A", "PA", "FA", "FA", "SA", "SA", "S", "R", "RA", "F", "", "SFA", "SAU")
	p.size = one(f.Rand, 0, 0, 0, 1, 100, 1000)
	p.win, p.wscale = one(f.Rand, 65535, 65535, 1000, 1, 0), one(f.Rand, -1, -1, 0, 7, 14, 15)
	f.offer(p)
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

// dress gives a packet unusual properties.
func (f *traffic) dress(p *pkt) *pkt {
	switch f.IntN(20) {
	case 0:
		p.ttl = one(f.Rand, 0, 1, 1, 2, 31, 99, 254, 255)
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
		p.size = one(f.Rand, 1400, 1460, 1480, 1481, 1600, 3, 1212, 1213, 1232, 1233) // the last: IPv6 of 1,260 to 1,281 bytes, with UDP
	}
	return p
}

// side returns the interface that leads to an address.
func (f *traffic) side(a netip.Addr) int {
	if r := f.route(a); r.Interface != 0 {
		return int(r.Interface)
	}
	return f.net.wan0
}

// place puts a packet where one with such a source is seen, mostly.
func (f *traffic) place(p *pkt) *shot {
	s := &shot{hook: one(f.Rand, model.XDP, model.XDP, model.TCXIngress), ifindex: f.side(p.src.Addr())}
	// with sources that are not its own the box sends nothing from or to these
	if own := f.owns(p.src.Addr()); own && f.IntN(20) != 0 || f.IntN(50) == 0 && !grouped(p) {
		s.hook, s.ifindex = model.TCXEgress, f.side(p.dst.Addr())
		if f.IntN(60) == 0 {
			s.from = f.net.lan0
		}
	}
	if f.IntN(20) == 0 {
		s.ifindex = one(f.Rand, f.net.lan0, f.net.wan0)
	}
	if s.hook != model.XDP && f.IntN(8) == 0 {
		s.mark = one[uint32](f.Rand, 1, 2, 0x40000, 0x80001)
	}
	s.frame = f.framed(p, s)
	if s.hook != model.XDP {
		s.priority = one[uint32](f.Rand, 0, 0, 0x10, 0x20003, 5, 1)
	}
	if s.hook == model.TCXIngress && f.IntN(4) == 0 {
		s.tci = one[uint16](f.Rand, 0xa007, 0x2000, 0x6005, 7)
	}
	return s
}

// grouped reports whether a packet is from or to a group of stations, or an address that
// nobody has (240/4).
func grouped(p *pkt) bool {
	group := func(a netip.Addr) bool { return a.IsMulticast() || a.Is4() && a.As4()[0] >= 224 }
	return group(p.src.Addr()) || group(p.dst.Addr())
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
	frame := p.frame(from, to)
	if ip := frame[14:]; !p.is6() && p.frag < 0 { // so that every header's checksum comes to pass
		ip[1] = one[uint8](f.Rand, 0, 0, 0, lowDelay, 0xff)
		binary.BigEndian.PutUint16(ip[4:], uint16(f.Uint32()))
		setHeaderSum(ip[:20+p.opts])
	}
	if ip := frame[14:]; !p.is6() && f.IntN(3) == 0 {
		ip[6] |= dontFragment // also of fragments
		setHeaderSum(ip[:20+p.opts])
	}
	if p.is6() && f.IntN(3) == 0 {
		frame[14] |= lowDelay >> 4 // of the traffic class
	}
	return frame
}

// lowDelay is a bit of the type of service.
const lowDelay = 0x10

// dontFragment is a bit in the byte of an IPv4 header that flags begin with.
const dontFragment = 0x40

// setHeaderSum makes the checksum of an IPv4 header right.
func setHeaderSum(header []byte) {
	header[10], header[11] = 0, 0
	binary.BigEndian.PutUint16(header[10:], ^fold(sum(header)))
}
