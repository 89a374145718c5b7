package device

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A wide link is a peer with lanes: tunnels beside its own, to the same far end. A lane is a peer that has keys of its
// own at both ends and messages at a port of its own. It has no networks: what it carries is its first peer's.

// MostPorts is how many ports a device has at most: the first, and those of lanes.
const MostPorts = 16

// identity is a static key pair, with what checks messages to it.
type identity struct {
	sync.RWMutex
	privateKey NoisePrivateKey
	publicKey  NoisePublicKey
	checker    CookieChecker
	place      uint8 // of the port where it is known
}

// identity returns the key pair that the peer knows this end by.
func (peer *Peer) identity() *identity {
	if peer.own != nil {
		return peer.own
	}
	return &peer.device.staticIdentity
}

// knownBy returns the peer with a public key that knows this end by a key pair, or nil. The key of a lane is one that the
// other end chose: it is found as a lane's only.
func (device *Device) knownBy(remote NoisePublicKey, static *identity) *Peer {
	if static == &device.staticIdentity {
		return device.LookupPeer(remote)
	}
	return device.lane(static.place, static.publicKey, remote)
}

// lane returns the lane at a place with these keys, or nil.
func (device *Device) lane(place uint8, own, remote NoisePublicKey) *Peer {
	device.lanes.RLock()
	defer device.lanes.RUnlock()
	for _, lane := range device.lanes.at[place%MostPorts] {
		if lane.own.publicKey == own && lane.handshake.remoteStatic == remote {
			return lane
		}
	}
	return nil
}

// lanes are the lanes of all peers, by the place of their port. They are not among the device's peers.
type lanes struct {
	sync.RWMutex
	at [MostPorts][]*Peer

	// The thread of handshakes has these:
	second int64 // of the Unix time
	tried  int   // lanes in it, for messages from where none of them is
}

// mostTried is how many lanes are tried in a second for messages from where none of them is. Each costs a hash, whoever has
// sent the message.
const mostTried = 4096

// identityFor returns the key pair that a message is for which came to a port, or nil.
func (device *Device) identityFor(elem *handshakeElement, now time.Time) *identity {
	place := elem.endpoint.Place
	if place == 0 {
		return device.staticIdentity.takes(elem)
	}
	if elem.msgType == MessageResponseType { // it says who has begun
		begun := device.indexTable.Lookup(binary.LittleEndian.Uint32(elem.message()[8:])).peer
		if begun == nil || begun.place != place {
			return nil
		}
		return begun.identity().takes(elem)
	}
	all := &device.lanes
	all.RLock()
	defer all.RUnlock()
	from := elem.endpoint.Remote.Addr()
	for _, lane := range all.at[place%MostPorts] {
		if is := lane.endpoint.Load(); is == nil || is.Remote.Addr() != from {
			continue
		}
		if static := lane.own.takes(elem); static != nil {
			return static
		}
	}
	if second := now.Unix(); second != all.second {
		all.second, all.tried = second, 0
	}
	for _, lane := range all.at[place%MostPorts] {
		if all.tried++; all.tried > mostTried {
			return nil // a lane that is elsewhere is found when its first tunnel is
		}
		if static := lane.own.takes(elem); static != nil {
			return static
		}
	}
	return nil
}

// takes returns the key pair if a message is for it, else nil.
func (i *identity) takes(elem *handshakeElement) *identity {
	if i.checker.CheckMAC1(elem.message()) {
		return i
	}
	return nil
}

// wide is what makes a peer a wide link.
type wide struct {
	spread atomic.Pointer[[]*Peer] // by which of them connections go; nil: by the peer itself

	mu             sync.Mutex
	lanes          []*Peer
	sent, received uint64 // bytes of lanes that are gone
}

// NewLane adds a lane to a peer. It has the peer's preshared key and keepalive.
func (peer *Peer) NewLane(place uint8, private NoisePrivateKey, remote NoisePublicKey) (*Peer, error) {
	if place == 0 || place >= MostPorts || peer.first != nil {
		return nil, errors.New("a lane needs a port of its own and a peer that is none")
	}
	own := &identity{privateKey: private, publicKey: private.publicKey(), place: place}
	own.checker.Init(own.publicKey)
	device := peer.device
	lane := device.makePeer(remote, own)
	lane.own, lane.first, lane.place = own, peer, place
	lane.persistentKeepaliveInterval.Store(peer.persistentKeepaliveInterval.Load())
	peer.handshake.mutex.RLock()
	lane.handshake.presharedKey = peer.handshake.presharedKey
	peer.handshake.mutex.RUnlock()
	device.peers.Lock()
	defer device.peers.Unlock()
	if device.peers.keyMap[peer.handshake.remoteStatic] != peer {
		return nil, errors.New("the peer is gone")
	}
	if device.lane(place, own.publicKey, remote) != nil {
		return nil, errors.New("there is a lane with the same keys")
	}
	peer.wide.mu.Lock()
	peer.wide.lanes = append(peer.wide.lanes, lane)
	peer.wide.mu.Unlock()
	all := &device.lanes
	all.Lock()
	all.at[place] = append(all.at[place], lane)
	all.Unlock()
	if device.isUp() {
		lane.Start()
	}
	return lane, nil
}

// RemoveLane removes a lane. What it has carried stays counted.
func (peer *Peer) RemoveLane(lane *Peer) {
	device := peer.device
	device.peers.Lock()
	defer device.peers.Unlock()
	w := &peer.wide
	w.mu.Lock()
	at := slices.Index(w.lanes, lane)
	if at >= 0 {
		w.lanes = slices.Delete(w.lanes, at, at+1)
		w.sent, w.received = w.sent+lane.txBytes.Load(), w.received+lane.rxBytes.Load()
	}
	w.mu.Unlock()
	if at < 0 {
		return // it went with its peer
	}
	device.forgetLane(lane)
	lane.Stop()
}

func (device *Device) forgetLane(lane *Peer) {
	all := &device.lanes
	all.Lock()
	defer all.Unlock()
	all.at[lane.place] = slices.DeleteFunc(all.at[lane.place], func(p *Peer) bool { return p == lane })
}

// forgetLanes has a peer that is to be removed have no lanes, and returns those it had.
func (peer *Peer) forgetLanes() []*Peer {
	peer.wide.spread.Store(nil)
	peer.wide.mu.Lock()
	gone := peer.wide.lanes
	peer.wide.lanes = nil
	peer.wide.mu.Unlock()
	for _, lane := range gone {
		peer.device.forgetLane(lane)
	}
	return gone
}

// Spread has connections go by these peers, each by one: lanes of the peer, or the peer itself. None: all go by the
// peer itself.
func (peer *Peer) Spread(over []*Peer) {
	if len(over) == 0 {
		peer.wide.spread.Store(nil)
		return
	}
	peer.wide.spread.Store(&over)
}

// Lane returns by which peer a connection goes, which a hash tells.
func (peer *Peer) Lane(over *[]*Peer, flow uint32) *Peer { return (*over)[flow%uint32(len(*over))] }

// Over returns what Spread was given, or nil.
func (peer *Peer) Over() *[]*Peer { return peer.wide.spread.Load() }

// First returns the peer whose lane this one is, or itself. It has the networks.
func (peer *Peer) First() *Peer {
	if peer.first != nil {
		return peer.first
	}
	return peer
}

// Place returns the place of the port that the peer's messages leave by and come to.
func (peer *Peer) Place() uint8 { return peer.place }

// Bytes returns what was sent to the peer and came from it, with the packets of its lanes. What lanes need for themselves is
// not counted, and no notes: who decides by these numbers asks whether the link is used.
func (peer *Peer) Bytes() (sent, received uint64) {
	w := &peer.wide
	w.mu.Lock()
	defer w.mu.Unlock()
	sent, received = w.sent+peer.txBytes.Load(), w.received+peer.rxBytes.Load()
	for _, lane := range w.lanes {
		sent, received = sent+lane.txBytes.Load(), received+lane.rxBytes.Load()
	}
	return sent, received
}

// Lanes returns the peer's lanes.
func (peer *Peer) Lanes() []*Peer {
	peer.wide.mu.Lock()
	defer peer.wide.mu.Unlock()
	return slices.Clone(peer.wide.lanes)
}

// Own returns what was sent by the peer itself and what came, without its lanes.
func (peer *Peer) Own() (sent, received uint64) { return peer.txBytes.Load(), peer.rxBytes.Load() }

// Key returns the peer's public key.
func (peer *Peer) Key() NoisePublicKey { return peer.handshake.remoteStatic }

// Keys returns the keys to send with; nil: there are none.
func (peer *Peer) Keys() *Keypair { return peer.keypairs.Current() }

// Fresh reports whether the peer has keys to send with.
func (peer *Peer) Fresh(now time.Time) bool {
	keypair := peer.keypairs.Current()
	return keypair != nil && now.Sub(keypair.created) < RejectAfterTime && keypair.sendNonce.Load() < RejectAfterMessages
}

// Follow has a lane be where its first peer is, at a port of its own there. It is reached as the first peer is.
func (peer *Peer) Follow(port uint16) {
	is := peer.first.endpoint.Load()
	if is == nil {
		return
	}
	to := *is
	to.Remote, to.Place = netip.AddrPortFrom(is.Remote.Addr(), port), peer.place
	if is.Held != nil {
		held := &Held{}
		for _, o := range is.Held.Others {
			held.Others = append(held.Others, netip.AddrPortFrom(o.Addr(), port))
		}
		to.Held = held
	}
	peer.endpoint.Store(&to)
	peer.unsplit.Store(0)
}
