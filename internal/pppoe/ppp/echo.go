package ppp

import (
	"encoding/binary"
	"fmt"
	"time"
)

// magicSize is the magic number that leads the data of an echo packet (RFC 1661 5.8).
const magicSize = 4

// echo finds out whether the peer is there.
type echo struct {
	deadline time.Time // of the next request
	missed   int       // requests since the last sign of the peer
	id       uint8
	quick    bool      // until the next sign of the peer
	until    time.Time // before that, a peer that does not answer is waited for
}

// probeEvery is the time between echo requests where it has to be found out soon whether the peer is there.
const probeEvery = time.Second

// Probe asks the peer for echoes at once, and soon again until it answers. It is waited for at least so long.
func (l *Link) Probe(now time.Time, patience time.Duration) {
	if l.now = now; l.echo.deadline.IsZero() {
		return
	}
	l.echo.quick, l.echo.missed, l.echo.deadline, l.echo.until = true, 0, now, now.Add(patience)
	l.tickEcho()
}

// lastTries are the echo requests that a peer has left to answer that is waited for no longer.
const lastTries = 3

// Hurry ends the patience of Probe.
func (l *Link) Hurry(now time.Time) {
	if l.now = now; l.echo.deadline.IsZero() {
		return
	}
	l.echo.missed = min(l.echo.missed, max(0, l.config.EchoMisses-lastTries))
	l.echo.deadline, l.echo.until = now, now
	l.tickEcho()
}

// EndProbe ends Probe and Hurry: the peer cannot answer now, and has as long for that as without them.
func (l *Link) EndProbe(now time.Time) {
	if l.now = now; l.echo.deadline.IsZero() {
		return
	}
	l.echo.quick, l.echo.missed, l.echo.deadline, l.echo.until = false, 0, now.Add(l.config.EchoEvery), time.Time{}
}

// every is the time until the next request.
func (l *Link) every() time.Duration {
	if l.echo.quick {
		return min(probeEvery, l.config.EchoEvery)
	}
	return l.config.EchoEvery
}

// signOfPeer notes that the peer is there.
func (l *Link) signOfPeer() {
	l.echo.missed = 0
	if l.echo.quick {
		l.echo.quick, l.echo.deadline, l.echo.until = false, l.now.Add(l.config.EchoEvery), time.Time{}
	}
}

func (l *Link) startEcho() {
	l.echo = echo{id: l.echo.id}
	if l.config.EchoEvery > 0 {
		l.echo.deadline = l.now.Add(l.config.EchoEvery)
	}
}

func (l *Link) stopEcho() {
	l.echo = echo{id: l.echo.id}
	l.verify = verify{}
}

func (l *Link) tickEcho() {
	if l.echo.deadline.IsZero() || l.now.Before(l.echo.deadline) {
		return
	}
	if l.echo.missed >= l.config.EchoMisses && !l.now.Before(l.echo.until) {
		l.echo.deadline = time.Time{}
		l.end(Dead, fmt.Sprintf("no answer to %d echo requests", l.echo.missed))
		return
	}
	l.echo.missed++
	l.echo.deadline = l.now.Add(l.every())
	l.sendEcho(nil)
}

// sendEcho sends an echo request with bytes behind the magic number and returns its
// identifier.
func (l *Link) sendEcho(tail []byte) uint8 {
	l.echo.id++
	data := append(binary.BigEndian.AppendUint32(nil, l.Magic()), tail...)
	l.send(LCP, Packet{Code: EchoRequest, ID: l.echo.id, Data: data})
	return l.echo.id
}

// Heard says that the data path has received packets of the peer: it is there, and need not be
// asked. On a full line echo requests or replies get lost.
func (l *Link) Heard(now time.Time) {
	l.now = now
	l.signOfPeer()
	if !l.echo.deadline.IsZero() {
		l.echo.deadline = now.Add(l.config.EchoEvery)
	}
}

// echoAsked answers an echo request, with no more than the peer can receive (RFC 1661 5.8).
// One with our own magic number says that we hear ourselves.
func (l *Link) echoAsked(p Packet) {
	if len(p.Data) < magicSize {
		return
	}
	if magic := binary.BigEndian.Uint32(p.Data); magic != 0 && magic == l.Magic() {
		l.lcpTerms.loops++
		return
	}
	data := append(binary.BigEndian.AppendUint32(nil, l.Magic()), p.Data[magicSize:]...)
	l.send(LCP, Packet{Code: EchoReply, ID: p.ID, Data: data[:min(len(data), l.room())]})
}

// echoAnswered takes an echo reply. Whose magic number it carries is not looked at: some
// concentrators send ours back.
func (l *Link) echoAnswered(p Packet) {
	if l.verify.deadline.IsZero() || p.ID != l.verify.id || len(p.Data) < l.verify.size {
		return
	}
	l.verify = verify{}
	l.emit(Event{Kind: MTUVerified})
}

// verify finds out whether packets of the agreed size pass (RFC 4638 4).
type verify struct {
	deadline time.Time // of the next try
	id       uint8
	size     int // of the data
	left     int
}

// The large echo: tries, and how long each is waited for.
const (
	verifyTries = 3
	verifyEvery = time.Second
)

func (l *Link) startVerify() {
	if l.config.VerifyMTU {
		l.verify = verify{left: verifyTries, size: int(min(l.MTU(), l.MRU())) - packetHeader}
		l.sendVerify()
	}
}

func (l *Link) sendVerify() {
	l.verify.left--
	l.verify.deadline = l.now.Add(verifyEvery)
	l.verify.id = l.sendEcho(make([]byte, l.verify.size-magicSize))
}

func (l *Link) tickVerify() {
	if l.verify.deadline.IsZero() || l.now.Before(l.verify.deadline) {
		return
	}
	if l.verify.left > 0 {
		l.sendVerify()
		return
	}
	l.verify = verify{}
	l.emit(Event{Kind: MTUFailed, Detail: "no answer to echo requests of the agreed size"})
}
