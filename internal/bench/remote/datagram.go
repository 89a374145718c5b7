package remote

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"time"
)

// Kinds of datagrams; the version stands in the upper half of the byte.
const (
	kindHello     = 0x11 // client to server: this is where I am
	kindChallenge = 0x12 // server to client: if you are, you know this cookie
	kindProbe     = 0x13 // client to server: send this back
	kindEcho      = 0x14 // server to client
	kindData      = 0x15 // both: counts
)

// Lengths in bytes. A hello is longer than its challenge and a probe as long as
// its echo, so nothing is amplified. A datagram of data has no more than fits a
// frame of 64 bytes: 18, behind Ethernet, IPv4 and UDP.
const (
	ticketLen    = 16
	tagLen       = 8
	helloLen     = 64
	challengeLen = 1 + 2*ticketLen
	probeLen     = 32
	dataHeader   = 18
)

var errDatagram = errors.New("this is no datagram of the protocol")

// ticket lets one connection or UDP flow into a run, once. It is chosen by the
// server, and told over TLS.
type ticket [ticketLen]byte

func newTicket() ticket {
	var t ticket
	rand.Read(t[:]) //nolint:errcheck // never fails (crypto/rand)
	return t
}

// tag is the part of a ticket that stands in every datagram.
func (t ticket) tag() [tagLen]byte { return [tagLen]byte(t[:tagLen]) }

func (t ticket) equal(other ticket) bool { return subtle.ConstantTimeCompare(t[:], other[:]) == 1 }

// datagram is one of the protocol's; which fields count depends on its kind.
type datagram struct {
	kind   byte
	ticket ticket       // hello, challenge
	cookie ticket       // challenge
	tag    [tagLen]byte // probe, echo, data
	number uint32       // probe, echo, data
	sent   uint64       // by the sender's clock: of a probe in ns, of data in µs modulo 2³²
}

// parseDatagram reads what came in a UDP datagram, of any length and from
// anybody.
func parseDatagram(b []byte) (d datagram, err error) {
	if len(b) == 0 {
		return d, errDatagram
	}
	d.kind = b[0]
	switch {
	case d.kind == kindHello && len(b) == helloLen:
		copy(d.ticket[:], b[1:])
	case d.kind == kindChallenge && len(b) == challengeLen:
		copy(d.ticket[:], b[1:])
		copy(d.cookie[:], b[1+ticketLen:])
	case (d.kind == kindProbe || d.kind == kindEcho) && len(b) == probeLen:
		copy(d.tag[:], b[1:])
		d.number = binary.BigEndian.Uint32(b[1+tagLen:])
		d.sent = binary.BigEndian.Uint64(b[1+tagLen+4:])
	case d.kind == kindData && len(b) >= dataHeader && len(b) <= maxPayload:
		copy(d.tag[:], b[2:])
		d.number = binary.BigEndian.Uint32(b[2+tagLen:])
		d.sent = uint64(binary.BigEndian.Uint32(b[2+tagLen+4:]))
	default:
		return datagram{}, errDatagram
	}
	return d, nil
}

// append writes a datagram behind b; one of data as long as its header.
func (d *datagram) append(b []byte) []byte {
	start := len(b)
	b = append(b, d.kind)
	switch d.kind {
	case kindHello:
		b = append(b, d.ticket[:]...)
		b = append(b, make([]byte, helloLen-len(b)+start)...)
	case kindChallenge:
		b = append(append(b, d.ticket[:]...), d.cookie[:]...)
	case kindProbe, kindEcho:
		b = append(b, d.tag[:]...)
		b = binary.BigEndian.AppendUint32(b, d.number)
		b = binary.BigEndian.AppendUint64(b, d.sent)
		b = append(b, make([]byte, probeLen-len(b)+start)...)
	case kindData:
		b = append(append(b, 0), d.tag[:]...)
		b = binary.BigEndian.AppendUint32(b, d.number)
		b = binary.BigEndian.AppendUint32(b, uint32(d.sent))
	}
	return b
}

// Preamble of a TCP connection that carries data: these eight bytes, which no
// TLS record begins with, and a ticket.
const preambleMagic = "WEIRBN1\n"

const preambleLen = len(preambleMagic) + ticketLen

func appendPreamble(t ticket) []byte { return append([]byte(preambleMagic), t[:]...) }

func parsePreamble(b []byte) (t ticket, err error) {
	if len(b) != preambleLen || string(b[:len(preambleMagic)]) != preambleMagic {
		return t, errors.New("this is no connection of the protocol")
	}
	copy(t[:], b[len(preambleMagic):])
	return t, nil
}

// microseconds is a time as data carries it.
func microseconds(t time.Duration) uint64 { return uint64(uint32(t.Microseconds())) }
