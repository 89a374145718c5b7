package ppp

import (
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
	"time"
)

// Config is what one end of a link wants.
type Config struct {
	// Random gives magic numbers, identifiers and challenges: crypto/rand.Reader, but in
	// tests.
	Random io.Reader
	// MRU is the largest PPP packet, in bytes, that this end can receive, without the
	// protocol field: at most MaxMRU, or what RFC 4638 has allowed. Nothing larger is sent
	// either.
	MRU uint16
	// Restart is how long an answer is waited for; 0: DefaultRestart.
	Restart time.Duration
	Prove   Prove
	Ask     Ask
	V4      *V4 // nil: no IPv4
	V6      *V6 // nil: no IPv6
	// EchoEvery is the time between two echo requests; 0: none. After EchoMisses requests
	// in a row without an answer or a word from the peer the link is dead.
	EchoEvery  time.Duration
	EchoMisses int
	// VerifyMTU asks for an echo as large as the link has agreed to, and reports MTUFailed if
	// none comes back.
	VerifyMTU bool
}

// Kind says what an event is.
type Kind uint8

// The events of a link.
const (
	LinkUp        Kind = iota + 1 // LCP is open; authentication is next
	LinkDown                      // LCP is not open any more: the peer negotiates anew
	Authenticated                 // both ends are content
	NetworkUp                     // IPCP or IPV6CP is open
	NetworkDown                   // it is not any more
	NetworkFailed                 // and will not be: the peer has not got it, or does not answer
	MTUVerified                   // the large echo came back
	MTUFailed                     // it did not
	Ended                         // the link is over; nothing follows
)

// Cause says why a link ended.
type Cause uint8

// The causes.
const (
	Local   Cause = iota + 1 // Close
	Peer                     // the peer has ended it
	NoReply                  // no answer to negotiation
	Dead                     // no answer to echo requests
	Refused                  // authentication failed
	Loop                     // the peer is ourselves
	Clash                    // no agreement
)

// Event is something that happened.
type Event struct {
	Kind     Kind
	Protocol Protocol // of NetworkUp, NetworkDown and NetworkFailed
	Cause    Cause    // of Ended
	Detail   string   // for a person, printable; the peer's words may be in it
}

// Link is one end of one PPP session. It is not safe for concurrent use.
type Link struct {
	config Config
	period time.Duration
	now    time.Time

	lcp, ipcp, ipv6cp layer
	lcpTerms          *lcpTerms
	v4                *ipcpTerms
	v6                *ipv6cpTerms

	prover prover
	asker  asker
	// authEnd is when authentication has to be over; zero: none is going on.
	authEnd time.Time
	network bool // the phase in which IPCP and IPV6CP work
	closing bool
	ended   bool
	cause   Cause

	echo   echo
	verify verify

	rejectID uint8
	out      [][]byte
	events   []Event
}

// authPatience is how long authentication may take, RADIUS of the provider included.
const authPatience = 40 * time.Second

// New makes a link and begins to negotiate at a time.
func New(config Config, now time.Time) *Link {
	l := &Link{config: config, period: config.Restart, now: now}
	if l.period == 0 {
		l.period = DefaultRestart
	}
	l.lcpTerms = newLCPTerms(l)
	l.lcp = layer{protocol: LCP, terms: l.lcpTerms, link: l, period: l.period}
	if config.V4 != nil {
		l.v4 = newIPCPTerms(*config.V4)
		l.ipcp = layer{protocol: IPCP, terms: l.v4, link: l, period: l.period}
	}
	if config.V6 != nil {
		l.v6 = newIPV6CPTerms(l, *config.V6)
		l.ipv6cp = layer{protocol: IPV6CP, terms: l.v6, link: l, period: l.period}
	}
	for _, n := range l.networks() {
		n.handle(open, now)
	}
	l.lcp.handle(open, now)
	l.lcp.handle(up, now)
	return l
}

func (l *Link) networks() []*layer {
	var layers []*layer
	if l.v4 != nil {
		layers = append(layers, &l.ipcp)
	}
	if l.v6 != nil {
		layers = append(layers, &l.ipv6cp)
	}
	return layers
}

// Take returns the frames to send and the events since the last call, in their order.
func (l *Link) Take() (frames [][]byte, events []Event) {
	frames, events = l.out, l.events
	l.out, l.events = nil, nil
	return frames, events
}

// Next returns when Tick has to be called; zero: it need not.
func (l *Link) Next() time.Time {
	var next time.Time
	if l.ended {
		return next
	}
	for _, t := range []time.Time{
		l.lcp.deadline, l.ipcp.deadline, l.ipv6cp.deadline, l.authEnd,
		l.prover.deadline, l.asker.deadline, l.echo.deadline, l.verify.deadline,
	} {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// Tick does what is due at a time.
func (l *Link) Tick(now time.Time) {
	if l.ended {
		return
	}
	l.now = now
	l.lcp.tick(now)
	l.ipcp.tick(now)
	l.ipv6cp.tick(now)
	l.tickProver()
	l.tickAsker()
	l.tickEcho()
	l.tickVerify()
	if !l.authEnd.IsZero() && !now.Before(l.authEnd) {
		l.authEnd = time.Time{}
		l.fail(NoReply, "no end of the authentication")
	}
}

// Close ends the link: the peer is told, and Ended follows when it has answered or has not
// for two restart times.
func (l *Link) Close(now time.Time) {
	l.now = now
	l.closing = true
	l.lcp.ending = "closed"
	l.lcp.handle(shut, now)
}

// fail ends the link from this side for a cause.
func (l *Link) fail(cause Cause, why string) {
	if l.ended {
		return
	}
	l.cause = cause
	l.lcp.ending = why
	if l.lcp.state >= ReqSent {
		l.lcp.handle(shut, l.now)
	}
}

// Failing returns why the link is about to end; 0: it is not. A concentrator may end the
// session before the link has.
func (l *Link) Failing() (cause Cause, why string) {
	switch {
	case l.cause == 0 && !l.closing && l.lcpTerms.unable != "":
		return Clash, l.lcpTerms.unable
	case l.cause == 0 && !l.closing:
		return 0, ""
	}
	return l.endCause(), l.lcp.ending
}

// end reports the end once.
func (l *Link) end(cause Cause, why string) {
	if !l.ended {
		l.ended = true
		l.emit(Event{Kind: Ended, Cause: cause, Detail: why})
	}
}

// Receive handles a frame of the peer.
func (l *Link) Receive(b []byte, now time.Time) {
	protocol, body, err := ParseFrame(b)
	if err != nil || l.ended {
		return
	}
	l.now = now
	l.signOfPeer()
	switch protocol {
	case LCP:
		l.receiveLCP(body)
	case PAP, CHAP:
		l.receiveAuth(protocol, body)
	case IPCP, IPV6CP:
		l.receiveNetwork(protocol, body)
	case IPv4, IPv6:
		// The data path's.
	default:
		l.rejectProtocol(protocol, body)
	}
}

func (l *Link) receiveLCP(body []byte) {
	p, err := ParsePacket(body)
	if err != nil {
		return
	}
	l.lcp.receive(p, l.now)
	if l.lcpTerms.loops >= maxLoops && !l.ended {
		l.end(Loop, "the line is looped back: our own magic number comes in")
	}
}

func (l *Link) receiveNetwork(protocol Protocol, body []byte) {
	n := &l.ipcp
	if protocol == IPV6CP {
		n = &l.ipv6cp
	}
	if n.terms == nil {
		l.rejectProtocol(protocol, body)
		return
	}
	if l.prover.answered && !l.network {
		// The Success is lost: who negotiates further was content (RFC 1994 4.2). That of MS-CHAPv2 is
		// needed; it is said again to who answers again.
		if l.lcpTerms.prove == ByMSCHAPv2 {
			l.send(CHAP, l.prover.request)
		} else {
			l.proved()
		}
	}
	if !l.network {
		return // RFC 1661 3.5: too early
	}
	if p, err := ParsePacket(body); err == nil {
		n.receive(p, l.now)
	}
}

// rejectProtocol tells the peer that a protocol is not known here (RFC 1661 5.7).
func (l *Link) rejectProtocol(protocol Protocol, body []byte) {
	if l.lcp.state != Opened {
		return
	}
	data := binary.BigEndian.AppendUint16(nil, uint16(protocol))
	data = append(data, body...)
	l.rejectID++
	l.send(LCP, Packet{Code: ProtocolReject, ID: l.rejectID, Data: data[:min(len(data), l.room())]})
}

// protocolRejected handles a Protocol-Reject of something that we have sent.
func (l *Link) protocolRejected(data []byte) {
	protocol, _, err := ParseFrame(data)
	if err != nil || l.lcp.state != Opened {
		return // RFC 1661 5.7: only then
	}
	switch why := "the peer has no " + protocol.String(); protocol {
	case LCP:
		l.lcp.fail(why, l.now)
	case PAP, CHAP:
		l.fail(Clash, why)
	case IPCP, IPV6CP:
		for _, n := range l.networks() {
			if n.protocol == protocol {
				n.fail(why, l.now)
			}
		}
	}
}

// special handles LCP's own codes; false: the code is not one of them.
func (l *Link) special(p Packet) bool {
	switch p.Code {
	case ProtocolReject:
		l.protocolRejected(p.Data)
	case EchoRequest, DiscardRequest:
		l.lcp.handle(echoOrDiscard, l.now)
	case EchoReply:
		l.lcp.handle(echoOrDiscard, l.now)
		l.echoAnswered(p)
	default:
		return false
	}
	return true
}

func (l *Link) send(protocol Protocol, p Packet) { l.out = append(l.out, frame(protocol, p)) }

func (l *Link) emit(e Event) { l.events = append(l.events, e) }

// MTU is the largest PPP packet, in bytes, that may be sent to the peer.
func (l *Link) MTU() uint16 { return min(l.lcpTerms.peerMRU, l.config.MRU) }

// MRU is the largest PPP packet, in bytes, that the peer may send.
func (l *Link) MRU() uint16 { return l.lcpTerms.mru }

// Magic is the magic number of this end, which an echo reply has to carry; 0: the peer has
// refused them.
func (l *Link) Magic() uint32 {
	if !l.lcpTerms.sayMagic {
		return 0
	}
	return l.lcpTerms.magic
}

// PeerMagic is the magic number of the peer; 0: it has none.
func (l *Link) PeerMagic() uint32 { return l.lcpTerms.peerMagic }

// Method is how this end has proved who it is; 0: it did not have to.
func (l *Link) Method() Method { return l.lcpTerms.prove }

// PeerName is the name that the peer has proved; "": it did not have to.
func (l *Link) PeerName() string { return l.asker.name }

// room is what fits into a packet to the peer, without its header.
func (l *Link) room() int { return int(l.MTU()) - packetHeader }

// Addresses are what IPCP has agreed on; all are invalid unless it is open. Peer is also
// invalid where the peer has named no address.
func (l *Link) Addresses() (own, peer netip.Addr, dns []netip.Addr) {
	if l.v4 == nil || l.ipcp.state != Opened {
		return own, peer, nil
	}
	for _, a := range l.v4.dns {
		if !a.IsUnspecified() && !slices.Contains(dns, a) { // some name one twice
			dns = append(dns, a)
		}
	}
	return l.v4.own, l.v4.peer, dns
}

// InterfaceIDs are what IPV6CP has agreed on; both are 0 unless it is open. The peer's is
// also 0 where it has named none.
func (l *Link) InterfaceIDs() (own, peer uint64) {
	if l.v6 == nil || l.ipv6cp.state != Opened {
		return 0, 0
	}
	return l.v6.own, l.v6.peer
}

func (l *Link) random(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(l.config.Random, b); err != nil {
		panic("the source of random numbers has ended: " + err.Error())
	}
	return b
}

// newMagic returns a number that is not 0.
func (l *Link) newMagic() uint32 {
	return max(binary.BigEndian.Uint32(l.random(4)), 1)
}

// newInterfaceID returns one that is not 0, with the bit for "unique in the world" not set
// (RFC 5072 4.1).
func (l *Link) newInterfaceID() uint64 {
	return max(binary.BigEndian.Uint64(l.random(8))&^(0x02<<56), 1)
}
