package inquiry

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

// Each thing that is wrong is named.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	to := netip.MustParseAddr("10.9.0.2")
	network := netip.MustParsePrefix("10.9.0.0/16")
	good := func() *Facts {
		return &Facts{
			Now:    now,
			Tunnel: keeper.Status{Interface: "wg0", Engine: "userspace", Port: 51820, MTU: 1420, Fixed: true},
			Peer: keeper.Peer{
				Session: keeper.Current, Handshake: now.Add(-time.Minute), Endpoint: netip.MustParseAddrPort("192.0.2.1:51820"), Received: 1,
				Allowed: []netip.Prefix{network},
			},
			Routes: []Route{{network, "wg0"}},
			Probes: []Probe{{To: to, Sent: 3, Answered: 3, RTT: time.Millisecond, Out: 300, In: 300, Largest: 1420}},
		}
	}
	for _, f := range Judge(good()) {
		if !f.OK {
			t.Errorf("nothing is wrong, and it says %+v", f)
		}
	}
	fewer := good()
	fewer.Peer.Wide = &tunnel.Wide{Wanted: 4, Used: 2, Why: "the other end has 2 ports", Fewer: true, Ports: []tunnel.Port{{Port: 7, Works: true}, {Port: 8, Works: true}}}
	if all := Judge(fewer); !slices.Contains(all, Finding{"ports", true, "2 of 4 ports carry the link: the other end has 2 ports"}) {
		t.Errorf("all ports that both ends have are used, and it says %+v", all)
	}
	late := good()
	late.Peer.Refused = &tunnel.Refused{Packets: 7, Source: netip.MustParseAddr("10.3.0.1"), Time: now.Add(-time.Hour)}
	for _, f := range Judge(late) {
		if !f.OK {
			t.Errorf("what was dropped an hour ago is said to be wrong: %+v", f)
		}
	}
	ours, theirs := key.NewPrivate().Public(), key.NewPrivate().Public()
	unanswered := func(f *Facts) *Probe {
		p := &f.Probes[0]
		p.Answered, p.RTT, p.Largest = 0, 0, 0
		return p
	}
	for _, c := range []struct {
		spoil            func(f *Facts)
		question, answer string
	}{
		{func(f *Facts) { f.Tunnel.Problem = "read a key: no" }, "tunnel", "read a key"},
		{func(f *Facts) {
			f.Peer.Wide = &tunnel.Wide{Wanted: 3, Used: 2, Why: "a rule", Ports: []tunnel.Port{{Port: 7, Works: true}, {Port: 8, Works: true}, {Port: 9}}}
		}, "ports", "2 of 3 ports carry the link: a rule (9)"},
		{func(f *Facts) { f.Tunnel.Engine = "" }, "tunnel", "no engine"},
		{func(f *Facts) { f.Peer.Session, f.Peer.Endpoint = keeper.NoSession, netip.AddrPort{} }, "session", "not known where"},
		{func(f *Facts) { f.Peer.Session, f.Peer.Received = keeper.NoSession, 0 }, "session", "never answered"},
		{func(f *Facts) { f.Peer.Session = keeper.NoSession }, "session", "another preshared key"},
		{func(f *Facts) { f.Peer.Session = keeper.OldSession }, "session", "1m0s ago"},
		{func(f *Facts) {
			f.Peer.Session, f.Peer.Error, f.Peer.ErrorTime = keeper.OldSession, "sendto: no route", now
		}, "session", "no route"},
		{func(f *Facts) {
			f.Peer.Session, f.Peer.Error, f.Peer.ErrorTime = keeper.OldSession, "sendto: no route", now.Add(-40*time.Second)
		}, "session", "silent since"},
		{func(f *Facts) {
			f.Peer.Session = keeper.NoSession
			f.Tunnel.Strangers = []tunnel.Stranger{{From: netip.MustParseAddrPort("192.0.2.1:7"), Time: now}, {From: netip.MustParseAddrPort("192.0.2.9:7"), Key: &theirs, Time: now}}
			f.Tunnel.Key = &ours
		}, "session", "somebody at 192.0.2.1 begins handshakes with another public key than this end's: if it is the peer, the other end has to have " + ours.String()},
		{func(f *Facts) {
			f.Peer.Session = keeper.NoSession
			f.Tunnel.Strangers = []tunnel.Stranger{{From: netip.MustParseAddrPort("192.0.2.1:7"), Key: &theirs, Time: now}}
		}, "session", "somebody at 192.0.2.1:7 begins handshakes with the public key " + theirs.String() + ", which no peer here has"},
		{func(f *Facts) {
			f.Peer.Session, f.Peer.Endpoint = keeper.NoSession, netip.AddrPort{}
			f.Tunnel.Strangers = []tunnel.Stranger{{From: netip.MustParseAddrPort("192.0.2.9:7"), Key: &theirs, Time: now}}
		}, "session", "192.0.2.9:7 begins handshakes with the public key " + theirs.String()},
		{func(f *Facts) {
			f.Peer.Session, f.Peer.Received = keeper.NoSession, 0
			f.Tunnel.Strangers = []tunnel.Stranger{{From: netip.MustParseAddrPort("192.0.2.1:7"), Key: &theirs, Time: now.Add(-2 * time.Minute)}}
		}, "session", "never answered"},
		{func(f *Facts) {
			f.Peer.Refused = &tunnel.Refused{Packets: 7, Source: netip.MustParseAddr("10.3.0.1"), Time: now.Add(-time.Second)}
		}, "allowed", "7 so far, the last 1s ago from 10.3.0.1"},
		{func(f *Facts) {
			f.Peer.Session = keeper.OldSession
			f.Peer.Behind = &tunnel.Behind{Messages: 1, Theirs: now.Add(-48 * time.Hour), Last: now.Add(-time.Hour), Time: now.Add(-time.Second)}
		}, "session", "the peer's clock has gone back, or somebody sends old messages of it again: handshakes come that say 2026-02-27T12:00:00Z, and the last one that counted said 2026-03-01T11:00:00Z"},
		{func(f *Facts) {
			f.Peer.Session = keeper.OldSession
			f.Peer.Behind = &tunnel.Behind{Messages: 1, Theirs: now.Add(-48 * time.Hour), Last: now, Time: now.Add(-time.Hour)}
		}, "session", "silent since"},
		{func(f *Facts) { f.Peer.Session, f.Peer.Handshake = keeper.OldSession, now.Add(time.Hour) }, "session", "the last handshake was 0s ago: the peer"},
		{func(f *Facts) {
			f.Tunnel.Engine, f.Peer.Session, f.Peer.Handshake = "kernel", keeper.OldSession, now.Add(time.Hour)
		}, "session", "this end's clock has gone back: the last handshake was at 2026-03-01T13:00:00Z, and now it is 2026-03-01T12:00:00Z"},
		{func(f *Facts) { f.Peer.Session, f.Now = keeper.NoSession, time.Unix(1000, 0) }, "session", "this end's clock says 1970-01-01T00:16:40Z"},
		{func(f *Facts) { f.Peer.Allowed = nil }, "routes", "no allowed networks"},
		{func(f *Facts) { f.Routes[0].Through = "" }, "routes", "no route leads to 10.9.0.0/16"},
		{func(f *Facts) { f.Routes[0].Through = "eth1" }, "routes", "through eth1"},
		{func(f *Facts) { f.Probes = nil }, "probe", "--to"},
		{func(f *Facts) { f.Probes[0].To = netip.MustParseAddr("10.8.0.1") }, "probe", "none of the peer's allowed networks"},
		{func(f *Facts) { p := unanswered(f); p.In, p.Arrived = 0, 3 }, "probe", "no progress: 3 packets of the peer came to port 51820"},
		{func(f *Facts) {
			p := unanswered(f)
			p.In, p.Arrived, f.Tunnel.Engine, f.Peer.Name = 0, 3, "kernel", "far"
		}, "probe", "(weir vpn reconnect far)"},
		{func(f *Facts) { p := unanswered(f); p.In, p.Arrived = 0, 1 }, "probe", "one way"},
		{func(f *Facts) { unanswered(f).Arrived = 3 }, "probe", "does not answer, though"},
		{func(f *Facts) { unanswered(f).Out = 0 }, "probe", "nothing left"},
		{func(f *Facts) { unanswered(f).Out = 148 + 32 }, "probe", "nothing left"},
		{func(f *Facts) { unanswered(f).In = 32 }, "probe", "one way"},
		{func(f *Facts) { unanswered(f).In = 92 }, "probe", "one way"},
		{func(f *Facts) { unanswered(f).In = 92 + 32 }, "probe", "one way"},
		{func(f *Facts) { unanswered(f) }, "probe", "does not answer"},
		{func(f *Facts) { f.Probes[0].Largest = 1372 }, "MTU", "set mtu 1372"},
		{func(f *Facts) { f.Tunnel.Fixed, f.Probes[0].Largest = false, 1372 }, "MTU", "measures that again"},
	} {
		f := good()
		c.spoil(f)
		found := false
		for _, said := range Judge(f) {
			if !said.OK && said.Question == c.question {
				found = strings.Contains(said.Answer, c.answer)
			}
		}
		if !found {
			t.Errorf("no answer to %s has %q: %+v", c.question, c.answer, Judge(f))
		}
	}
}

// A handshake that came to its end while nothing was answered spoils what was counted.
func TestCount(t *testing.T) {
	at := time.Unix(1000, 0)
	before := &keeper.Peer{Handshake: at, Sent: 100, Received: 200}
	for _, c := range []struct {
		after    keeper.Peer
		answered int
		want     bool
	}{
		{keeper.Peer{Handshake: at, Sent: 500, Received: 200}, 0, true},
		{keeper.Peer{Handshake: at.Add(time.Second), Sent: 500, Received: 292}, 0, false},
		{keeper.Peer{Handshake: at.Add(time.Second), Sent: 500, Received: 600}, 1, true},
	} {
		p := Probe{Answered: c.answered}
		if got := p.Count(before, &c.after); got != c.want || p.Out != 400 || p.In != c.after.Received-200 {
			t.Errorf("%+v: %v, %+v", c.after, got, p)
		}
	}
	p := Probe{}
	if p.Count(before, &keeper.Peer{Handshake: at, Sent: 7, Received: 7}); p.Out != 0 || p.In != 0 {
		t.Errorf("an engine that began anew has counted %+v", p)
	}
}

func TestLargest(t *testing.T) {
	for limit := 84; limit <= 1500; limit++ {
		asked := 0
		got := largest(1420, 84, func(size int) bool { asked++; return size <= limit })
		if want := min(limit, 1420); got != want || asked > 13 {
			t.Errorf("up to %d bytes go, and the largest is %d after %d questions", limit, got, asked)
		}
	}
}
