package ppp

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

func FuzzPacket(f *testing.F) {
	for _, b := range oddFrames {
		f.Add(b)
	}
	for _, protocol := range []Protocol{PAP, CHAP} {
		f.Add(frame(protocol, Packet{Code: 1, ID: 1, Data: longFields}))
		f.Add(frame(protocol, Packet{Code: 2, ID: 1, Data: longFields}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Describe(b)
		Redact(b)
		p, err := ParsePacket(b)
		if err != nil {
			return
		}
		if again := p.Append(nil); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x became %x", b, again)
		}
		if options, err := ParseOptions(p.Data); err == nil && !bytes.Equal(AppendOptions(nil, options), p.Data) {
			t.Errorf("options of %x", b)
		}
	})
}

// longFields are two fields as long as a field can be.
var longFields = appendField(appendField(nil, bytes.Repeat([]byte{'n'}, 255)), bytes.Repeat([]byte{'p'}, 255))

// oddFrames have what goes wrong: lengths that lie, options of no length, wrong sizes.
var oddFrames = [][]byte{
	frame(LCP, Packet{Code: CodeReject, ID: 3, Data: []byte{0}}), // of a code that nobody has sent
	{}, {0xc0}, {0xc0, 0x21}, {0xc0, 0x21, 1}, {0xc0, 0x21, 1, 1, 0, 3}, {0xc0, 0x21, 1, 1, 0, 4}, {0xc0, 0x21, 1, 1, 0, 200},
	{0xc0, 0x21, 1, 1, 0, 6, 1, 0}, {0xc0, 0x21, 1, 1, 0, 6, 1, 1}, {0xc0, 0x21, 1, 1, 0, 6, 1, 2}, {0xc0, 0x21, 1, 1, 0, 6, 1, 9},
	{0xc0, 0x21, 1, 1, 0, 8, 1, 4, 0, 0}, {0xc0, 0x21, 1, 1, 0, 10, 5, 6, 0, 0, 0, 0}, {0xc0, 0x21, 1, 1, 0, 8, 3, 4, 0xc0, 0x23},
	{0xc0, 0x21, 1, 1, 0, 9, 3, 5, 0xc2, 0x23, 5}, {0xc0, 0x21, 1, 1, 0, 9, 3, 5, 0xc2, 0x23, 0x81},
	{0xc0, 0x21, 3, 1, 0, 7, 1, 3, 9}, {0xc0, 0x21, 4, 1, 0, 6, 3, 2}, {0xc0, 0x21, 5, 9, 0, 4}, {0xc0, 0x21, 6, 9, 0, 4},
	{0xc0, 0x21, 7, 9, 0, 4}, {0xc0, 0x21, 7, 9, 0, 5, 1}, {0xc0, 0x21, 7, 9, 0, 5, 12}, {0xc0, 0x21, 8, 9, 0, 5, 0x80},
	{0xc0, 0x21, 8, 9, 0, 6, 0x80, 0x21}, {0xc0, 0x21, 8, 9, 0, 6, 0xc0, 0x21}, {0xc0, 0x21, 9, 9, 0, 4}, {0xc0, 0x21, 9, 9, 0, 8, 0, 0, 0, 0},
	{0xc0, 0x21, 10, 9, 0, 4}, {0xc0, 0x21, 11, 9, 0, 4}, {0xc0, 0x21, 12, 9, 0, 4}, {0xc0, 0x21, 0, 9, 0, 4},
	{0xc0, 0x23, 1, 1, 0, 5, 9}, {0xc0, 0x23, 2, 1, 0, 4}, {0xc0, 0x23, 3, 1, 0, 6, 255, 1}, {0xc2, 0x23, 1, 1, 0, 4},
	{0xc2, 0x23, 1, 1, 0, 5, 0}, {0xc2, 0x23, 1, 1, 0, 6, 1, 7}, {0xc2, 0x23, 3, 9, 0, 4}, {0xc2, 0x23, 4, 9, 0, 5, 'x'},
	{0x80, 0x21, 1, 1, 0, 10, 3, 6, 0, 0, 0, 0}, {0x80, 0x21, 3, 1, 0, 10, 129, 6, 8, 8, 8, 8}, {0x80, 0x21, 1, 1, 0, 10, 2, 6, 0, 45, 15, 1},
	{0x80, 0x57, 1, 1, 0, 14, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0}, {0x80, 0x57, 3, 1, 0, 6, 1, 2}, {0x80, 0xfd, 1, 1, 0, 4}, {0x00, 0x21, 0x45},
}

// FuzzLink gives both kinds of end a sequence of frames, some of which the other end really
// sends, and lets time pass. It may crash nothing, and no end may send more than a few
// frames for each that it gets.
func FuzzLink(f *testing.F) {
	var all []byte
	for _, b := range oddFrames {
		all = append(append(all, byte(len(b))), b...)
	}
	opened := append([]byte{0xfe, 0xff, 0xfe}, all...)
	for _, script := range [][]byte{all, opened, append(opened, 0xff, 0xff, 0xfe, 0xff, 0xff)} {
		f.Add(true, script)
		f.Add(false, script)
	}
	f.Fuzz(func(t *testing.T, server bool, script []byte) {
		now := time.Unix(1000, 0)
		a, b := pair(now)
		if server {
			a, b = b, a
		}
		for len(script) > 0 {
			n := min(int(script[0]), len(script)-1)
			if script[0] >= 0xfe {
				n = 0
			}
			switch script[0] {
			case 0xff:
				now = now.Add(time.Second)
				a.Tick(now)
				b.Tick(now)
			case 0xfe:
				exchange(a, b, now)
			default:
				a.Receive(script[1:1+n], now)
				frames, _ := a.Take()
				if len(frames) > 8 {
					t.Fatalf("%d frames after one", len(frames))
				}
				for _, one := range frames {
					Describe(one)
					if len(one) > 2+1500 {
						t.Fatalf("a frame of %d bytes", len(one))
					}
					b.Receive(one, now)
				}
			}
			script = script[1+n:]
		}
	})
}

// pair returns a client and a concentrator.
func pair(now time.Time) (client, server *Link) {
	random := rand.NewChaCha8([32]byte{1})
	secret := NewSecret("thursday")
	client = New(Config{
		Random: random, MRU: MaxMRU, Prove: Prove{Name: "me", Secret: secret}, V4: &V4{AskDNS: true}, V6: &V6{},
		EchoEvery: 10 * time.Second, EchoMisses: 5,
	}, now)
	server = New(Config{
		Random: random, MRU: MaxMRU, V6: &V6{},
		Ask: Ask{Methods: []Method{ByCHAP, ByMSCHAPv2, ByPAP}, Secret: func(string) (Secret, bool) { return secret, true }},
		V4:  &V4{Own: netip.MustParseAddr("192.0.2.1"), Peer: netip.MustParseAddr("192.0.2.2")},
	}, now)
	return client, server
}

// exchange lets two ends talk until both are silent, or for 50 rounds.
func exchange(a, b *Link, now time.Time) {
	for range 50 {
		fromA, _ := a.Take()
		fromB, _ := b.Take()
		if len(fromA)+len(fromB) == 0 {
			return
		}
		for _, one := range fromA {
			b.Receive(one, now)
		}
		for _, one := range fromB {
			a.Receive(one, now)
		}
	}
}

// TestOddFrames gives an open link each odd frame. What is not a word of the protocol
// changes nothing.
func TestOddFrames(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, odd := range oddFrames {
		a, b := pair(now)
		exchange(a, b, now)
		if a.ipcp.state != Opened || a.ipv6cp.state != Opened || b.ipcp.state != Opened {
			t.Fatal("the link is not open")
		}
		a.Receive(odd, now)
		a.Take()
		p, body, err := ParseFrame(odd)
		packet, err2 := ParsePacket(body)
		_, err3 := ParseOptions(packet.Data)
		changes := err == nil && err2 == nil && (packet.Code == ConfigureRequest && err3 == nil || packet.Code == TerminateRequest ||
			packet.Code == TerminateAck || packet.Code == CodeReject && len(packet.Data) > 0 && packet.Data[0] != 0 || packet.Code == ProtocolReject && len(packet.Data) > 1)
		if (p == LCP || p == IPCP || p == IPV6CP) && changes {
			continue
		}
		if a.lcp.state != Opened || a.ipcp.state != Opened || a.ipv6cp.state != Opened {
			t.Errorf("%x led to %s, %s, %s", odd, a.lcp.state, a.ipcp.state, a.ipv6cp.state)
		}
	}
}
