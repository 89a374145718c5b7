package discovery

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	ownMAC  = MAC{2, 0, 0, 0, 0, 1}
	peerMAC = MAC{2, 0, 0, 0, 0, 2}
)

// padi is a PADI as RFC 2516 appendix B prints it, with a Service-Name of no bytes.
var padi = []byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88, 0x63, 0x11, 0x09, 0x00, 0x00, 0x00, 0x04,
	0x01, 0x01, 0x00, 0x00,
}

// lcpRequest is the PPP LCP packet of RFC 2516 appendix B: a Configure-Request with an MRU of
// 1,492 and a magic number, padded by what an Ethernet frame has at least.
var lcpRequest = append([]byte{
	0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88, 0x64, 0x11, 0x00, 0x12, 0x34, 0x00, 0x10,
	0xc0, 0x21, 0x01, 0x01, 0x00, 0x0e, 0x01, 0x04, 0x05, 0xd4, 0x05, 0x06, 0x12, 0x34, 0x56, 0x78,
}, make([]byte, 24)...)

func TestParse(t *testing.T) {
	f, err := Parse(padi)
	if err != nil || f.To != Broadcast || f.From != ownMAC || f.Code != PADI || f.SessionID != 0 || !bytes.Equal(f.Append(nil), padi) {
		t.Errorf("PADI: %+v, %v", f, err)
	}
	f, err = Parse(lcpRequest)
	if err != nil || f.Ether != EtherSession || f.SessionID != 0x1234 || len(f.Payload) != 16 {
		t.Errorf("LCP: %+v, %v", f, err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"short":   func(b []byte) []byte { return b[:19] },
		"ether":   func(b []byte) []byte { b[12] = 8; return b },
		"version": func(b []byte) []byte { b[14] = 0x21; return b },
		"length":  func(b []byte) []byte { b[19] = 5; return b },
	} {
		if f, err := Parse(change(bytes.Clone(padi))); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(padi)
	f.Add(lcpRequest)
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := Parse(b)
		if err != nil {
			return
		}
		if again := frame.Append(nil); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x became %x", b, again)
		}
		tags, err := ParseTags(frame.Payload)
		if err != nil {
			return
		}
		if again := AppendTags(nil, tags); !bytes.Equal(again, frame.Payload[:len(again)]) {
			t.Errorf("the tags of %x became %x", b, again)
		}
	})
}

// FuzzClient gives a client that waits for offers two packets of tags: as a PADO and a PADS.
func FuzzClient(f *testing.F) {
	uniq := Tag{HostUniq, []byte("u")}
	offer := AppendTags(nil, []Tag{uniq, {ACName, []byte("ac")}, {ServiceName, nil}, {ACCookie, []byte("c")}, {RelaySessionID, []byte("r")}})
	f.Add(offer, AppendTags(nil, []Tag{uniq, {ServiceName, nil}}), uint16(7))
	f.Add(offer, AppendTags(nil, []Tag{uniq, {GenericError, []byte("no\n\x00")}}), uint16(0))
	f.Add(append(offer, 0, 0, 0, 0, 9), []byte{1}, uint16(7))
	f.Fuzz(func(t *testing.T, pado, pads []byte, id uint16) {
		now := time.Unix(1000, 0)
		c := Start(Config{MAC: ownMAC, HostUniq: []byte("u"), MaxPayload: 1500, Random: rand.NewChaCha8([32]byte{})}, now)
		c.Receive(Frame{To: ownMAC, From: peerMAC, Ether: EtherDiscovery, Code: PADO, Payload: pado}, now)
		c.Receive(Frame{To: ownMAC, From: peerMAC, Ether: EtherDiscovery, Code: PADS, SessionID: id, Payload: pads}, now)
		frames, notes := c.Take()
		if len(frames) > 3 {
			t.Errorf("%d frames", len(frames))
		}
		for _, n := range notes {
			for _, r := range n {
				if r < ' ' || r > '~' {
					t.Errorf("a remark has %q", n)
				}
			}
		}
		if r := c.Result(); r != nil && (r.Session == 0 || r.Payload != 1492 && r.Payload != 1500) {
			t.Errorf("the session is %+v", r)
		}
	})
}

// TestTagsReturn checks that cookie and relay's identifier come back as they were, and no
// other of the concentrator's tags (RFC 2516 5.3).
func TestTagsReturn(t *testing.T) {
	now := time.Unix(1000, 0)
	c := Start(Config{MAC: ownMAC, HostUniq: []byte("u"), Random: rand.NewChaCha8([32]byte{})}, now)
	offered := []Tag{
		{ACName, []byte("ac")}, {ServiceName, nil}, {ServiceName, []byte("gold")}, {HostUniq, []byte("u")},
		{ACCookie, []byte{0, 1, 2}}, {VendorSpecific, []byte("vend")}, {RelaySessionID, []byte{9, 8}},
	}
	c.Receive(Frame{To: ownMAC, From: peerMAC, Ether: EtherDiscovery, Code: PADO, Payload: AppendTags(nil, offered)}, now)
	frames, _ := c.Take()
	want := AppendTags(nil, []Tag{{ServiceName, []byte{}}, {HostUniq, []byte("u")}, {ACCookie, []byte{0, 1, 2}}, {RelaySessionID, []byte{9, 8}}})
	if len(frames) != 2 || frames[1].Code != PADR || frames[1].To != peerMAC || !bytes.Equal(frames[1].Payload, want) {
		t.Errorf("sent %+v", frames)
	}
}

// TestBackOff has nobody who answers: each PADI comes after twice the time, up to a minute.
func TestBackOff(t *testing.T) {
	now := time.Unix(1000, 0)
	c := Start(Config{MAC: ownMAC, Random: rand.NewChaCha8([32]byte{})}, now)
	want := time.Second
	for range 10 {
		wait := c.Next().Sub(now)
		if wait < want*9/10 || wait > want*11/10 {
			t.Errorf("waits %s, want %s", wait, want)
		}
		now = c.Next()
		c.Tick(now)
		want = min(2*want, time.Minute)
	}
	if frames, _ := c.Take(); len(frames) != 11 || frames[10].Code != PADI || frames[10].To != Broadcast {
		t.Errorf("sent %d", len(frames))
	}
}

// TestSecondSession ends a session that a repeated PADR has led to.
func TestSecondSession(t *testing.T) {
	now := time.Unix(1000, 0)
	c := Start(Config{MAC: ownMAC, HostUniq: []byte("u"), Random: rand.NewChaCha8([32]byte{})}, now)
	tags := AppendTags(nil, []Tag{{ACName, []byte("ac")}, {ServiceName, nil}, {HostUniq, []byte("u")}})
	f := Frame{To: ownMAC, From: peerMAC, Ether: EtherDiscovery, Code: PADO, Payload: tags}
	c.Receive(f, now)
	f.Code = PADS
	for _, id := range []uint16{5, 5, 6} {
		f.SessionID = id
		c.Receive(f, now)
	}
	frames, _ := c.Take()
	if last := frames[len(frames)-1]; len(frames) != 3 || last.Code != PADT || last.SessionID != 6 || c.Result().Session != 5 {
		t.Errorf("sent %+v, the session is %+v", frames, c.Result())
	}
}
