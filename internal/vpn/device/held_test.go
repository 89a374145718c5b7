package device

import (
	"net/netip"
	"sync"
	"testing"
	"time"
)

// A hop is a network that hands the messages of handshakes to another device, from an endpoint.
type hop struct {
	to   *Device
	from func(to *Endpoint) *Endpoint // nil: the message is lost

	mu   sync.Mutex
	sent []Endpoint
}

func (h *hop) Open(port uint16) (uint16, error) { return port, nil }
func (h *hop) Close() error                     { return nil }

func (h *hop) Send(message []byte, to *Endpoint) error {
	h.mu.Lock()
	h.sent = append(h.sent, *to)
	h.mu.Unlock()
	if from := h.from(to); from != nil {
		h.to.Handshake(message, from)
	}
	return nil
}

func at(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// A peer that is held is not moved by what comes by another way, or from where another way leads.
func TestHold(t *testing.T) {
	d := NewDevice(silent{}, DefaultMTU, &Logger{DiscardLogf, DiscardLogf})
	defer d.Close()
	peer, err := d.NewPeer(NoisePublicKey{1})
	if err != nil {
		t.Fatal(err)
	}
	first, second, other := at("192.0.2.1:1"), at("192.0.2.2:2"), at("192.0.2.3:3")
	local := netip.MustParseAddr("203.0.113.7")
	peer.Hold(&Endpoint{Remote: first, Interface: 5, Held: &Held{Others: []netip.AddrPort{second}}})
	for _, c := range []struct {
		from  Endpoint
		at    netip.AddrPort
		stray bool
	}{
		{Endpoint{Remote: first, Interface: 5, Local: local}, first, false},
		{Endpoint{Remote: first, Interface: 6}, first, true},
		{Endpoint{Remote: second, Interface: 5}, first, true},
		{Endpoint{Remote: other, Interface: 6}, first, true},
		{Endpoint{Remote: other, Interface: 5, Local: local}, other, false},
	} {
		peer.stray.Store(0)
		peer.Unsplit()
		peer.SetEndpointFromPacket(&c.from)
		if moved := c.at == other; peer.Splits() != moved {
			t.Errorf("after a message from %+v datagrams are split: %t", c.from, peer.Splits())
		}
		is := peer.Endpoint()
		if is.Remote != c.at || is.Interface != 5 || is.Local.IsValid() || is.Held == nil || peer.Reach().Stray.IsZero() == c.stray {
			t.Errorf("after a message from %+v the peer is at %+v, stray %v", c.from, is, peer.Reach().Stray)
		}
	}
	peer.Unsplit()
	peer.Hold(&Endpoint{Remote: second, Interface: 6, Held: &Held{Others: []netip.AddrPort{first}}})
	if !peer.Splits() {
		t.Error("the kernel may split no datagrams for the other way, because it could not for the first")
	}
	peer.Hold(&Endpoint{Remote: other, Interface: 5, Held: &Held{Others: []netip.AddrPort{second}}})
	peer.ForgetLocal()
	if is := peer.Endpoint(); is.Interface != 5 || is.Held == nil {
		t.Errorf("it is held to %+v", is)
	}
	peer.endpoint.Store(&Endpoint{Remote: first})
	peer.SetEndpointFromPacket(&Endpoint{Remote: second, Interface: 6, Local: local})
	if is := *peer.Endpoint(); is != (Endpoint{Remote: second, Interface: 6, Local: local}) {
		t.Errorf("a peer that is not held is at %+v", is)
	}
	if peer.ForgetLocal(); *peer.Endpoint() != (Endpoint{Remote: second}) {
		t.Errorf("after its address and its interface are gone, it is at %+v", peer.Endpoint())
	}
}

// A probe that goes another way is answered, makes a session, and does not move the peer. One that is lost does not
// hold up the handshakes of data.
func TestProbe(t *testing.T) {
	quiet := &Logger{DiscardLogf, DiscardLogf}
	hops := [2]*hop{}
	var ends [2]*Device
	var peers [2]*Peer
	for i := range ends {
		hops[i] = &hop{}
		ends[i] = NewDevice(hops[i], DefaultMTU, quiet)
		defer ends[i].Close()
		if err := ends[i].newIdentity(); err != nil {
			t.Fatal(err)
		}
		if err := ends[i].Up(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range ends {
		p, err := ends[i].NewPeer(ends[1-i].staticIdentity.publicKey)
		if err != nil {
			t.Fatal(err)
		}
		p.Start()
		peers[i], hops[i].to = p, ends[1-i]
	}
	a := peers[0]
	held, spare := at("192.0.2.1:1"), at("192.0.2.2:2")
	a.Hold(&Endpoint{Remote: held, Interface: 5, Held: &Held{Others: []netip.AddrPort{spare}}})
	hops[0].from = func(to *Endpoint) *Endpoint {
		if to.Remote == held {
			return nil // this way is dead
		}
		return &Endpoint{Remote: at("203.0.113.1:7")}
	}
	hops[1].from = func(*Endpoint) *Endpoint { return &Endpoint{Remote: spare, Interface: 6} }
	answered := func() bool {
		for range 100 {
			if a.Reach().Answered {
				return true
			}
			time.Sleep(5 * time.Millisecond)
		}
		return false
	}
	if begun, err := a.Probe(nil); !begun || err != nil || a.Reach().Answered {
		t.Fatalf("a probe by the way in use: %v, %v", begun, err)
	}
	if begun, err := a.Probe(&Endpoint{Remote: spare, Interface: 6}); begun || err != nil {
		t.Fatalf("a handshake is under way, and another one begins: %v, %v", begun, err)
	}
	time.Sleep(probePause + 50*time.Millisecond)
	if begun, err := a.Probe(&Endpoint{Remote: spare, Interface: 6}); !begun || err != nil || !answered() {
		t.Fatalf("a probe by the other way: %v, %v, %+v", begun, err, a.Reach())
	}
	if is := a.Endpoint(); is.Remote != held || is.Interface != 5 || a.keypairs.Current() == nil {
		t.Errorf("after the answer the peer is at %+v, keys %v", is, a.keypairs.Current())
	}
	if r := a.Reach(); r.Sent != 0 {
		hops[0].mu.Lock()
		last := hops[0].sent[len(hops[0].sent)-1]
		hops[0].mu.Unlock()
		if r.Sent != MessageKeepaliveSize || last.Remote != held {
			t.Errorf("besides probes, %d bytes were sent, the last to %+v", r.Sent, last)
		}
	}
}
