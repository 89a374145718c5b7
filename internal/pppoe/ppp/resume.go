package ppp

import (
	"net/netip"
	"time"
)

// Saved is an open link in numbers, for a process that goes on with it. It has no secret.
type Saved struct {
	MRU, PeerMRU     uint16
	Magic, PeerMagic uint32 // 0: there is none
	Prove            Method
	Own, Peer        netip.Addr // of IPv4; Own is invalid without IPv4
	DNS              []netip.Addr
	OwnID, PeerID    uint64 // of IPv6; OwnID is 0 without IPv6
	Echo             uint8  // identifier of the last echo request
}

// Save returns an open link; false: it is not open, and the session has to be made anew.
func (l *Link) Save() (Saved, bool) {
	if !l.network || l.ended || l.lcp.state != Opened {
		return Saved{}, false
	}
	s := Saved{
		MRU: l.MRU(), PeerMRU: l.lcpTerms.peerMRU, Magic: l.Magic(), PeerMagic: l.PeerMagic(), Prove: l.lcpTerms.prove, Echo: l.echo.id,
	}
	s.Own, s.Peer, s.DNS = l.Addresses()
	s.OwnID, s.PeerID = l.InterfaceIDs()
	return s, s.Own.IsValid() || s.OwnID != 0
}

// Resume makes a link that another process has left open. Nothing is sent, and no event tells
// of what is open. An address family that was not open stays closed until the peer asks for
// it.
func Resume(config Config, s Saved, now time.Time) *Link {
	config.VerifyMTU = false
	l := New(config, now)
	l.out, l.events = nil, nil
	t := l.lcpTerms
	t.mru, t.magic, t.sayMagic, t.peerMRU, t.peerMagic, t.prove = s.MRU, s.Magic, s.Magic != 0, s.PeerMRU, s.PeerMagic, s.Prove
	l.lcp.resume(true, now)
	l.prover.done, l.asker.done, l.network = true, true, true
	l.echo.id = s.Echo
	l.startEcho()
	if l.v4 != nil {
		l.ipcp.resume(s.Own.IsValid(), now)
		l.v4.resume(s)
	}
	if l.v6 != nil {
		l.ipv6cp.resume(s.OwnID != 0, now)
		if s.OwnID != 0 {
			l.v6.own, l.v6.peer = s.OwnID, s.PeerID
		}
	}
	return l
}

// resume sets a layer to a state in which nothing is sent. The peer's answers to what another
// process has sent are dropped.
func (l *layer) resume(opened bool, now time.Time) {
	l.state, l.deadline, l.out = Stopped, time.Time{}, false
	if opened {
		l.state, l.openAt, l.shown = Opened, now, l.protocol != LCP
	}
	l.lastID = byte(now.UnixNano() >> 20) // not the other process's last ones, most likely
}

func (t *ipcpTerms) resume(s Saved) {
	if !s.Own.IsValid() {
		return
	}
	t.own, t.peer = s.Own, s.Peer
	for i := range t.ask {
		t.ask[i] = i < len(s.DNS)
		if t.ask[i] {
			t.dns[i] = s.DNS[i]
		}
	}
}
