package remote

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func datagrams() []datagram {
	t, c := newTicket(), newTicket()
	return []datagram{
		{kind: kindHello, ticket: t}, {kind: kindChallenge, ticket: t, cookie: c},
		{kind: kindProbe, tag: t.tag(), number: 7, sent: 1 << 40}, {kind: kindEcho, tag: t.tag(), number: 7, sent: 1 << 40},
		{kind: kindData, tag: t.tag(), number: 1 << 31, sent: 123456},
	}
}

func TestDatagramsComeBack(t *testing.T) {
	for _, want := range datagrams() {
		b := want.append(nil)
		got, err := parseDatagram(b)
		if err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(datagram{})); diff != "" {
			t.Error(diff)
		}
		if _, err := parseDatagram(b[:len(b)-1]); !errors.Is(err, errDatagram) {
			t.Errorf("kind %x without its last byte: %v", want.kind, err)
		}
	}
	d := datagrams()
	if len(d[4].append(nil)) != minPayload {
		t.Errorf("data has %d bytes, want %d: it fits a frame of 64", len(d[4].append(nil)), minPayload)
	}
}

// TestNothingIsAmplified: whoever gets an answer has sent at least as much.
func TestNothingIsAmplified(t *testing.T) {
	d := datagrams()
	for _, pair := range [][2]int{{0, 1}, {2, 3}} {
		asked, answered := len(d[pair[0]].append(nil)), len(d[pair[1]].append(nil))
		if answered > asked {
			t.Errorf("kind %x of %d bytes is answered by %d", d[pair[0]].kind, asked, answered)
		}
	}
}

// TestChallenges: only the address of the authenticated connection is answered,
// only with a ticket that is expected, so many times, and only its last port is
// proven.
func TestChallenges(t *testing.T) {
	peer := netip.MustParseAddr("192.0.2.1")
	l := &legs{peer: peer, waiting: map[ticket]*claim{}}
	known := newTicket()
	l.expect(known)
	ask := func(t ticket, from string) []byte {
		d := datagram{kind: kindHello, ticket: t}
		return l.challenge(d.append(nil), netip.MustParseAddrPort(from))
	}
	if ask(known, "192.0.2.2:1000") != nil || ask(known, "[::ffff:192.0.2.2]:1000") != nil {
		t.Error("another address gets an answer")
	}
	if ask(newTicket(), "192.0.2.1:1000") != nil {
		t.Error("an unknown ticket gets an answer")
	}
	first, second := ask(known, "192.0.2.1:1000"), ask(known, "192.0.2.1:2000")
	if first == nil || second == nil || bytes.Equal(first, second) {
		t.Errorf("challenges %x and %x: want one for each port", first, second)
	}
	old, err := parseDatagram(first)
	if err != nil {
		t.Fatal(err)
	}
	answers := 2
	for range 100 {
		if ask(known, "192.0.2.1:2000") != nil {
			answers++
		}
	}
	if answers != maxChallenges {
		t.Errorf("%d challenges for one ticket, want %d", answers, maxChallenges)
	}
	if _, err := l.prove(t.Context(), known, old.cookie); err == nil {
		t.Error("the cookie of another port proves something")
	}
	if _, err := l.prove(t.Context(), known, old.cookie); err == nil {
		t.Error("a ticket can be tried twice")
	}
	other := newTicket()
	l.expect(other)
	if _, err := l.prove(t.Context(), other, ticket{}); err == nil {
		t.Error("a ticket without a hello is proven by zeros")
	}
}

func FuzzDatagram(f *testing.F) {
	for _, d := range datagrams() {
		f.Add(d.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDatagram(b)
		if err != nil {
			return
		}
		again, err := parseDatagram(d.append(nil))
		if err != nil || again != d {
			t.Fatalf("%+v became %+v, %v", d, again, err)
		}
		if _, err := parsePreamble(b); err == nil {
			t.Fatal("a datagram is a preamble")
		}
	})
}
