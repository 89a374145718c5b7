package model

import (
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
)

// icmpError quotes what follows the Ethernet header of a frame, up to size bytes.
func icmpError(t *testing.T, src, dst netip.Addr, kind, code uint8, about []byte, size int) []byte {
	t.Helper()
	quoted := gopacket.Payload(about[14:min(len(about), 14+size)])
	if src.Is4() {
		return frame(t, ip(src, dst, layers.IPProtocolICMPv4), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, code)}, quoted)
	}
	return frame(t, ip(src, dst, layers.IPProtocolICMPv6), &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, code)},
		gopacket.Payload(append(make([]byte, 4), quoted...)))
}

// quoteOf returns the tuple of the packet quoted in a frame, and checks its sums.
func (w *world) quoteOf(b []byte) state.Tuple {
	w.t.Helper()
	p, why := parse(&Frame{Hook: TCXEgress, Interface: wanIndex, Bytes: b}, w.box.byIndex(wanIndex), w.box, w.rules)
	if why != nil {
		w.t.Fatal(*why)
	}
	q, why := p.quoted()
	if why != nil {
		w.t.Fatal(*why)
	}
	if q.ip.family == 4 && onesSum(q.ip.header) != 0xffff {
		w.t.Errorf("the quoted header's checksum is wrong")
	}
	return q.tuple
}

func TestErrorThroughNAT(t *testing.T) {
	w := newWorld(t, natTo("203.0.113.5"), natTo("2001:db8:5::5"), pass())
	for _, c := range []struct {
		client, server, gateway, router netip.Addr
		kind                            uint8
	}{
		{client, server, gateway, addr("203.0.113.1"), 11},
		{client6, server6, addr("2001:db8:5::5"), addr("2001:db8:5::1"), 3},
	} {
		sent := udp(t, c.client, 4000, c.server, 53, "question")
		left := w.in(lanIndex, sent, Redirect, reason.Rule)
		before := w.States()
		for _, from := range []netip.Addr{c.router, c.server} {
			e := icmpError(t, from, c.gateway, c.kind, 0, left, 100)
			got := w.in(wanIndex, e, Redirect, reason.State)
			w.ends(got, from, uint16(c.kind), c.client, 0)
			want := state.Tuple{Src: c.client, SPort: 4000, Dst: c.server, DPort: 53, Proto: protoUDP}
			if q := w.quoteOf(got); q != want {
				t.Errorf("quoted %+v, want %+v", q, want)
			}
		}
		if after := w.States(); after[0].Flow != before[0].Flow {
			t.Error("an error changed the state")
		}
	}
}

// An error from a host behind rdr-to comes from the address that the client used.
func TestErrorFromHiddenHost(t *testing.T) {
	w := newWorld(t, rdrTo("203.0.113.5", "192.168.1.20", 8080), pass())
	left := w.in(wanIndex, udp(t, server, 4000, gateway, 80, "question"), Redirect, reason.Rule)
	got := w.in(lanIndex, icmpError(t, inside, server, 3, 3, left, 28), Redirect, reason.State)
	w.ends(got, gateway, 3, server, 0)
	if q := w.quoteOf(got); q.Dst != gateway || q.DPort != 80 {
		t.Errorf("quoted %+v", q)
	}
}

// The box's own error about a packet that was handed up.
func TestOwnError(t *testing.T) {
	w := newWorld(t, natTo("203.0.113.5"), pass())
	l := ip(client, server, layers.IPProtocolUDP).(*layers.IPv4)
	l.TTL = 1
	up := w.in(lanIndex, frame(t, l, &layers.UDP{SrcPort: 4000, DstPort: 53}), Up, reason.UpTTL)
	got := w.own(lanIndex, icmpError(t, addr("192.168.1.1"), client, 11, 0, up, 28), Out, reason.State)
	if q := w.quoteOf(got); q.Src != client || q.SPort != 4000 || q.Dst != server {
		t.Errorf("quoted %+v", q)
	}
}

func TestErrorsThatDoNotFit(t *testing.T) {
	w := opened(t)
	router := addr("203.0.113.1")
	about := func(seq uint32) []byte { return seg(false, "A", seq, 501, 10).bytes(t) }
	w.in(wanIndex, icmpError(t, router, client, 3, 4, about(101), 28), Redirect, reason.State)
	w.in(wanIndex, icmpError(t, router, client, 3, 4, about(101+1+maxAck), 28), Drop, reason.ICMPMismatch)
	w.in(wanIndex, icmpError(t, router, inside, 3, 4, about(101), 28), Drop, reason.ICMPMismatch)
	w.in(wanIndex, icmpError(t, router, client, 3, 4, about(101), 27), Drop, reason.Short)
	bad := about(101)
	bad[14] = 0x44
	w.in(wanIndex, icmpError(t, router, client, 3, 4, bad, 28), Drop, reason.Malformed)
	later := about(101)
	later[14+7] = 1
	w.in(wanIndex, icmpError(t, router, client, 3, 4, later, 28), Drop, reason.ICMPMismatch)
	// about nothing known: it meets the rules, and no state is made
	stranger := udp(t, client, 1, server, 2, "question")
	w.in(wanIndex, icmpError(t, router, client, 3, 4, stranger, 28), Redirect, reason.Rule)
	if len(w.States()) != 1 {
		t.Errorf("states %+v", w.States())
	}
}

// fragments cuts an IPv4 frame's payload into pieces of size bytes.
func fragments(t *testing.T, b []byte, id uint16, size int) [][]byte {
	t.Helper()
	var pieces [][]byte
	payload := b[34:]
	for at := 0; at < len(payload); at += size {
		end := min(at+size, len(payload))
		l := &layers.IPv4{Version: 4, TTL: 64, Id: id, FragOffset: uint16(at / 8), Protocol: layers.IPProtocol(b[14+9]),
			SrcIP: b[26:30], DstIP: b[30:34]}
		if end < len(payload) {
			l.Flags = layers.IPv4MoreFragments
		}
		pieces = append(pieces, frame(t, l, gopacket.Payload(payload[at:end])))
	}
	return pieces
}

func TestFragments(t *testing.T) {
	w := newWorld(t, natTo("203.0.113.5"), pass())
	f := fragments(t, udp(t, client, 4000, server, 53, string(make([]byte, 100))), 7, 32)
	w.in(lanIndex, f[1], Drop, reason.FragmentOrphan)
	w.in(lanIndex, f[0], Redirect, reason.Rule)
	w.ends(w.in(lanIndex, f[3], Redirect, reason.State), gateway, 0, server, 0)
	w.in(lanIndex, f[3], Drop, reason.FragmentOverlap)
	w.in(lanIndex, f[1], Redirect, reason.State)
	w.in(lanIndex, f[0], Drop, reason.FragmentOverlap)
	w.in(lanIndex, f[2], Redirect, reason.State)
	if s := w.only(); s.Flow[0].Packets != 5 { // the second first was tracked before it was dropped
		t.Errorf("flow %+v", s.Flow[0])
	}
	w.in(lanIndex, f[2], Drop, reason.FragmentOrphan) // the packet was whole
	w.in(lanIndex, f[0], Redirect, reason.State)
	w.SetClock(60 * state.TicksPerSecond)
	w.in(lanIndex, f[1], Drop, reason.FragmentOrphan)
}

func TestFragmentHoles(t *testing.T) {
	w := newWorld(t, pass())
	f := fragments(t, udp(t, client, 4000, server, 53, string(make([]byte, 300))), 7, 16)
	w.in(lanIndex, f[0], Redirect, reason.Rule)
	for i := 2; i < 16; i += 2 {
		w.in(lanIndex, f[i], Redirect, reason.State)
	}
	w.in(lanIndex, f[17], Drop, reason.FragmentMemory)
	w.in(lanIndex, f[1], Redirect, reason.State) // joins two pieces
	w.in(lanIndex, f[17], Redirect, reason.State)
}

func TestFragmentsFollowTheirFirst(t *testing.T) {
	w := newWorld(t, block())
	f := fragments(t, udp(t, client, 4000, server, 53, string(make([]byte, 50))), 7, 32)
	w.in(lanIndex, f[0], Drop, reason.Block)
	w.in(lanIndex, f[1], Drop, reason.FragmentOrphan)
	w = newWorld(t)
	w.in(lanIndex, f[0], Redirect, reason.NoRule)
	w.in(lanIndex, f[1], Redirect, reason.Rule)
	w = newWorld(t, pass())
	w.in(lanIndex, f[0], Redirect, reason.Rule)
	w.states[0].dead = true
	w.in(lanIndex, f[1], Drop, reason.FragmentOrphan)
	short := fragments(t, seg(false, "S", 1, 0, 0).bytes(t), 8, 16)
	w.in(lanIndex, short[0], Drop, reason.FragmentShort)
}

// withOptions adds a router alert to an IPv4 frame.
func withOptions(t *testing.T, b []byte) []byte {
	t.Helper()
	return frame(t, &layers.IPv4{Version: 4, TTL: 64, SrcIP: b[26:30], DstIP: b[30:34], Protocol: layers.IPProtocol(b[23]),
		Options: []layers.IPv4Option{{OptionType: 0x94, OptionLength: 4, OptionData: []byte{0, 0}}}}, gopacket.Payload(b[34:]))
}

func TestOptions(t *testing.T) {
	plain := udp(t, client, 4000, server, 53, "q")
	b := withOptions(t, plain)
	w := newWorld(t)
	w.in(lanIndex, b, Drop, reason.Options)
	w = newWorld(t, pass())
	w.in(lanIndex, b, Drop, reason.Options)
	w.in(lanIndex, plain, Redirect, reason.Rule)
	w.in(lanIndex, b, Drop, reason.Options)
	allowed := pass()
	allowed.AllowOpts = true
	w = newWorld(t, allowed)
	w.in(lanIndex, b, Up, reason.UpOptions)
	if s := w.only(); s.Flags&state.Options == 0 {
		t.Errorf("flags %x", s.Flags)
	}
	w.in(lanIndex, b, Up, reason.UpOptions)
	w.in(lanIndex, plain, Redirect, reason.State)
	w.in(lanIndex, withOptions(t, udp(t, client, 4000, gateway, 53, "q")), Up, reason.Local)
}
