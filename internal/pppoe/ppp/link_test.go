package ppp

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// last returns the last frame of a protocol and code that an end has to send.
func last(frames [][]byte, protocol Protocol, code Code) (found Packet, n int) {
	for _, b := range frames {
		p, body, _ := ParseFrame(b)
		if packet, err := ParsePacket(body); err == nil && p == protocol && packet.Code == code {
			found = packet
			n++
		}
	}
	return found, n
}

// TestRequestOnceMore repeats the Configure-Request that has led to the open layer: it is
// answered and nothing else changes, for 30 s. Later it is a new negotiation.
func TestRequestOnceMore(t *testing.T) {
	now := time.Unix(1000, 0)
	a, b := pair(now)
	request := b.lcp.request
	exchange(a, b, now)
	if a.lcp.state != Opened {
		t.Fatal(a.lcp.state)
	}
	a.Receive(frame(LCP, request), now.Add(29*time.Second))
	frames, events := a.Take()
	if answer, n := last(frames, LCP, ConfigureAck); n != 1 || answer.ID != request.ID || len(frames) != 1 || len(events) != 0 || a.lcp.state != Opened {
		t.Errorf("sent %x, %v, is in %s", frames, events, a.lcp.state)
	}
	a.Receive(frame(LCP, request), now.Add(31*time.Second))
	frames, _ = a.Take()
	if _, n := last(frames, LCP, ConfigureRequest); n != 1 || a.lcp.state != AckSent || a.network {
		t.Errorf("sent %x, is in %s", frames, a.lcp.state)
	}
}

// TestResponseTwice has the CHAP Success lost, and a peer that says once more who it is. The
// verdict is the same whatever it says then (RFC 1994 4.2).
func TestResponseTwice(t *testing.T) {
	now := time.Unix(1000, 0)
	a, b := pair(now)
	var response []byte
	for range 20 {
		fromA, _ := a.Take()
		fromB, _ := b.Take()
		for _, one := range fromA {
			if _, n := last([][]byte{one}, CHAP, chapResponse); n == 1 {
				response = one
			}
			b.Receive(one, now)
		}
		for _, one := range fromB {
			a.Receive(one, now)
		}
	}
	b.Take()
	response[7] ^= 1 // the first byte of the answer to the challenge
	b.Receive(response, now)
	frames, _ := b.Take()
	if _, n := last(frames, CHAP, chapSuccess); n != 1 || b.PeerName() != "me" {
		t.Errorf("answered %x to %x", frames, response)
	}
}

// TestEchoReplyFits asks by more than the asking end can receive (RFC 1661 5.8).
func TestEchoReplyFits(t *testing.T) {
	now := time.Unix(1000, 0)
	a, b := pair(now)
	exchange(a, b, now)
	a.lcpTerms.peerMRU = 100
	a.Receive(frame(LCP, Packet{Code: EchoRequest, ID: 9, Data: make([]byte, 1000)}), now)
	frames, _ := a.Take()
	if reply, n := last(frames, LCP, EchoReply); n != 1 || reply.ID != 9 || len(reply.Data) != 96 {
		t.Errorf("a reply of %d bytes", len(reply.Data))
	}
}

func option(t uint8, address string) Option { return Option{t, netip.MustParseAddr(address).AsSlice()} }

// TestIPCPTerms has each answer of a concentrator to what is asked for.
func TestIPCPTerms(t *testing.T) {
	ask := newIPCPTerms(V4{AskDNS: true})
	if got := AppendOptions(nil, ask.request()); len(got) != 18 {
		t.Errorf("asks for %x", got)
	}
	ask.refused(ConfigureReject, []Option{option(optionDNS2, "0.0.0.0")})
	ask.refused(ConfigureNak, []Option{option(optionAddress, "198.51.100.1"), option(optionDNS1, "192.0.2.53"), option(optionDNS2, "192.0.2.54"), {optionAddress, []byte{1}}})
	if !ask.own.Is4() || ask.own != netip.MustParseAddr("198.51.100.1") || ask.dns[0] != netip.MustParseAddr("192.0.2.53") || ask.ask[1] || len(ask.request()) != 2 {
		t.Errorf("after a Nak: %+v", ask)
	}
	ask.refused(ConfigureReject, []Option{option(optionAddress, "198.51.100.1")})
	if got := ask.request(); len(got) != 1 || got[0].Type != optionDNS1 {
		t.Errorf("after a Reject of the address it asks for %+v", got)
	}
	fixed := newIPCPTerms(V4{Own: netip.MustParseAddr("203.0.113.9")})
	fixed.refused(ConfigureNak, []Option{option(optionAddress, "198.51.100.1")})
	if fixed.own != netip.MustParseAddr("203.0.113.9") {
		t.Errorf("a fixed address became %s", fixed.own)
	}
	for _, c := range []struct {
		want    V4
		options []Option
		last    bool
		code    Code
	}{
		{V4{}, []Option{option(optionAddress, "192.0.2.1")}, false, ConfigureAck},
		{V4{}, nil, false, ConfigureAck}, // an unnumbered concentrator
		{V4{}, []Option{option(optionAddress, "0.0.0.0")}, false, ConfigureReject},
		{V4{}, []Option{{2, []byte{0, 0x2d, 15, 1}}}, false, ConfigureReject}, // Van Jacobson
		{V4{}, []Option{option(optionDNS1, "0.0.0.0")}, false, ConfigureReject},
		{V4{}, []Option{{optionAddress, make([]byte, 16)}}, false, ConfigureReject},
		{V4{Peer: netip.MustParseAddr("198.51.100.1")}, []Option{option(optionAddress, "0.0.0.0")}, false, ConfigureNak},
		{V4{Peer: netip.MustParseAddr("198.51.100.1")}, []Option{option(optionAddress, "198.51.100.2")}, false, ConfigureNak},
		{V4{Peer: netip.MustParseAddr("198.51.100.1")}, []Option{option(optionAddress, "198.51.100.2")}, true, ConfigureReject},
		{V4{Peer: netip.MustParseAddr("198.51.100.1")}, []Option{option(optionAddress, "198.51.100.1")}, false, ConfigureAck},
		{V4{Peer: netip.MustParseAddr("198.51.100.1")}, nil, false, ConfigureNak},
	} {
		if code, answer := newIPCPTerms(c.want).judge(c.options, c.last); code != c.code {
			t.Errorf("%+v: %s %+v, want %s", c, code, answer, c.code)
		}
	}
}

// TestIPV6CPTerms has the identifiers that cannot be: none, and that of both ends.
func TestIPV6CPTerms(t *testing.T) {
	l, _ := pair(time.Unix(1000, 0))
	id := func(b ...byte) []Option { return []Option{{optionInterfaceID, append(make([]byte, 8-len(b)), b...)}} }
	for _, c := range []struct {
		options []Option
		last    bool
		code    Code
	}{
		{id(5), false, ConfigureAck}, {id(), false, ConfigureNak}, {id(7), false, ConfigureNak}, {id(7), true, ConfigureReject},
		{nil, false, ConfigureAck}, {[]Option{{2, []byte{0, 0}}}, false, ConfigureReject}, {[]Option{{optionInterfaceID, []byte{1}}}, false, ConfigureReject},
	} {
		terms := newIPV6CPTerms(l, V6{ID: 7})
		if code, answer := terms.judge(c.options, c.last); code != c.code {
			t.Errorf("%+v: %s %+v, want %s", c, code, answer, c.code)
		}
	}
	terms := newIPV6CPTerms(l, V6{ID: 7})
	terms.refused(ConfigureNak, id(9))
	if terms.own != 9 {
		t.Errorf("after a Nak with 9: %d", terms.own)
	}
	terms.refused(ConfigureNak, id())
	if terms.own == 0 || terms.own == 9 || terms.own&(0x02<<56) != 0 {
		t.Errorf("after a Nak with 0: %x", terms.own)
	}
}

// A Configure-Reject has options as they came, also where a Configure-Nak would have others (RFC 1661 5.4).
func TestRejectsAsAsked(t *testing.T) {
	l := New(Config{Random: rand.NewChaCha8([32]byte{1}), MRU: MaxMRU, Prove: Prove{Name: "a", Methods: []Method{ByPAP}}, V4: &V4{Own: netip.MustParseAddr("192.0.2.1"), Peer: netip.MustParseAddr("192.0.2.2")}}, time.Unix(1000, 0))
	for _, c := range []struct {
		of    terms
		asked Option
	}{
		{l.lcpTerms, Option{optionAuth, ByCHAP.option()}},
		{l.lcpTerms, Option{optionAuth, []byte{0xc2, 0x27}}}, // EAP
		{l.lcpTerms, Option{optionMRU, []byte{0, 20}}},
		{l.lcpTerms, Option{optionMagic, []byte{0, 0, 0, 0}}},
		{newIPCPTerms(*l.config.V4), Option{optionAddress, []byte{10, 0, 0, 1}}},
	} {
		code, answer := c.of.judge([]Option{c.asked}, false)
		if code != ConfigureNak || len(answer) != 1 || bytes.Equal(answer[0].Data, c.asked.Data) {
			t.Errorf("%v: %v %v", c.asked, code, answer)
		}
		code, answer = c.of.judge([]Option{c.asked}, true)
		if code != ConfigureReject || len(answer) != 1 || answer[0].Type != c.asked.Type || !bytes.Equal(answer[0].Data, c.asked.Data) {
			t.Errorf("%v, the last time: %v %v", c.asked, code, answer)
		}
	}
	l.lcpTerms.judge([]Option{{optionAuth, []byte{0xc2, 0x27}}}, true)
	if want := "the peer asks for an unknown way to prove the password (0xc227), and allowed is PAP"; l.lcpTerms.unable != want {
		t.Errorf("%q, want %q", l.lcpTerms.unable, want)
	}
	if l.lcpTerms.judge(nil, false); l.lcpTerms.unable != "" {
		t.Errorf("the peer has given in, and still %q", l.lcpTerms.unable)
	}
}
