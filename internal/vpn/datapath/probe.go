package datapath

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// probeMark begins the data of echo requests by which a path is measured. Behind it is a number that nobody can guess.
// Every host answers such a request. Another weir's engine answers it before its rules see it, as long as the request.
const probeMark = "weir: path MTU\r\n"

// Parts of an echo request, and what it is.
const (
	sizeEcho    = 8
	probeToken  = sizeEcho + len(probeMark)
	sizeProbe   = probeToken + 8
	echo4       = 8
	echoReply4  = 0
	echo6       = 128
	echoReply6  = 129
	probeHops   = 64
	mostAnswers = 64 // to requests in a second; the others go their ordinary way
)

// ErrNoSession means that there are no keys to send with.
var ErrNoSession = errors.New("there is no session")

// Ask sends an echo request of a size to a peer, in a message that is not cut on its way, and waits for the answer. It
// does not wait if patience is 0.
func (p *Path) Ask(ctx context.Context, peer *device.Peer, from, to netip.Addr, size int, patience time.Duration) (took time.Duration, answered bool, err error) {
	token, came := rand.Uint64(), make(chan struct{}, 1)
	p.asked.Store(token, came)
	defer p.asked.Delete(token)
	begun := time.Now()
	if err := p.probe(peer, probeRequest(from, to, size, token), size); err != nil || patience == 0 {
		return 0, false, err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-came:
		return time.Since(begun), true, nil
	case <-late.C:
	case <-ctx.Done():
	}
	return 0, false, nil
}

// probe sends a packet to a peer, padded as one of an interface with that MTU. A lost one is no reason to doubt the
// session, so the timers are not told of data.
func (p *Path) probe(peer *device.Peer, packet []byte, mtu int) error {
	message, to, err := sealOne(peer, packet, mtu)
	if err != nil {
		return err
	}
	if err := p.sendWhole(message, to); err != nil {
		return err
	}
	peer.Sent(len(message))
	return nil
}

// sealOne makes a message of one packet for a peer, or for a lane of one, and says where it goes. packet has room for what
// it is padded with.
func sealOne(peer *device.Peer, packet []byte, mtu int) (message []byte, to *device.Endpoint, err error) {
	keypair, to := peer.Sending(time.Now()), peer.Endpoint()
	if keypair == nil || !peer.Running() {
		return nil, nil, ErrNoSession
	}
	if to == nil {
		return nil, nil, errNoEndpoint
	}
	number, ok := keypair.Reserve(1)
	if !ok {
		return nil, nil, ErrNoSession
	}
	var nonce device.Nonce
	room := make([]byte, device.MessageSize(len(packet), mtu))
	return keypair.Seal(room, packet, number, mtu, &nonce), to, nil
}

// sendWhole sends a message that neither the kernel nor a router cuts, whatever the kernel knows of the path.
func (p *Path) sendWhole(message []byte, to *device.Endpoint) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	s := p.socketOf(to)
	if s == nil {
		return unix.EAFNOSUPPORT
	}
	p.control.Lock()
	defer p.control.Unlock()
	if err := s.keepWhole(); err != nil {
		return err
	}
	_, _, err := p.send(&p.dg, message, len(message), p.outer(0), to, nil)
	return errors.Join(err, s.cut(p.cuts.Load()))
}

// Cut has routers cut messages of IPv4 that are too long for the path, too, or only the kernel where it knows that.
func (p *Path) Cut(on bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	p.control.Lock()
	defer p.control.Unlock()
	p.cuts.Store(on)
	for _, r := range p.receivers() {
		r.socket.cut(on) //nolint:errcheck // the next probe tells
	}
}

// keepWhole has messages be sent whole or not at all.
func (s *socket) keepWhole() error { return s.discover(unix.IP_PMTUDISC_PROBE) }

// cut ends that. Messages are cut where the kernel knows that they have to be. Those of IPv4 may be cut by every router,
// if on.
func (s *socket) cut(on bool) error {
	if on && !s.six {
		return s.discover(unix.IP_PMTUDISC_DONT)
	}
	return s.discover(unix.IP_PMTUDISC_WANT)
}

// discover says how the path MTU counts for messages. Both families have the same numbers for that.
func (s *socket) discover(how int) error {
	if s.six {
		return unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, how)
	}
	return unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, how)
}

// probeRequest makes an echo request, with room behind it for what it is padded with.
func probeRequest(from, to netip.Addr, size int, token uint64) []byte {
	ip := size6
	if to.Is4() {
		ip = size4
	}
	size = max(size, ip+sizeProbe)
	p := make([]byte, size, size+device.PaddingMultiple)
	m := p[ip:]
	if m[0] = echo6; to.Is4() {
		m[0] = echo4
	}
	copy(m[sizeEcho:], probeMark)
	binary.BigEndian.PutUint64(m[probeToken:], token)
	binary.BigEndian.PutUint32(m[4:], uint32(token)) // the identifier and the number
	if to.Is4() {
		p[0], p[6], p[8], p[9] = 0x45, byte(ipv4Intact>>8), probeHops, unix.IPPROTO_ICMP
		binary.BigEndian.PutUint16(p[2:], uint16(size))
		copy(p[12:], from.AsSlice())
		copy(p[16:], to.AsSlice())
		put(p[10:], sum(p[:size4], 0))
		put(m[2:], sum(m, 0))
		return p
	}
	p[0], p[6], p[7] = 0x60, unix.IPPROTO_ICMPV6, probeHops
	binary.BigEndian.PutUint16(p[4:], uint16(len(m)))
	copy(p[8:], from.AsSlice())
	copy(p[24:], to.AsSlice())
	put(m[2:], sum(m, pseudo(p, unix.IPPROTO_ICMPV6, len(m))))
	return p
}

// probeOf returns the ICMP message of a packet that measures a path, or answers one that does; nil if it is another.
func probeOf(p []byte) []byte {
	ip := size6
	if p[0]>>4 == 4 {
		if ip = size4; p[9] != unix.IPPROTO_ICMP || p[0] != 0x45 || binary.BigEndian.Uint16(p[6:])&ipv4Parts != 0 {
			return nil
		}
	} else if p[6] != unix.IPPROTO_ICMPV6 {
		return nil
	}
	if len(p) < ip+sizeProbe || string(p[ip+sizeEcho:ip+probeToken]) != probeMark {
		return nil
	}
	return p[ip:]
}

// probed takes a packet of measuring, if it is one that nobody else has to have.
func (w *worker) probed(p *packet) bool {
	m := probeOf(p.packet)
	request, reply := byte(echo6), byte(echoReply6)
	if p.packet[0]>>4 == 4 {
		request, reply = echo4, echoReply4
	}
	switch m[0] {
	case reply:
		if came, ok := w.path.asked.LoadAndDelete(binary.BigEndian.Uint64(m[probeToken:])); ok {
			came.(chan struct{}) <- struct{}{}
		}
		return true
	case request:
		if !w.path.mayAnswer(w.now().Unix()) {
			return false
		}
		answer := make([]byte, len(p.packet), len(p.packet)+device.PaddingMultiple)
		copy(answer, p.packet)
		probeReply(answer, reply)
		w.path.probe(p.peer, answer, w.mtu) //nolint:errcheck // nobody waits for an answer that cannot be sent
		return true
	}
	return false
}

// probeReply makes a request the answer to it.
func probeReply(p []byte, kind byte) {
	from, to := source(p), destination(p)
	var was [16]byte
	n := copy(was[:], from)
	copy(from, to)
	copy(to, was[:n])
	m := probeOf(p)
	change := ^binary.LittleEndian.Uint16(m)
	m[0] = kind
	put(m[2:], uint64(^binary.LittleEndian.Uint16(m[2:]))+uint64(change)+uint64(binary.LittleEndian.Uint16(m)))
}

// mayAnswer reports whether one more request may be answered in a second.
func (p *Path) mayAnswer(second int64) bool {
	p.control.Lock()
	defer p.control.Unlock()
	if p.answeredAt != second {
		p.answeredAt, p.answers = second, 0
	}
	p.answers++
	return p.answers <= mostAnswers
}
