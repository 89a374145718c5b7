package device

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A peer that several ways lead to is held to one of them: messages that come by another do not move it. Whether
// a way works is found out by the first message of a handshake, which every WireGuard answers.

// Held says that a peer is where it was put.
type Held struct {
	Others []netip.AddrPort // where its other ways lead
}

// Hold has a peer be at an endpoint, which is Held.
func (peer *Peer) Hold(to *Endpoint) {
	peer.endpoint.Store(to)
	peer.unsplit.Store(0) // what the other way could not may be possible here
}

// follow has a peer that is held be at another address, if a message came from there by the interface that it is
// held to. An address that another way leads to is not followed.
func (peer *Peer) follow(is, from *Endpoint) {
	switch {
	case is.Interface != 0 && is.Interface != from.Interface, from.Remote != is.Remote && slices.Contains(is.Held.Others, from.Remote):
		peer.stray.Store(time.Now().UnixNano())
	case from.Remote != is.Remote:
		peer.endpoint.CompareAndSwap(is, &Endpoint{Remote: from.Remote, Scope: from.Scope, Interface: is.Interface, Held: is.Held, Place: is.Place})
		peer.unsplit.Store(0)
	}
}

// probe is the last handshake that was begun to see whether a way works.
type probe struct {
	mu      sync.Mutex
	index   uint32 // of the handshake
	waiting bool   // for the answer
	apart   bool   // it went another way than the peer's messages do
	began   time.Time
	took    time.Duration
	sent    uint64 // bytes of all probes
}

// Reach is what is known of how a peer can be reached.
type Reach struct {
	Endpoint       *Endpoint // nil: not known
	Sent, Received uint64    // bytes, probes not counted as sent
	Stray          time.Time // when a message came last by another way than the peer is held to
	Answered       bool      // the last probe
	Took           time.Duration
}

// Reach tells how the peer can be reached.
func (peer *Peer) Reach() Reach {
	peer.probe.mu.Lock()
	defer peer.probe.mu.Unlock()
	sent, received := peer.Bytes()
	r := Reach{Endpoint: peer.endpoint.Load(), Sent: sent - peer.probe.sent, Received: received}
	at := peer.stray.Load()
	for _, lane := range peer.Lanes() {
		at = max(at, lane.stray.Load())
	}
	if at != 0 {
		r.Stray = time.Unix(0, at)
	}
	if p := &peer.probe; !p.waiting && p.took > 0 {
		r.Answered, r.Took = true, p.took
	}
	return r
}

// probePause is how long a handshake has that was begun for data before one may be begun that goes apart: only the
// last one can come to its end.
const probePause = time.Second

// Probe begins a handshake to see whether a way works. With nil it is the way that the peer's messages go. It
// reports whether it was begun: another handshake may be under way.
func (peer *Peer) Probe(to *Endpoint) (begun bool, err error) {
	apart := to != nil
	if !apart {
		to = peer.endpoint.Load()
	}
	if to == nil || !peer.isRunning.Load() || !peer.device.isUp() {
		return false, errNoEndpoint
	}
	now := time.Now()
	peer.handshake.mutex.Lock()
	busy := apart && peer.handshake.state == handshakeInitiationCreated && now.Sub(peer.handshake.lastSentHandshake) < probePause
	if !apart {
		peer.handshake.lastSentHandshake = now
	}
	peer.handshake.mutex.Unlock()
	if busy {
		return false, nil
	}
	first, err := peer.device.CreateMessageInitiation(peer)
	if err != nil {
		return false, err
	}
	message := make([]byte, MessageInitiationSize)
	if err := first.marshal(message); err != nil {
		return false, err
	}
	peer.cookieGenerator.AddMacs(message)
	peer.probe.mu.Lock()
	peer.probe.index, peer.probe.waiting, peer.probe.apart, peer.probe.began, peer.probe.took = first.Sender, true, apart, now, 0
	peer.probe.mu.Unlock()
	if !apart {
		peer.timersAnyAuthenticatedPacketTraversal()
		peer.timersAnyAuthenticatedPacketSent()
	}
	if err := peer.device.net.network.Send(message, to); err != nil {
		return false, err
	}
	peer.probe.mu.Lock()
	peer.probe.sent += MessageInitiationSize
	peer.txBytes.Add(MessageInitiationSize)
	peer.probe.mu.Unlock()
	return true, nil
}

// answered notes the second message of a handshake. It reports whether it was one that went apart.
func (peer *Peer) answered(message []byte) (apart bool) {
	p := &peer.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waiting || binary.LittleEndian.Uint32(message[8:]) != p.index {
		return false
	}
	p.waiting, p.took = false, max(time.Since(p.began), 1)
	return p.apart
}
