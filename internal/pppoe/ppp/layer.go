package ppp

import (
	"bytes"
	"time"
)

// Limits of a negotiation (RFC 1661 4.6).
const (
	// DefaultRestart is how long an answer is waited for before a request is sent again.
	DefaultRestart = 3 * time.Second
	maxConfigure   = 10 // Configure-Requests without an answer
	maxTerminate   = 2  // Terminate-Requests without an answer
	maxFailure     = 5  // Configure-Naks sent in a row; later ones are Configure-Rejects
	// maxRefused is how many of our requests in a row may be refused. RFC 1661 sets no
	// limit, and two ends that do not agree would talk for ever.
	maxRefused = 20
)

// terms are what two ends agree on in one protocol.
type terms interface {
	// request returns the options to ask for.
	request() []Option
	// refused takes a Configure-Nak or Configure-Reject of the request.
	refused(code Code, options []Option)
	// judge decides about the peer's request: ConfigureAck with no options, or ConfigureNak
	// or ConfigureReject with those that it names. In the last case of a negotiation that
	// does not end it may not answer ConfigureNak.
	judge(options []Option, last bool) (Code, []Option)
}

// lower is what a layer calls in the link it is part of.
type lower interface {
	send(protocol Protocol, p Packet)
	layerUp(l *layer)
	layerDown(l *layer)
	layerFinished(l *layer, why string)
	// special handles the codes that only LCP has.
	special(p Packet) bool
	// echoAsked answers an Echo-Request.
	echoAsked(p Packet)
	// room is how many bytes of data a packet to the peer may have.
	room() int
}

// layer is one automaton with its timer, its counters and what it negotiates.
type layer struct {
	protocol Protocol
	terms    terms
	link     lower
	period   time.Duration // between a request and the next one

	state    State
	deadline time.Time // when the restart timer ends; zero: it does not run
	restarts int       // the restart counter
	lastID   uint8
	request  Packet // the last Configure-Request
	out      bool   // it is not answered yet
	agreed   Packet // the peer's last one that was acknowledged
	openAt   time.Time
	naks     int    // sent since the last Configure-Ack sent
	refusals int    // received since the last Configure-Ack received
	ending   string // why the layer ends, for a person
	shown    bool   // NetworkUp is reported

	now      time.Time // of the event that is being handled
	in       Packet    // the packet that is being handled
	answer   Packet    // to a Configure-Request
	repeated bool      // the request is sent again, not anew
}

// handle lets the automaton react to an event at a time.
func (l *layer) handle(e event, now time.Time) {
	c := transitions[e][l.state]
	if !c.ok {
		return
	}
	l.now = now
	l.state = c.next
	l.repeated = e == timeoutAgain
	if !l.timed() {
		l.deadline = time.Time{}
	}
	for _, a := range c.do {
		l.do(a)
	}
}

// timed says whether the restart timer runs in this state (RFC 1661 4.1).
func (l *layer) timed() bool {
	return l.state >= Closing && l.state <= AckSent
}

func (l *layer) do(a action) {
	switch a {
	case thisLayerUp:
		l.refusals, l.ending, l.openAt = 0, "", l.now
		l.link.layerUp(l)
	case thisLayerDown:
		l.link.layerDown(l)
	case thisLayerFinished:
		l.link.layerFinished(l, l.ending)
	case initRestartCount:
		l.restarts = maxConfigure
		if l.state == Closing || l.state == Stopping {
			l.restarts = maxTerminate
		}
	case zeroRestartCount:
		l.restarts = 0
		l.deadline = l.now.Add(l.period)
	case sendRequest:
		l.sendRequest()
	case sendAck, sendNak:
		l.link.send(l.protocol, l.answer)
	case sendTerminateRequest:
		l.restarts--
		l.deadline = l.now.Add(l.period)
		l.link.send(l.protocol, Packet{Code: TerminateRequest, ID: l.newID()})
	case sendTerminateAck:
		l.link.send(l.protocol, Packet{Code: TerminateAck, ID: l.in.ID})
	case sendCodeReject:
		rejected := l.in.Append(nil)
		l.link.send(l.protocol, Packet{Code: CodeReject, ID: l.newID(), Data: rejected[:min(len(rejected), l.link.room())]})
	case sendEchoReply:
		if l.in.Code == EchoRequest {
			l.link.echoAsked(l.in)
		}
	case thisLayerStarted:
		// What is below is always there while there is a link.
	}
}

func (l *layer) newID() uint8 {
	l.lastID++
	return l.lastID
}

// sendRequest sends a Configure-Request. One that is sent again keeps its identifier: where
// the answer needs longer than the timer, an identifier of its own would make each answer
// come too late (RFC 1661 5.1 leaves it open).
func (l *layer) sendRequest() {
	l.restarts--
	l.deadline = l.now.Add(l.period)
	l.out = true
	if !l.repeated {
		l.request = Packet{Code: ConfigureRequest, ID: l.newID(), Data: AppendOptions(nil, l.terms.request())}
	}
	l.link.send(l.protocol, l.request)
}

// tick handles the end of the restart timer.
func (l *layer) tick(now time.Time) {
	if l.deadline.IsZero() || now.Before(l.deadline) {
		return
	}
	l.deadline = time.Time{}
	if l.restarts > 0 {
		l.handle(timeoutAgain, now)
		return
	}
	if l.ending == "" {
		l.ending = "no answer to " + l.protocol.String()
	}
	l.handle(timeoutLast, now)
}

// receive handles a packet of this protocol. What is malformed, or answers no request that
// is out, is dropped (RFC 1661 5).
func (l *layer) receive(p Packet, now time.Time) {
	l.in = p
	switch p.Code {
	case ConfigureRequest:
		l.requested(p, now)
	case ConfigureAck:
		if l.out && p.ID == l.request.ID && bytes.Equal(p.Data, l.request.Data) {
			l.out = false
			l.handle(requestAcked, now)
		}
	case ConfigureNak, ConfigureReject:
		l.refusedBy(p, now)
	case TerminateRequest:
		if l.ending == "" {
			l.ending = "terminated by the peer" + reasonText(p.Data)
		}
		l.handle(terminateAsked, now)
	case TerminateAck:
		l.handle(terminateAcked, now)
	case CodeReject:
		l.codeRejected(p, now)
	default:
		if l.protocol == LCP && l.link.special(p) {
			return
		}
		l.handle(codeUnknown, now)
	}
}

// requested handles a Configure-Request.
func (l *layer) requested(p Packet, now time.Time) {
	if l.state == Initial || l.state == Starting || l.state == Closing || l.state == Stopping {
		return
	}
	options, err := ParseOptions(p.Data)
	if err != nil {
		return
	}
	if l.again(p, now) {
		l.link.send(l.protocol, Packet{Code: ConfigureAck, ID: p.ID, Data: p.Data})
		return
	}
	code, refused := l.terms.judge(options, l.naks >= maxFailure)
	l.answer = Packet{Code: code, ID: p.ID, Data: p.Data}
	if code == ConfigureAck {
		l.naks = 0
		l.agreed = Packet{Code: p.Code, ID: p.ID, Data: bytes.Clone(p.Data)}
		l.handle(requestGood, now)
		return
	}
	if code == ConfigureNak {
		l.naks++
	}
	l.answer.Data = AppendOptions(nil, refused)
	l.handle(requestBad, now)
}

// again says whether a Configure-Request is the one that has just led to the open layer: the
// line has doubled it, or the peer has not got the answer. By RFC 1661 4.3 the layer would
// negotiate anew, and where each frame comes twice, for ever.
func (l *layer) again(p Packet, now time.Time) bool {
	return l.state == Opened && now.Sub(l.openAt) < maxConfigure*l.period &&
		p.ID == l.agreed.ID && bytes.Equal(p.Data, l.agreed.Data)
}

// refusedBy handles a Configure-Nak or Configure-Reject.
func (l *layer) refusedBy(p Packet, now time.Time) {
	options, err := ParseOptions(p.Data)
	if err != nil || !l.out || p.ID != l.request.ID {
		return
	}
	l.out = false
	l.refusals++
	if l.refusals > maxRefused {
		l.fail("no agreement on "+l.protocol.String(), now)
		return
	}
	if l.state >= ReqSent {
		l.terms.refused(p.Code, options)
	}
	l.handle(requestRefused, now)
}

// codeRejected handles a Code-Reject. Without the codes of negotiation there is no layer;
// what else the peer does not know can be borne.
func (l *layer) codeRejected(p Packet, now time.Time) {
	if len(p.Data) == 0 {
		return
	}
	rejected := Code(p.Data[0])
	if rejected >= ConfigureRequest && rejected <= CodeReject || rejected == ProtocolReject && l.protocol == LCP {
		l.fail("the peer does not know "+l.protocol.String()+" "+rejected.String(), now)
		return
	}
	l.handle(rejectHarmless, now)
}

// fail ends the layer for a reason.
func (l *layer) fail(why string, now time.Time) {
	l.ending = why
	l.handle(rejectFatal, now)
}

// reasonText makes a text of the peer's fit for a log: at most 80 printable characters.
func reasonText(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return ": " + Printable(text)
}

// Printable returns a text from the network as printable ASCII of at most 80 characters, with
// a dot for each other byte.
func Printable(text []byte) string {
	clean := bytes.Clone(text[:min(len(text), 80)])
	for i, c := range clean {
		if c < ' ' || c > '~' {
			clean[i] = '.'
		}
	}
	return string(clean)
}
