package client

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// By MS-CHAPv2 the concentrator has to prove that it knows the password, too: one that only says yes is
// left. A Success that is lost is asked for again.
func TestMSCHAPv2(t *testing.T) {
	server, client := serverConfig(), clientConfig()
	server.Ask.Methods = []ppp.Method{ppp.ByMSCHAPv2}
	successes := 0
	change := func(t *testing.T, do func(b []byte) [][]byte) *line {
		l := newLine(t, client, server)
		l.toClient = func(b []byte) [][]byte {
			if f, _ := discovery.Parse(b); onlyPPP(ppp.CHAP, 3)(f) {
				successes++
				return do(b)
			}
			return asIs(b)
		}
		return l
	}
	for name, do := range map[string]func(b []byte) [][]byte{
		"another": func(b []byte) [][]byte { b[20+2+4+5] ^= 1; return asIs(b) },
		"short": func(b []byte) [][]byte {
			b[25], b[19] = 8, 10
			return asIs(b)
		},
	} {
		l := change(t, do)
		if e := l.await(Down, 10*time.Second); e.Cause != ppp.Refused || e.WasUp || !strings.Contains(e.Text, "does not prove") {
			t.Errorf("%s: the end is %+v", name, e)
		}
	}
	successes = 0
	l := change(t, func(b []byte) [][]byte {
		if successes < 3 {
			return nil
		}
		return asIs(b)
	})
	if s := l.await(Up, 30*time.Second).Session; s.Method != ppp.ByMSCHAPv2 || successes != 3 {
		t.Errorf("proved by %s, after %d Successes", s.Method, successes)
	}
	if log := l.log(); strings.Contains(log, "S=") {
		t.Errorf("the log has a proof:\n%s", log)
	}
	l.servers[0].Challenge(l.servers[0].Sessions()[0].ID, l.now)
	l.run(10 * time.Second)
	if len(l.servers[0].Sessions()) != 1 {
		t.Error("a challenge in the session has ended it")
	}
}

// A line may double each challenge. The same challenge has the same answer, so the Success fits.
func TestDoubledChallenge(t *testing.T) {
	server, client := serverConfig(), clientConfig()
	server.Ask.Methods = []ppp.Method{ppp.ByMSCHAPv2}
	l := newLine(t, client, server)
	isChallenge := onlyPPP(ppp.CHAP, 1)
	l.toClient = func(b []byte) [][]byte {
		if f, _ := discovery.Parse(b); isChallenge(f) {
			return [][]byte{b, b}
		}
		return asIs(b)
	}
	l.await(Up, 10*time.Second)
	l.servers[0].Challenge(l.servers[0].Sessions()[0].ID, l.now)
	l.run(10 * time.Second)
	if len(l.servers[0].Sessions()) != 1 {
		t.Errorf("the session has ended:\n%s", l.log())
	}
	var answers [][]byte
	for _, f := range l.seen {
		if f.From == ownMAC && onlyPPP(ppp.CHAP, 2)(f) {
			answers = append(answers, f.Payload)
		}
	}
	if len(answers) != 4 || !bytes.Equal(answers[0], answers[1]) || !bytes.Equal(answers[2], answers[3]) || bytes.Equal(answers[0], answers[2]) {
		t.Errorf("answers %x", answers)
	}
}
