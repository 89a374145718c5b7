package ppp

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"strings"
	"time"

	"weir/internal/pppoe/mschap"
)

// Codes of PAP (RFC 1334 2.2) and of CHAP (RFC 1994 4).
const (
	papRequest Code = 1
	papAck     Code = 2
	papNak     Code = 3

	chapChallenge Code = 1
	chapResponse  Code = 2
	chapSuccess   Code = 3
	chapFailure   Code = 4
)

// maxAuth is how often a PAP request or a challenge is sent without an answer.
const maxAuth = 10

// prover proves to the peer who this end is.
type prover struct {
	done     bool
	answered bool // a challenge is answered; the verdict is still out
	request  Packet
	// challenge is what request answers. The same one once more has the same answer: by MS-CHAPv2 another
	// would have a new random part, and the Success on the first would not fit it.
	challenge []byte
	success   string    // what MS-CHAPv2's Success has to say
	deadline  time.Time // of PAP, when the request is sent again
	left      int
}

func (l *Link) startProver() {
	l.prover = prover{done: l.lcpTerms.prove == 0, left: maxAuth}
	if l.lcpTerms.prove != ByPAP {
		return // CHAP begins with the other end
	}
	data := appendField(nil, []byte(l.config.Prove.Name))
	data = appendField(data, []byte(l.config.Prove.Secret.text))
	l.prover.request = Packet{Code: papRequest, ID: 1, Data: data}
	l.sendPAP()
}

func (l *Link) sendPAP() {
	l.prover.left--
	l.prover.deadline = l.now.Add(l.period)
	l.send(PAP, l.prover.request)
}

func (l *Link) tickProver() {
	if l.prover.deadline.IsZero() || l.now.Before(l.prover.deadline) {
		return
	}
	l.prover.deadline = time.Time{}
	if l.prover.left == 0 {
		l.fail(NoReply, "no answer to PAP")
		return
	}
	l.sendPAP()
}

// proved says that the peer is content.
func (l *Link) proved() {
	l.prover.done, l.prover.answered = true, false
	l.prover.deadline = time.Time{}
	l.afterAuth()
}

// receiveAuth handles PAP and CHAP, once LCP is open and has agreed to them.
func (l *Link) receiveAuth(protocol Protocol, body []byte) {
	p, err := ParsePacket(body)
	if err != nil || l.lcp.state != Opened {
		return
	}
	switch {
	case protocol == PAP && p.Code == papRequest:
		l.checkPAP(p)
	case protocol == CHAP && p.Code == chapResponse:
		l.checkCHAP(p)
	case protocol == PAP && l.lcpTerms.prove == ByPAP:
		l.papVerdict(p)
	case protocol == CHAP && l.lcpTerms.prove.isCHAP():
		l.chapPacket(p)
	}
}

func (l *Link) papVerdict(p Packet) {
	if p.ID != l.prover.request.ID || l.prover.done {
		return
	}
	message, _, _ := field(p.Data)
	switch p.Code {
	case papAck:
		l.proved()
	case papNak:
		l.prover.deadline = time.Time{}
		l.fail(Refused, "the peer refuses name or password"+reasonText(message))
	}
}

// chapPacket answers a challenge, which may come at any time (RFC 1994 2), and takes the
// verdict.
func (l *Link) chapPacket(p Packet) {
	switch p.Code {
	case chapChallenge:
		challenge, _, ok := field(p.Data)
		if !ok || len(challenge) == 0 {
			return
		}
		l.answerChallenge(p.ID, challenge)
	case chapSuccess:
		if l.prover.answered && p.ID == l.prover.request.ID {
			l.chapSuccess(p)
		}
	case chapFailure:
		if l.prover.request.Code == chapResponse && p.ID == l.prover.request.ID {
			l.fail(Refused, "the peer refuses name or password"+l.failureText(p.Data))
		}
	}
}

// answerChallenge sends the answer to a challenge.
func (l *Link) answerChallenge(id uint8, challenge []byte) {
	if l.prover.challenge == nil || l.prover.request.ID != id || !bytes.Equal(l.prover.challenge, challenge) {
		answer := l.chapAnswer(id, challenge)
		if answer == nil {
			return
		}
		l.prover.challenge = bytes.Clone(challenge)
		l.prover.request = Packet{Code: chapResponse, ID: id, Data: append(appendField(nil, answer), l.config.Prove.Name...)}
	}
	l.prover.answered = true
	l.send(CHAP, l.prover.request)
}

// chapAnswer is the answer to a challenge; nil: it is none.
func (l *Link) chapAnswer(id uint8, challenge []byte) []byte {
	secret := &l.config.Prove.Secret
	if l.lcpTerms.prove == ByCHAP {
		return secret.chapMD5(id, challenge)
	}
	if len(challenge) != mschap.ChallengeSize {
		return nil
	}
	e := mschap.Exchange{Name: l.config.Prove.Name, Authenticator: [mschap.ChallengeSize]byte(challenge), Peer: [mschap.ChallengeSize]byte(l.random(mschap.ChallengeSize))}
	response := e.Response(secret.text)
	l.prover.success = e.Success(secret.text, response)
	return msResponse(&e, response)
}

// msResponse is the value of MS-CHAPv2's Response (RFC 2759 4).
func msResponse(e *mschap.Exchange, response [mschap.ResponseSize]byte) []byte {
	b := make([]byte, msResponseSize)
	copy(b, e.Peer[:])
	copy(b[msResponseSize-1-mschap.ResponseSize:], response[:])
	return b
}

// msResponseSize is that of challenge, 8 reserved bytes, response and flags.
const msResponseSize = mschap.ChallengeSize + 8 + mschap.ResponseSize + 1

// chapSuccess takes a Success. By MS-CHAPv2 it has to prove that the peer knows the password; one that
// does not may be anybody.
func (l *Link) chapSuccess(p Packet) {
	if l.lcpTerms.prove == ByMSCHAPv2 && (len(p.Data) < len(l.prover.success) || subtle.ConstantTimeCompare(p.Data[:len(l.prover.success)], []byte(l.prover.success)) != 1) {
		l.fail(Refused, "the peer does not prove that it knows the password, as MS-CHAPv2 demands")
		return
	}
	l.proved()
}

// msErrors are why a peer refuses by MS-CHAPv2 (RFC 2759 6).
var msErrors = map[string]string{
	"646": "not at this hour", "647": "the account is disabled", "648": "the password has expired", "649": "no permission to dial in",
	"691": "wrong name or password", "709": "the password has to be changed",
}

// failureText is what a Failure says. MS-CHAPv2 says it by number, and adds a challenge that is left
// out.
func (l *Link) failureText(b []byte) string {
	if l.lcpTerms.prove != ByMSCHAPv2 {
		return reasonText(b)
	}
	text := string(b)
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "E="), " ")
	_, message, _ := strings.Cut(text, "M=")
	if why := msErrors[number]; why != "" && strings.HasPrefix(text, "E=") {
		return ": " + why + reasonText([]byte(message))
	}
	return reasonText(b)
}

// asker has the peer prove who it is.
type asker struct {
	done      bool
	name      string // that is proved
	id        uint8
	challenge []byte
	verdict   Packet // on the last response, for one that is sent again
	deadline  time.Time
	left      int
}

func (l *Link) startAsker() {
	l.asker = asker{done: l.lcpTerms.ask == 0, id: l.asker.id, left: maxAuth}
	switch l.lcpTerms.ask {
	case ByCHAP, ByMSCHAPv2:
		l.newChallenge()
	case ByPAP:
		l.asker.deadline = l.now.Add(authPatience)
	}
}

// Challenge asks the peer once more who it is, as CHAP allows at any time (RFC 1994 2).
func (l *Link) Challenge(now time.Time) {
	l.now = now
	if l.lcp.state == Opened && l.lcpTerms.ask.isCHAP() {
		l.asker.left = maxAuth
		l.newChallenge()
	}
}

func (l *Link) newChallenge() {
	l.asker.id++
	l.asker.challenge = l.random(16)
	l.asker.verdict = Packet{}
	l.sendChallenge()
}

func (l *Link) sendChallenge() {
	l.asker.left--
	l.asker.deadline = l.now.Add(l.period)
	data := append(appendField(nil, l.asker.challenge), l.config.Ask.Name...)
	l.send(CHAP, Packet{Code: chapChallenge, ID: l.asker.id, Data: data})
}

func (l *Link) tickAsker() {
	if l.asker.deadline.IsZero() || l.now.Before(l.asker.deadline) {
		return
	}
	l.asker.deadline = time.Time{}
	if l.asker.left == 0 || !l.lcpTerms.ask.isCHAP() {
		l.fail(Refused, "the peer does not say who it is")
		return
	}
	l.sendChallenge()
}

func (l *Link) checkPAP(p Packet) {
	if l.lcpTerms.ask != ByPAP {
		return
	}
	name, rest, ok := field(p.Data)
	password, _, ok2 := field(rest)
	if !ok || !ok2 {
		return
	}
	secret, known := l.config.Ask.Secret(string(name))
	good := known && subtle.ConstantTimeCompare(password, []byte(secret.text)) == 1
	verdict := papNak
	if good {
		verdict = papAck
	}
	l.send(PAP, Packet{Code: verdict, ID: p.ID, Data: []byte{0}})
	l.decide(good, string(name))
}

func (l *Link) checkCHAP(p Packet) {
	if !l.lcpTerms.ask.isCHAP() || p.ID != l.asker.id {
		return
	}
	if l.asker.verdict.Code != 0 { // the verdict was lost
		l.send(CHAP, l.asker.verdict)
		return
	}
	answer, name, ok := field(p.Data)
	if !ok {
		return
	}
	secret, known := l.config.Ask.Secret(string(name))
	good, says := l.checkAnswer(p.ID, string(name), answer, &secret)
	good = good && known
	l.asker.verdict = Packet{Code: chapFailure, ID: p.ID}
	switch {
	case good:
		l.asker.verdict.Code, l.asker.verdict.Data = chapSuccess, says
	case l.lcpTerms.ask == ByMSCHAPv2:
		l.asker.verdict.Data = fmt.Appendf(nil, "E=691 R=0 C=%X V=3 M=no", l.random(mschap.ChallengeSize))
	}
	l.send(CHAP, l.asker.verdict)
	l.decide(good, string(name))
}

// checkAnswer checks the answer to a challenge, and returns what a Success has to say.
func (l *Link) checkAnswer(id uint8, name string, answer []byte, secret *Secret) (good bool, says []byte) {
	if l.lcpTerms.ask == ByCHAP {
		return subtle.ConstantTimeCompare(answer, secret.chapMD5(id, l.asker.challenge)) == 1, nil
	}
	if len(answer) != msResponseSize {
		return false, nil
	}
	e := mschap.Exchange{Name: name, Authenticator: [mschap.ChallengeSize]byte(l.asker.challenge), Peer: [mschap.ChallengeSize]byte(answer)}
	response := e.Response(secret.text)
	good = subtle.ConstantTimeCompare(answer, msResponse(&e, response)) == 1
	return good, []byte(e.Success(secret.text, response) + " M=welcome")
}

// decide follows a verdict on the peer.
func (l *Link) decide(good bool, name string) {
	l.asker.deadline = time.Time{}
	if !good {
		l.fail(Refused, "wrong name or password of "+Printable([]byte(name)))
		return
	}
	l.asker.done, l.asker.name = true, name
	l.afterAuth()
}

// field reads a length of one byte and as many bytes, and returns them and the rest.
func field(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || int(b[0]) > len(b)-1 {
		return nil, nil, false
	}
	n := 1 + int(b[0]) // up to 256: no byte has room for it
	return b[1:n], b[n:], true
}

// appendField appends a length of one byte and at most 255 bytes.
func appendField(b, value []byte) []byte {
	value = value[:min(len(value), 255)]
	return append(append(b, byte(len(value))), value...)
}
