package device

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// initiationTo returns the first message of a handshake that an end begins with its peer.
func (e *linkEnd) initiationTo(t *testing.T) recordedMessage {
	t.Helper()
	e.peer.handshake.mutex.Lock()
	e.peer.handshake.lastSentHandshake = time.Time{}
	e.peer.handshake.mutex.Unlock()
	if err := e.peer.SendHandshakeInitiation(false); err != nil {
		t.Fatal(err)
	}
	m, ok := e.network.take(MessageInitiationType)
	if !ok {
		t.Fatal("no handshake is begun")
	}
	return m
}

// Whoever has begun a handshake that no peer has is remembered with his key, and who means another end without one.
func TestStrangers(t *testing.T) {
	ends := linkOf(t, 1)
	known, other := ends[0], linkOf(t, 1)
	from := netip.MustParseAddrPort("198.51.100.66:666")
	first := other[0].initiationTo(t)
	known.arrive(first.message, from, 0)
	is := known.Strangers()
	if len(is) != 1 || is[0].From != from || !is[0].Key.IsZero() {
		t.Errorf("a handshake with another end: %+v", is)
	}
	time.Sleep(strangerPause)
	p, err := other[0].NewPeer(known.staticIdentity.publicKey)
	if err != nil {
		t.Fatal(err)
	}
	p.endpoint.Store(&Endpoint{Remote: from})
	p.Start()
	other[0].peer = p
	second := other[0].initiationTo(t)
	known.arrive(second.message, from, 0)
	if is = known.Strangers(); len(is) != 1 || is[0].Key != other[0].staticIdentity.publicKey || time.Since(is[0].Time) > strangerPause {
		t.Errorf("a handshake of somebody with a key that no peer has: %+v", is)
	}
	time.Sleep(strangerPause)
	known.arrive(ends[1].initiationTo(t).message, netip.MustParseAddrPort("192.0.2.1:51820"), 0)
	if is = known.Strangers(); len(is) != 1 || is[0].Key.IsZero() {
		t.Errorf("a peer is a stranger: %+v", is)
	}
	for i := range 2 * mostStrangers {
		known.strangers.note(Stranger{From: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 1), Time: time.Now().Add(time.Duration(i+1) * time.Second)})
	}
	if is = known.Strangers(); len(is) != mostStrangers || is[mostStrangers-1].From.Addr() != netip.MustParseAddr("203.0.113.15") {
		t.Errorf("of many strangers there are %+v", is)
	}
}

// An answer that does not fit says that the preshared keys differ.
func TestPresharedKeysDiffer(t *testing.T) {
	ends := linkOf(t, 1)
	var mu sync.Mutex
	var said []string
	ends[0].log = &Logger{DiscardLogf, func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if len(args) > 0 && args[0] == ends[0].peer {
			said = append(said, format)
		}
	}}
	ends[0].peer.handshake.presharedKey[0] = 1
	at := [2]netip.AddrPort{netip.MustParseAddrPort("192.0.2.0:51820"), netip.MustParseAddrPort("192.0.2.1:51820")}
	ends[1].arrive(ends[0].initiationTo(t).message, at[0], 0)
	answer, ok := ends[1].network.take(MessageResponseType)
	if !ok {
		t.Fatal("nobody answers")
	}
	ends[0].arrive(answer.message, at[1], 0)
	if len(said) != 1 || !strings.Contains(said[0], "another preshared key") {
		t.Errorf("of an answer with another preshared key it says %q", said)
	}
}

// Addresses that a system sends from by itself are not counted.
func TestRefuse(t *testing.T) {
	p := linkOf(t, 2)[0].lanes[1]
	now := time.Unix(1000, 0)
	for _, from := range []string{"fe80::1", "::", "0.0.0.0", "10.3.0.1", "fd03::1"} {
		p.Refuse(netip.MustParseAddr(from).AsSlice(), now)
	}
	if got, want := p.First().Refused(), (Refused{2, netip.MustParseAddr("fd03::1"), now}); got != want {
		t.Errorf("of a peer that has sent by a lane: %+v, want %+v", got, want)
	}
}
