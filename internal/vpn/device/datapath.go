package device

import (
	"encoding/binary"
	"time"
)

// What a path of data needs: whom a packet goes to, with which key and number, and what a peer has to
// know of it. Nothing here allocates.

// SetMTU says how large packets may be. None is padded beyond that.
func (device *Device) SetMTU(mtu int) { device.mtu.Store(int32(mtu)) }

// MTU returns how large packets may be.
func (device *Device) MTU() int { return int(device.mtu.Load()) }

// Route returns the peer that has an address, of 4 or 16 bytes, among its allowed networks, or nil.
func (device *Device) Route(address []byte) *Peer { return device.allowedips.Lookup(address) }

// Session returns the keys that a message names, and whose they are; nil if there are none that may be
// used now.
func (device *Device) Session(index uint32, now time.Time) (*Peer, *Keypair) {
	entry := device.indexTable.Lookup(index)
	if entry.keypair == nil || now.Sub(entry.keypair.created) > RejectAfterTime || !entry.peer.isRunning.Load() {
		return nil, nil
	}
	return entry.peer, entry.keypair
}

// Handshake has a message that is not of the path of data be handled later, if it may be one and not
// too many wait.
func (device *Device) Handshake(message []byte, from *Endpoint) {
	if len(message) < MinMessageSize {
		return
	}
	elem := handshakeElement{msgType: binary.LittleEndian.Uint32(message), size: len(message), endpoint: *from}
	switch {
	case elem.msgType == MessageInitiationType && len(message) == MessageInitiationSize:
	case elem.msgType == MessageResponseType && len(message) == MessageResponseSize:
	case elem.msgType == MessageCookieReplyType && len(message) == MessageCookieReplySize:
	default:
		return
	}
	copy(elem.packet[:], message)
	select {
	case device.queue.handshake <- elem:
	default:
	}
}

// Errorf logs what has gone wrong. A peer among args is whom it is about.
func (device *Device) Errorf(format string, args ...any) { device.log.Errorf(format, args...) }

// Sending returns the keys to send with. Without any it begins a handshake and returns nil.
func (peer *Peer) Sending(now time.Time) *Keypair {
	keypair := peer.keypairs.Current()
	if keypair == nil || keypair.sendNonce.Load() >= RejectAfterMessages || now.Sub(keypair.created) >= RejectAfterTime {
		peer.SendHandshakeInitiation(false) //nolint:errcheck // it logs what goes wrong, and is tried again
		return nil
	}
	return keypair
}

// Running reports whether the peer is there.
func (peer *Peer) Running() bool { return peer.isRunning.Load() }

// Waiting reports whether packets wait for a session, or are being sent.
func (peer *Peer) Waiting() bool { return peer.staged.count.Load() != 0 }

// Endpoint returns where the peer is, or nil.
func (peer *Peer) Endpoint() *Endpoint { return peer.endpoint.Load() }

// ForgetLocal has the kernel choose again from which address the peer is sent to.
func (peer *Peer) ForgetLocal() { peer.markEndpointSrcForClearing() }

// splitPause is for how long no datagram is given to the kernel to be split, after it could not.
const splitPause = time.Minute

// Splits reports whether the kernel may be able to split datagrams on their way to the peer.
func (peer *Peer) Splits() bool {
	until := peer.unsplit.Load()
	return until == 0 || time.Now().UnixNano() >= until
}

// Unsplit notes that it was not. It is tried again after a minute, or when the peer is elsewhere.
func (peer *Peer) Unsplit() { peer.unsplit.Store(time.Now().Add(splitPause).UnixNano()) }

// Leaving notes that messages with data are about to be sent. The answer may come before Sent is called: what it
// does to the timers has to be done after this.
func (peer *Peer) Leaving() {
	peer.timersAnyAuthenticatedPacketTraversal()
	peer.timersAnyAuthenticatedPacketSent()
	peer.timersDataSent()
}

// Sent notes that it was tried, and that so many bytes have left.
func (peer *Peer) Sent(bytes int) {
	peer.txBytes.Add(uint64(bytes))
	peer.keepKeyFreshSending()
}

// Told notes that a note has left. It is not among the bytes that are counted.
func (peer *Peer) Told() { peer.keepKeyFreshSending() }

// Unanswered reports whether data was sent, or was to be, and nothing has come since.
func (peer *Peer) Unanswered() bool { return peer.timers.newHandshake.IsPending() }

// Received notes that authentic messages have come, which Accept has accepted: of so many bytes that count,
// the last of them from an endpoint. data says whether one was no keepalive.
func (peer *Peer) Received(keypair *Keypair, from *Endpoint, bytes int, data bool) {
	peer.SetEndpointFromPacket(from)
	if peer.ReceivedWithKeypair(keypair) {
		peer.timersHandshakeComplete()
		peer.SendStagedPackets()
	}
	peer.rxBytes.Add(uint64(bytes))
	peer.keepKeyFreshReceiving()
	peer.timersAnyAuthenticatedPacketTraversal()
	peer.timersAnyAuthenticatedPacketReceived()
	if data {
		peer.timersDataReceived()
	}
}

func (peer *Peer) keepKeyFreshSending() {
	keypair := peer.keypairs.Current()
	if keypair == nil {
		return
	}
	nonce := keypair.sendNonce.Load()
	if nonce > RekeyAfterMessages || (keypair.isInitiator && time.Since(keypair.created) > RekeyAfterTime) {
		peer.SendHandshakeInitiation(false) //nolint:errcheck // it logs what goes wrong, and is tried again
	}
}

func (peer *Peer) keepKeyFreshReceiving() {
	if peer.timers.sentLastMinuteHandshake.Load() {
		return
	}
	keypair := peer.keypairs.Current()
	if keypair != nil && keypair.isInitiator && time.Since(keypair.created) > (RejectAfterTime-KeepaliveTimeout-RekeyTimeout) {
		peer.timers.sentLastMinuteHandshake.Store(true)
		peer.SendHandshakeInitiation(false) //nolint:errcheck // it logs what goes wrong, and is tried again
	}
}

// Reserve takes the numbers of n messages, which nobody else gets, and returns the first. It fails if
// the keys have none left. n is less than 64 or so: numbers that are taken and not given must not bring
// the counter from RejectAfterMessages to its end.
func (keypair *Keypair) Reserve(n int) (first uint64, ok bool) {
	end := keypair.sendNonce.Add(uint64(n))
	if end > RejectAfterMessages {
		keypair.sendNonce.Store(RejectAfterMessages)
		return 0, false
	}
	return end - uint64(n), true
}

// MessageSize returns the size of the message with a packet of a size.
func MessageSize(packet, mtu int) int { return MessageTransportSize + packet + padding(packet, mtu) }

// A Nonce is room for one. Each goroutine has its own, so that none is allocated for a packet.
type Nonce [12]byte

// Seal writes the message with a packet into the beginning of to, and returns it. to has room for the
// header, the packet, what it is padded with, and the tag; packet has room for what it is padded with,
// and is no part of to.
func (keypair *Keypair) Seal(to, packet []byte, number uint64, mtu int, nonce *Nonce) []byte {
	header := to[:MessageTransportHeaderSize]
	binary.LittleEndian.PutUint32(header, MessageTransportType)
	binary.LittleEndian.PutUint32(header[4:], keypair.remoteIndex)
	binary.LittleEndian.PutUint64(header[8:], number)
	*nonce = Nonce{}
	binary.LittleEndian.PutUint64(nonce[4:], number)
	padded := packet[:len(packet)+padding(len(packet), mtu)]
	tail := padded[len(packet):]
	var behind [PaddingMultiple]byte // what the padding stands on may be the next packet
	copy(behind[:], tail)
	clear(tail)
	message := keypair.send.Seal(header, nonce[:], padded, nil)
	copy(tail, behind[:])
	return message
}

// padding returns how much a packet is padded with: up to a multiple of 16, and not beyond the MTU.
func padding(size, mtu int) int {
	padded := (size + PaddingMultiple - 1) &^ (PaddingMultiple - 1)
	return max(min(padded, mtu), size) - size
}

// Open decrypts a message in place and returns its packet, with what that was padded with. The packet is
// nil if the message is not authentic. Its number has yet to be accepted.
func (keypair *Keypair) Open(message []byte, nonce *Nonce) (packet []byte, number uint64) {
	*nonce = Nonce{}
	copy(nonce[4:], message[MessageTransportOffsetCounter:MessageTransportOffsetContent])
	content := message[MessageTransportOffsetContent:]
	packet, err := keypair.receive.Open(content[:0], nonce[:], content, nil)
	if err != nil {
		return nil, 0
	}
	return packet, binary.LittleEndian.Uint64(nonce[4:])
}

// Accept reports whether a message of that number has not come before, and cannot come again now. The
// caller holds Lock.
func (keypair *Keypair) Accept(number uint64) bool {
	return keypair.replayFilter.ValidateCounter(number, RejectAfterMessages)
}

// Lock is held while numbers are accepted.
func (keypair *Keypair) Lock() { keypair.replayMutex.Lock() }

// Unlock ends that.
func (keypair *Keypair) Unlock() { keypair.replayMutex.Unlock() }
