package client

import (
	"testing"
	"time"

	"weir/internal/pppoe/discovery"
)

// Of what comes, only discovery with this machine and the frames of its session are told of.
func TestConcerns(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	ours := l.await(Up, 10*time.Second).Session.Ref
	for _, test := range []struct {
		name  string
		frame discovery.Frame
		want  bool
	}{
		{"our session", discovery.Frame{To: ownMAC, From: ours.Peer, Ether: discovery.EtherSession, SessionID: ours.ID}, true},
		{"another number", discovery.Frame{To: ownMAC, From: ours.Peer, Ether: discovery.EtherSession, SessionID: ours.ID + 1}, false},
		{"another sender", discovery.Frame{To: ownMAC, From: secondMAC, Ether: discovery.EtherSession, SessionID: ours.ID}, false},
		{"to another", discovery.Frame{To: secondMAC, From: ours.Peer, Ether: discovery.EtherSession, SessionID: ours.ID}, false},
		{"a PADT", discovery.Terminate(ownMAC, ours.Peer, ours.ID), true},
		{"a neighbour's PADI", discovery.Frame{To: discovery.Broadcast, From: secondMAC, Ether: discovery.EtherDiscovery, Code: discovery.PADI}, false},
	} {
		if got := l.client.concerns(test.frame.Append(nil)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if l.client.concerns([]byte{1, 2, 3}) {
		t.Error("what is no frame is told of")
	}
}

// Before the session, what the asked concentrator says early is told of, and nobody else's frames are.
func TestConcernsEarly(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	l.toClient = func(b []byte) [][]byte {
		if f, _ := discovery.Parse(b); f.Code == discovery.PADS {
			return nil
		}
		return asIs(b)
	}
	l.run(100 * time.Millisecond)
	for from, want := range map[discovery.MAC]bool{firstMAC: true, secondMAC: false} {
		f := discovery.Frame{To: ownMAC, From: from, Ether: discovery.EtherSession, SessionID: 9}
		if got := l.client.concerns(f.Append(nil)); got != want {
			t.Errorf("from %s: %v, want %v", from, got, want)
		}
	}
}
