/* SPDX-License-Identifier: MIT
 *
 * Copyright (C) 2017-2025 WireGuard LLC. All Rights Reserved.
 */

package device

import (
	"container/list"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type Peer struct {
	isRunning     atomic.Bool
	keypairs      Keypairs
	handshake     Handshake
	device        *Device
	txBytes       atomic.Uint64             // sent to the peer, without notes; of a lane: packets only
	rxBytes       atomic.Uint64             // likewise, received from it
	lastHandshake atomic.Pointer[time.Time] // nil: there was none

	endpoint atomic.Pointer[Endpoint] // nil: not known
	stray    atomic.Int64             // nanoseconds, when a message came by another way than the peer is held to
	probe    probe
	unsplit  atomic.Int64 // until when the way to it splits no datagrams, in Unix nanoseconds; 0: it does

	timers struct {
		retransmitHandshake     *Timer
		sendKeepalive           *Timer
		newHandshake            *Timer
		zeroKeyMaterial         *Timer
		persistentKeepalive     *Timer
		handshakeAttempts       atomic.Uint32
		needAnotherKeepalive    atomic.Bool
		sentLastMinuteHandshake atomic.Bool
		lastTraversal           atomic.Int64 // nanoseconds, when persistentKeepalive was last changed
	}

	ledBy atomic.Uint32 // the interface that the routes lead by; 0: its messages leave by the one that the last one came by

	state struct {
		sync.Mutex // protects against concurrent Start/Stop
	}

	staged staged // packets that wait for a session

	refused refused
	behind  behind

	own   *identity // of a lane; nil: the device's
	first *Peer     // that this one is a lane of; nil: it is none
	place uint8     // of the port that its messages leave by and come to; 0: the first
	wide  wide

	cookieGenerator             CookieGenerator
	trieEntries                 list.List
	persistentKeepaliveInterval atomic.Uint32
}

func (device *Device) NewPeer(pk NoisePublicKey) (*Peer, error) {
	if device.isClosed() {
		return nil, errors.New("device closed")
	}

	// lock resources
	device.staticIdentity.RLock()
	defer device.staticIdentity.RUnlock()

	device.peers.Lock()
	defer device.peers.Unlock()

	// check if over limit
	if len(device.peers.keyMap) >= MaxPeers {
		return nil, errors.New("too many peers")
	}

	// map public key
	_, ok := device.peers.keyMap[pk]
	if ok {
		return nil, errors.New("adding existing peer")
	}

	peer := device.makePeer(pk, &device.staticIdentity)

	// add
	device.peers.keyMap[pk] = peer

	return peer, nil
}

// makePeer makes a peer that knows this end by a key pair, which the caller has locked.
func (device *Device) makePeer(pk NoisePublicKey, static *identity) *Peer {
	peer := new(Peer)

	peer.cookieGenerator.Init(pk)
	peer.device = device

	// pre-compute DH
	handshake := &peer.handshake
	handshake.mutex.Lock()
	handshake.precomputedStaticStatic, _ = static.privateKey.sharedSecret(pk)
	handshake.remoteStatic = pk
	handshake.mutex.Unlock()

	// init timers
	peer.timersInit()

	return peer
}

// send sends a message to where the peer is. data says whether it has a packet.
func (peer *Peer) send(message []byte, data bool) error {
	if peer.device.isClosed() {
		return nil
	}
	endpoint := peer.endpoint.Load()
	if endpoint == nil {
		return errNoEndpoint
	}
	err := peer.device.net.network.Send(message, endpoint)
	if err == nil && (data || peer.first == nil) {
		peer.txBytes.Add(uint64(len(message)))
	}
	return err
}

var errNoEndpoint = errors.New("no known endpoint for peer")

func (peer *Peer) String() string {
	// The awful goo that follows is identical to:
	//
	//   base64Key := base64.StdEncoding.EncodeToString(peer.handshake.remoteStatic[:])
	//   abbreviatedKey := base64Key[0:4] + "…" + base64Key[39:43]
	//   return fmt.Sprintf("peer(%s)", abbreviatedKey)
	//
	// except that it is considerably more efficient.
	if peer.first != nil {
		return peer.first.String() + " - lane " + strconv.Itoa(int(peer.place))
	}
	src := peer.handshake.remoteStatic
	b64 := func(input byte) byte {
		return input + 'A' + byte(((25-int(input))>>8)&6) - byte(((51-int(input))>>8)&75) - byte(((61-int(input))>>8)&15) + byte(((62-int(input))>>8)&3)
	}
	b := []byte("peer(____…____)")
	const first = len("peer(")
	const second = len("peer(____…")
	b[first+0] = b64((src[0] >> 2) & 63)
	b[first+1] = b64(((src[0] << 4) | (src[1] >> 4)) & 63)
	b[first+2] = b64(((src[1] << 2) | (src[2] >> 6)) & 63)
	b[first+3] = b64(src[2] & 63)
	b[second+0] = b64(src[29] & 63)
	b[second+1] = b64((src[30] >> 2) & 63)
	b[second+2] = b64(((src[30] << 4) | (src[31] >> 4)) & 63)
	b[second+3] = b64((src[31] << 2) & 63)
	return string(b)
}

func (peer *Peer) Start() {
	// should never start a peer on a closed device
	if peer.device.isClosed() {
		return
	}

	// prevent simultaneous start/stop operations
	peer.state.Lock()
	defer peer.state.Unlock()

	if peer.isRunning.Load() {
		return
	}

	device := peer.device
	device.log.Verbosef("%v - Starting", peer)

	peer.handshake.mutex.Lock()
	peer.handshake.lastSentHandshake = time.Now().Add(-(RekeyTimeout + time.Second))
	peer.handshake.mutex.Unlock()

	peer.timersStart()

	peer.isRunning.Store(true)
}

func (peer *Peer) ZeroAndFlushAll() {
	device := peer.device

	// clear key pairs

	keypairs := &peer.keypairs
	keypairs.Lock()
	device.DeleteKeypair(keypairs.previous)
	device.DeleteKeypair(keypairs.current)
	device.DeleteKeypair(keypairs.next.Load())
	keypairs.previous = nil
	keypairs.current = nil
	keypairs.next.Store(nil)
	keypairs.Unlock()

	// clear handshake state

	handshake := &peer.handshake
	handshake.mutex.Lock()
	device.indexTable.Delete(handshake.localIndex)
	handshake.Clear()
	handshake.mutex.Unlock()

	peer.FlushStagedPackets()
}

func (peer *Peer) ExpireCurrentKeypairs() {
	handshake := &peer.handshake
	handshake.mutex.Lock()
	peer.device.indexTable.Delete(handshake.localIndex)
	handshake.Clear()
	peer.handshake.lastSentHandshake = time.Now().Add(-(RekeyTimeout + time.Second))
	handshake.mutex.Unlock()

	keypairs := &peer.keypairs
	keypairs.Lock()
	if keypairs.current != nil {
		keypairs.current.sendNonce.Store(RejectAfterMessages)
	}
	if next := keypairs.next.Load(); next != nil {
		next.sendNonce.Store(RejectAfterMessages)
	}
	keypairs.Unlock()
}

func (peer *Peer) Stop() {
	peer.state.Lock()
	defer peer.state.Unlock()

	if !peer.isRunning.Swap(false) {
		return
	}

	peer.device.log.Verbosef("%v - Stopping", peer)

	peer.timersStop()
	peer.ZeroAndFlushAll()
}

// SetEndpointFromPacket has the peer be where an authentic message came from.
func (peer *Peer) SetEndpointFromPacket(from *Endpoint) {
	is := peer.endpoint.Load()
	if is != nil && is.Held != nil {
		peer.follow(is, from)
		return
	}
	at := *from // from is overwritten by the next message
	if by := peer.First().ledBy.Load(); by != 0 && at.Interface != 0 && at.Interface != by {
		at = *at.Anyhow()
		if is != nil && is.Interface == by && is.Remote == at.Remote {
			return // it is sent to by that one
		}
	}
	if is == nil || *is != at {
		found := at // so that nothing is allocated where nothing has changed
		peer.endpoint.CompareAndSwap(is, &found)
		peer.unsplit.Store(0)
	}
}

// Lead has messages to the peer leave by an interface that the routes lead by, or as these say, also when messages of it come by another
// one. 0: by the one that the last one came by.
func (peer *Peer) Lead(by int) { peer.ledBy.Store(uint32(by)) }

// markEndpointSrcForClearing has the kernel choose again from which address the peer is sent to, and by which
// interface.
func (peer *Peer) markEndpointSrcForClearing() {
	if is := peer.endpoint.Load(); is != nil && is.Held == nil && (is.Local.IsValid() || is.Interface != 0) {
		peer.endpoint.CompareAndSwap(is, is.Anyhow())
	}
}
