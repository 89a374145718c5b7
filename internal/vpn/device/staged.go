package device

import (
	"sync"
	"sync/atomic"
	"time"
)

// staged are copies of packets that wait for a session, the oldest first. An empty packet is a keepalive.
type staged struct {
	mu      sync.Mutex // is held while they are sent, too: they keep their order
	packets [][]byte
	count   atomic.Int32 // of packets
	nonce   Nonce
}

// Stage has a packet wait for a session. If too many wait, the oldest is dropped.
func (peer *Peer) Stage(packet []byte) {
	s := &peer.staged
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.packets) >= QueueStagedSize {
		s.packets = append(s.packets[:0], s.packets[1:]...)
	}
	s.packets = append(s.packets, append(make([]byte, 0, len(packet)+PaddingMultiple), packet...))
	s.count.Store(int32(len(s.packets)))
}

// FlushStagedPackets drops the packets that wait for a session.
func (peer *Peer) FlushStagedPackets() {
	s := &peer.staged
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packets = nil
	s.count.Store(0)
}

// SendKeepalive sends an empty packet, if none waits that does the same.
func (peer *Peer) SendKeepalive() {
	if peer.staged.count.Load() == 0 && peer.isRunning.Load() {
		peer.Stage(nil)
	}
	peer.SendStagedPackets()
}

// SendStagedPackets sends the packets that wait for a session, or begins a handshake.
func (peer *Peer) SendStagedPackets() {
	if peer.staged.count.Load() == 0 || !peer.device.isUp() {
		return
	}
	keypair := peer.Sending(time.Now())
	if keypair == nil {
		return
	}
	s := &peer.staged
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.packets) > 0 && peer.isRunning.Load() {
		first, ok := keypair.Reserve(1)
		if !ok {
			break // the next packet begins a handshake
		}
		packet := s.packets[0]
		message := make([]byte, len(packet)+PaddingMultiple+MessageTransportSize)
		message = keypair.Seal(message, packet, first, peer.device.MTU(), &s.nonce)
		s.packets = s.packets[1:]
		peer.timersAnyAuthenticatedPacketTraversal()
		peer.timersAnyAuthenticatedPacketSent()
		if len(packet) > 0 {
			peer.timersDataSent()
		}
		if err := peer.send(message, len(packet) > 0); err != nil {
			peer.device.log.Errorf("%v - Failed to send data packets: %v", peer, err)
		}
		peer.keepKeyFreshSending()
	}
	s.count.Store(int32(len(s.packets)))
	if len(s.packets) == 0 {
		s.packets = nil
	}
}
