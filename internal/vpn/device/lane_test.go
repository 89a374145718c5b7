package device

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"
)

// record is a network that remembers what it was to send.
type record struct {
	mu   sync.Mutex
	sent []recordedMessage
}

type recordedMessage struct {
	message []byte
	to      Endpoint
}

func (*record) Open(port uint16) (uint16, error) { return port, nil }
func (*record) Close() error                     { return nil }

func (r *record) Send(message []byte, to *Endpoint) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, recordedMessage{slices.Clone(message), *to})
	return nil
}

// take returns the first message of a type that was sent since it was last called, and forgets all.
func (r *record) take(kind byte) (m recordedMessage, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sent {
		if s.message[0] == kind && !ok {
			m, ok = s, true
		}
	}
	r.sent = nil
	return m, ok
}

// linkEnd is an end of a link with lanes.
type linkEnd struct {
	*Device
	network *record
	peer    *Peer   // the other end
	lanes   []*Peer // by the place of their port, the first of which is nil
}

// linkOf returns both ends of a link of some ports, without sessions.
func linkOf(t testing.TB, ports int) (ends [2]*linkEnd) {
	t.Helper()
	for i := range ends {
		n := &record{}
		ends[i] = &linkEnd{Device: NewDevice(n, DefaultMTU, &Logger{DiscardLogf, DiscardLogf}), network: n, lanes: []*Peer{nil}}
		t.Cleanup(ends[i].Close)
		if err := ends[i].newIdentity(); err != nil {
			t.Fatal(err)
		}
		if err := ends[i].Up(); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range ends {
		p, err := e.NewPeer(ends[1-i].staticIdentity.publicKey)
		if err != nil {
			t.Fatal(err)
		}
		p.endpoint.Store(&Endpoint{Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(1 - i)}), 51820)})
		p.Start()
		e.peer = p
	}
	for place := 1; place < ports; place++ {
		var keys [2]NoisePrivateKey
		for i := range keys {
			var err error
			if keys[i], err = newPrivateKey(); err != nil {
				t.Fatal(err)
			}
		}
		for i, e := range ends {
			lane, err := e.peer.NewLane(uint8(place), keys[i], keys[1-i].publicKey())
			if err != nil {
				t.Fatal(err)
			}
			lane.Follow(51820 + uint16(place))
			e.lanes = append(e.lanes, lane)
		}
	}
	return ends
}

// laneAt returns the lane at a place if the device has it.
func (e *linkEnd) laneAt(place uint8) *Peer {
	return e.lane(place, e.lanes[place].own.publicKey, e.lanes[place].Key())
}

// arrive has a message come to a port of the end.
func (e *linkEnd) arrive(message []byte, from netip.AddrPort, place uint8) {
	elem := &handshakeElement{msgType: uint32(message[0]), size: len(message), endpoint: Endpoint{Remote: from, Place: place}}
	copy(elem.packet[:], message)
	e.handle(elem)
}

// A state is what a message that is replayed must not change.
type peerState struct {
	endpoint                *Endpoint
	current, previous, next *Keypair
	handshake               handshakeState
	index                   uint32
	received                uint64
}

func (e *linkEnd) states() (all []peerState) {
	for _, p := range append([]*Peer{e.peer}, e.lanes[1:]...) {
		p.handshake.mutex.RLock()
		p.keypairs.RLock()
		all = append(all, peerState{p.endpoint.Load(), p.keypairs.current, p.keypairs.previous, p.keypairs.next.Load(), p.handshake.state, p.handshake.localIndex, p.rxBytes.Load()})
		p.keypairs.RUnlock()
		p.handshake.mutex.RUnlock()
	}
	return all
}

// Messages of handshakes that were recorded on one port, delivered there or not, and come to the others: no endpoint and
// no key changes, and nobody answers.
func TestReplayedElsewhere(t *testing.T) {
	const ports = 4
	thief := netip.MustParseAddrPort("198.51.100.66:666")
	for place := range uint8(ports) {
		for _, delivered := range []bool{false, true} {
			ends := linkOf(t, ports)
			a, b := ends[0], ends[1]
			of := func(e *linkEnd) *Peer {
				if place == 0 {
					return e.peer
				}
				return e.lanes[place]
			}
			if err := of(a).SendHandshakeInitiation(false); err != nil {
				t.Fatal(err)
			}
			first, ok := a.network.take(MessageInitiationType)
			if !ok || first.to.Place != place || first.to.Remote.Port() != 51820+uint16(place) {
				t.Fatalf("port %d: the handshake begins with %+v", place, first)
			}
			replay := func(e *linkEnd, message []byte) {
				t.Helper()
				before := e.states()
				e.network.take(0)
				for other := range uint8(ports) {
					if other != place {
						e.arrive(message, thief, other)
					}
				}
				if !slices.Equal(before, e.states()) {
					t.Errorf("a message of type %d of port %d (delivered: %v) has changed something at another port", message[0], place, delivered)
				}
				if len(e.network.sent) > 0 {
					t.Errorf("a message of type %d of port %d is answered at another port: %+v", message[0], place, e.network.sent)
				}
			}
			from := netip.MustParseAddrPort("192.0.2.0:51820")
			if delivered {
				b.arrive(first.message, from, place)
				if b.states()[place].next == nil {
					t.Fatalf("port %d takes no handshake of its own", place)
				}
				second, ok := b.network.take(MessageResponseType)
				if !ok || second.to.Place != place || second.to.Remote != from {
					t.Fatalf("port %d: the answer is %+v", place, second)
				}
				replay(a, second.message)
				a.arrive(second.message, from, place)
				if of(a).keypairs.Current() == nil {
					t.Fatalf("port %d takes no answer of its own", place)
				}
				replay(a, second.message)
				b.arrive(first.message, thief, place) // the same port knows it, too
				if is := of(b).Endpoint(); is.Remote != from {
					t.Errorf("an initiation that came again moves the peer to %v", is.Remote)
				}
			}
			replay(b, first.message)
		}
	}
}

// A key counts for its own port and its own end only: neither that of a lane at the first port, nor the other way, nor
// another lane's.
func TestLaneKeys(t *testing.T) {
	ends := linkOf(t, 3)
	a, b := ends[0], ends[1]
	wrong := []struct {
		from  *Peer
		to    NoisePublicKey
		place uint8
	}{
		{a.peer, b.lanes[1].own.publicKey, 1}, {a.lanes[1], b.staticIdentity.publicKey, 0}, {a.lanes[1], b.lanes[2].own.publicKey, 2},
	}
	for i, w := range wrong {
		before := b.states()
		forged := a.makePeer(w.to, w.from.identity())
		forged.own = w.from.identity()
		first, err := a.CreateMessageInitiation(forged)
		if err != nil {
			t.Fatal(err)
		}
		message := make([]byte, MessageInitiationSize)
		if err := first.marshal(message); err != nil {
			t.Fatal(err)
		}
		forged.cookieGenerator.AddMacs(message)
		b.network.take(0)
		b.arrive(message, netip.MustParseAddrPort("198.51.100.66:666"), w.place)
		if !slices.Equal(before, b.states()) || len(b.network.sent) > 0 {
			t.Errorf("%d: a key is taken where it does not belong", i)
		}
	}
}

// Lanes follow their first peer, held or not, and go with it. What they have carried stays counted.
func TestLanesFollow(t *testing.T) {
	ends := linkOf(t, 3)
	a := ends[0]
	a.peer.Hold(&Endpoint{Remote: at("192.0.2.7:51820"), Interface: 4, Held: &Held{Others: []netip.AddrPort{at("192.0.2.8:51820")}}})
	a.lanes[2].Follow(51822)
	is := a.lanes[2].Endpoint()
	if is.Remote != at("192.0.2.7:51822") || is.Interface != 4 || is.Place != 2 || is.Held == nil || !slices.Equal(is.Held.Others, []netip.AddrPort{at("192.0.2.8:51822")}) {
		t.Errorf("the lane is at %+v", is)
	}
	a.lanes[2].SetEndpointFromPacket(&Endpoint{Remote: at("192.0.2.8:51822"), Interface: 5, Place: 2})
	if a.lanes[2].Endpoint() != is {
		t.Errorf("a message by another way moves the lane to %+v", a.lanes[2].Endpoint())
	}
	if a.peer.Reach().Stray.IsZero() {
		t.Error("nobody is told that messages come by another way")
	}
	a.lanes[2].SetEndpointFromPacket(&Endpoint{Remote: at("192.0.2.9:7"), Interface: 4, Place: 2})
	if now := a.lanes[2].Endpoint(); now.Remote != at("192.0.2.9:7") || now.Place != 2 {
		t.Errorf("a lane that roams is at %+v", now)
	}
	a.lanes[1].Sent(100)
	a.lanes[1].rxBytes.Add(10)
	a.peer.RemoveLane(a.lanes[1])
	if sent, received := a.peer.Bytes(); sent < 100 || received != 10 {
		t.Errorf("a link whose lane is gone has sent %d and received %d", sent, received)
	}
	if a.laneAt(1) != nil || a.lanes[1].Running() {
		t.Error("a lane that was removed is there")
	}
	a.RemovePeer(a.peer.Key())
	if a.laneAt(2) != nil || a.lanes[2].Running() || a.identityFor(&handshakeElement{size: MessageInitiationSize, endpoint: Endpoint{Place: 2}}, time.Now()) != nil {
		t.Error("a lane has outlived its peer")
	}
	a.peer.RemoveLane(a.lanes[2]) // it is no harm to remove it again
}

// Another private key of the device changes nothing for lanes, which whoever made them has to remove.
func TestLanesKeepTheirKeys(t *testing.T) {
	ends := linkOf(t, 2)
	a, b := ends[0], ends[1]
	if err := a.newIdentity(); err != nil {
		t.Fatal(err)
	}
	if err := a.lanes[1].SendHandshakeInitiation(false); err != nil {
		t.Fatal(err)
	}
	first, _ := a.network.take(MessageInitiationType)
	b.arrive(first.message, at("192.0.2.1:51821"), 1)
	second, ok := b.network.take(MessageResponseType)
	if !ok {
		t.Fatal("the lane's handshake is not answered")
	}
	a.arrive(second.message, at("192.0.2.2:51821"), 1)
	if !a.lanes[1].Fresh(time.Now()) {
		t.Error("the lane has no session")
	}
}

// A device that gets the key of a peer loses that peer, with its lanes.
func TestPeersKey(t *testing.T) {
	ends := linkOf(t, 3)
	a, b := ends[0], ends[1]
	done := make(chan error, 1)
	go func() { done <- a.SetPrivateKey(b.staticIdentity.privateKey) }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		go panic("the key is never set") // not here: Close would not end, either
		select {}
	}
	for _, p := range append([]*Peer{a.peer}, a.lanes[1:]...) {
		if a.LookupPeer(p.Key()) != nil || p != a.peer && a.laneAt(p.place) != nil || p.Running() {
			t.Errorf("%v is there", p)
		}
	}
}

// A lane that has the key of a peer which is not there yet, as the other end chose it, is not that peer.
func TestLaneWithPeersKey(t *testing.T) {
	ends := linkOf(t, 2)
	a, other := ends[0], linkOf(t, 1)[0]
	private, err := newPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	lane, err := a.peer.NewLane(2, private, other.staticIdentity.publicKey)
	if err != nil {
		t.Fatal(err)
	}
	k := other.staticIdentity.publicKey
	if a.LookupPeer(k) != nil {
		t.Error("a lane is found as a peer")
	}
	said := fmt.Sprintf("public_key=%x\npreshared_key=%x\nreplace_allowed_ips=true\nallowed_ip=10.7.0.0/16\n", k[:], private[:])
	if err := a.IpcSet(said); err != nil {
		t.Fatal(err)
	}
	p := a.Route([]byte{10, 7, 0, 1})
	if p == nil || p == lane || lane.handshake.presharedKey == p.handshake.presharedKey {
		t.Fatalf("the peer is %v", p)
	}
	to, err := other.NewPeer(a.staticIdentity.publicKey)
	if err != nil {
		t.Fatal(err)
	}
	to.endpoint.Store(&Endpoint{Remote: at("192.0.2.1:51820")})
	to.Start()
	other.network.take(0)
	if err := to.SendHandshakeInitiation(false); err != nil {
		t.Fatal(err)
	}
	first, _ := other.network.take(MessageInitiationType)
	a.arrive(first.message, at("192.0.2.9:51820"), 0)
	if _, ok := a.network.take(MessageResponseType); !ok || p.Endpoint() == nil {
		t.Error("the peer's handshake is not answered")
	}
	if a.peer.RemoveLane(lane); a.LookupPeer(k) != p || !p.Running() || a.Route([]byte{10, 7, 0, 1}) != p {
		t.Error("the peer is gone with the lane")
	}
	if _, err := a.peer.NewLane(1, a.lanes[1].own.privateKey, a.lanes[1].Key()); err == nil {
		t.Error("two lanes have the same keys")
	}
}

// A flood of messages from anywhere costs a second no more than so many hashes. It does not keep lanes from handshakes
// where they are.
func TestFloodOfLanes(t *testing.T) {
	ends := linkOf(t, 2)
	a, b := ends[0], ends[1]
	if err := a.lanes[1].SendHandshakeInitiation(false); err != nil {
		t.Fatal(err)
	}
	first, _ := a.network.take(MessageInitiationType)
	now := time.Now()
	from := func(address string, message []byte) *identity {
		elem := &handshakeElement{msgType: uint32(message[0]), size: len(message), endpoint: Endpoint{Remote: at(address), Place: 1}}
		copy(elem.packet[:], message)
		return b.identityFor(elem, now)
	}
	here, elsewhere := b.lanes[1].Endpoint().Remote.String(), "198.51.100.66:666"
	if from(elsewhere, first.message) != b.lanes[1].own {
		t.Error("a lane is not found that is elsewhere")
	}
	junk := slices.Clone(first.message)
	junk[len(junk)-17]++
	for range mostTried {
		if from(elsewhere, junk) != nil {
			t.Fatal("junk is taken")
		}
	}
	if from(elsewhere, first.message) != nil {
		t.Error("the flood has no limit")
	}
	if from(here, first.message) != b.lanes[1].own {
		t.Error("the flood keeps a lane from a handshake where it is")
	}
	b.arrive(first.message, at(here), 1)
	second, ok := b.network.take(MessageResponseType)
	if !ok {
		t.Fatal("the handshake is not answered")
	}
	for range mostTried {
		answer := &handshakeElement{msgType: MessageResponseType, size: len(second.message), endpoint: Endpoint{Remote: at(elsewhere), Place: 1}}
		copy(answer.packet[:], second.message)
		if a.identityFor(answer, now) != a.lanes[1].own {
			t.Fatal("an answer is not known by who began")
		}
	}
	if now = now.Add(time.Second); from(elsewhere, first.message) != b.lanes[1].own {
		t.Error("the flood has an effect after its end")
	}
}
