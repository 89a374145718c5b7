package client

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

func TestSession(t *testing.T) {
	for _, method := range []ppp.Method{ppp.ByCHAP, ppp.ByMSCHAPv2, ppp.ByPAP, 0} {
		t.Run(method.String(), func(t *testing.T) {
			server := serverConfig()
			server.Ask.Methods = []ppp.Method{method}
			if method == 0 {
				server.Ask.Methods = nil
			}
			l := newLine(t, clientConfig(), server)
			l.await(Up, 2*time.Second)
			l.run(time.Second)
			s := l.client.last
			checkSession(t, s)
			if s.MTU != 1492 || s.MRU != 1492 || s.Method != method || s.ID6 == 0 || s.PeerID6 == 0 || s.ID6 == s.PeerID6 {
				t.Errorf("the session is %+v", s)
			}
			all := l.servers[0].Sessions()
			if len(all) != 1 || all[0].ID != s.ID || all[0].IPv4 != s.IPv4 || all[0].ID6 != s.ID6 || (method != 0) != (all[0].Name == "user@example") {
				t.Errorf("the concentrator has %+v", all)
			}
			l.client.Stop(l.now)
			if e := l.await(Down, 2*time.Second); e.Cause != ppp.Local || e.Retry >= 0 || !e.WasUp {
				t.Errorf("the end is %+v", e)
			}
			l.run(10 * time.Millisecond)
			if n := l.count(ownMAC, discovery.PADT, 0, 0); n != 1 {
				t.Errorf("%d PADTs", n)
			}
			if len(l.servers[0].Sessions()) != 0 || l.count(ownMAC, discovery.Session, ppp.LCP, ppp.TerminateRequest) != 1 {
				t.Error("the concentrator was not told of the end")
			}
		})
	}
}

// TestMethodIsNakked has a concentrator that asks for PAP first, and a client that would
// rather not tell its password.
func TestMethodIsNakked(t *testing.T) {
	server, client := serverConfig(), clientConfig()
	server.Ask.Methods = []ppp.Method{ppp.ByPAP, ppp.ByCHAP}
	client.Prove.Methods = []ppp.Method{ppp.ByCHAP}
	l := newLine(t, client, server)
	if s := l.await(Up, 2*time.Second).Session; s.Method != ppp.ByCHAP {
		t.Errorf("proved by %s", s.Method)
	}
	server.Ask.Methods = []ppp.Method{ppp.ByPAP}
	l = newLine(t, client, server)
	if e := l.await(Down, 30*time.Second); e.Cause != ppp.Clash || e.Text != "the peer asks for PAP, and allowed is CHAP-MD5" {
		t.Errorf("without a way in common: %+v", e)
	}
	if l.count(ownMAC, discovery.Session, ppp.PAP, 1) != 0 {
		t.Error("the password was told")
	}
}

// TestWrongPassword waits long before it tries again, and longer each time.
func TestWrongPassword(t *testing.T) {
	for _, method := range []ppp.Method{ppp.ByCHAP, ppp.ByMSCHAPv2, ppp.ByPAP} {
		server, client := serverConfig(), clientConfig()
		server.Ask.Methods = []ppp.Method{method}
		client.Prove.Secret = ppp.NewSecret("wrong")
		l := newLine(t, client, server)
		first := l.await(Down, 10*time.Second)
		if first.Cause != ppp.Refused || first.WasUp || first.Retry < 4*time.Minute {
			t.Errorf("%s: the end is %+v", method, first)
		}
		second := l.await(Down, first.Retry+10*time.Second)
		if second.Cause != ppp.Refused || second.Retry < 8*time.Minute {
			t.Errorf("%s: the second end is %+v", method, second)
		}
	}
}

// TestRefusedThenPADT has a concentrator that says no and ends the session in one breath. The
// wait is the long one.
func TestRefusedThenPADT(t *testing.T) {
	client := clientConfig()
	client.Prove.Secret = ppp.NewSecret("wrong")
	l := newLine(t, client, serverConfig())
	l.toClient = func(b []byte) [][]byte {
		f, _ := discovery.Parse(b)
		if !onlyPPP(ppp.CHAP, 4)(f) {
			return asIs(b)
		}
		return [][]byte{b, discovery.Terminate(ownMAC, firstMAC, f.SessionID).Append(nil)}
	}
	if e := l.await(Down, time.Second); e.Cause != ppp.Refused || e.Retry < 4*time.Minute {
		t.Errorf("the end is %+v", e)
	}
}

// TestSecretsDoNotShow prints all that there is.
func TestSecretsDoNotShow(t *testing.T) {
	server, client := serverConfig(), clientConfig()
	server.Ask.Methods = []ppp.Method{ppp.ByPAP}
	l := newLine(t, client, server)
	l.await(Up, 2*time.Second)
	coded, err := json.Marshal(client.Prove)
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf("%v %+v %#v %s %q %x %s", client.Prove, client, client, client.Prove.Secret, client.Prove.Secret, client.Prove.Secret, coded)
	said += fmt.Sprintf("%+v", l.events)
	for _, secret := range []string{password, fmt.Sprintf("%x", password)} {
		if strings.Contains(said, secret) {
			t.Errorf("the password shows: %s", said)
		}
	}
	if !strings.Contains(said, "PAP Request 1 from user@example") {
		t.Error("the log does not name the step")
	}
}

// TestLostFrames loses each kind of frame once and twice, to either side.
func TestLostFrames(t *testing.T) {
	kinds := map[string]func(discovery.Frame) bool{
		"PADI": only(discovery.PADI), "PADO": only(discovery.PADO), "PADR": only(discovery.PADR), "PADS": only(discovery.PADS),
		"CHAP challenge": onlyPPP(ppp.CHAP, 1), "CHAP response": onlyPPP(ppp.CHAP, 2), "CHAP success": onlyPPP(ppp.CHAP, 3),
	}
	for _, p := range []ppp.Protocol{ppp.LCP, ppp.IPCP, ppp.IPV6CP} {
		for c := ppp.ConfigureRequest; c <= ppp.ConfigureReject; c++ {
			kinds[p.String()+" "+c.String()] = onlyPPP(p, c)
		}
	}
	for name, drop := range kinds {
		for n := 1; n <= 2; n++ {
			l := newLine(t, clientConfig(), serverConfig())
			l.toServer, l.toClient = loses(n, drop), loses(n, drop)
			l.await(Up, 40*time.Second)
			l.run(20 * time.Second)
			if s := l.client.last; !s.IPv4.IsValid() || s.ID6 == 0 || l.count(ownMAC, discovery.PADI, 0, 0) > n+1 {
				t.Errorf("%d %s lost: %+v\n%s", n, name, s, l.log())
			}
		}
	}
}

// TestDisorder delivers every frame twice, or each second one after the next.
func TestDisorder(t *testing.T) {
	var held []byte
	hows := map[string]func(b []byte) [][]byte{
		"twice": func(b []byte) [][]byte { return [][]byte{b, b} },
		"late": func(b []byte) [][]byte {
			if held == nil {
				held = b
				return nil
			}
			both := [][]byte{b, held}
			held = nil
			return both
		},
	}
	for name, how := range hows {
		held = nil
		l := newLine(t, clientConfig(), serverConfig())
		l.toClient = how
		l.await(Up, 60*time.Second)
		l.toClient = asIs
		l.run(30 * time.Second)
		checkSession(t, l.client.last)
		if n := len(l.servers[0].Sessions()); n != 1 {
			t.Errorf("%s: %d sessions\n%s", name, n, l.log())
		}
	}
}

// TestTwoConcentrators takes the one that is named; without a name the first that gives a
// session.
func TestTwoConcentrators(t *testing.T) {
	second := serverConfig()
	second.MAC, second.Name = secondMAC, "ac-2"
	client := clientConfig()
	client.AC = "ac-2"
	l := newLine(t, client, serverConfig(), second)
	if s := l.await(Up, 2*time.Second).Session; s.Peer != secondMAC || s.AC != "ac-2" {
		t.Errorf("the session is %+v", s)
	}
	if l.count(ownMAC, discovery.PADR, 0, 0) != 1 {
		t.Error("the other was asked too")
	}
	l = newLine(t, clientConfig(), serverConfig(), second)
	l.toServer = loses(1000, func(f discovery.Frame) bool { return f.Code == discovery.PADR && f.To == firstMAC })
	if s := l.await(Up, 30*time.Second).Session; s.Peer != secondMAC {
		t.Errorf("the session is %+v", s)
	}
	if n := l.count(ownMAC, discovery.PADI, 0, 0); n != 1 {
		t.Errorf("%d PADIs: the second offer was not used", n)
	}
}

func TestService(t *testing.T) {
	server, client := serverConfig(), clientConfig()
	server.Services = []string{"gold", "silver"}
	client.Service = "silver"
	newLine(t, client, server).await(Up, 2*time.Second)
	client.Service = "lead"
	l := newLine(t, client, server)
	l.run(10 * time.Second)
	if len(l.servers[0].Sessions()) != 0 || l.count(firstMAC, discovery.PADO, 0, 0) != 0 {
		t.Error("a service that is not offered was given")
	}
	// PADI at 0, 1, 3, 7 s, a tenth more or less.
	if n := l.count(ownMAC, discovery.PADI, 0, 0); n != 4 {
		t.Errorf("%d PADIs within 10 s", n)
	}
}

// TestHostUniq sends what is configured and does not take another client's offer.
func TestHostUniq(t *testing.T) {
	client := clientConfig()
	client.HostUniq = []byte("0a1b")
	l := newLine(t, client, serverConfig())
	l.toClient = func(b []byte) [][]byte { return [][]byte{bytes.Replace(b, []byte("0a1b"), []byte("0a1c"), 1)} }
	l.run(5 * time.Second)
	if l.count(firstMAC, discovery.PADO, 0, 0) == 0 || l.count(ownMAC, discovery.PADR, 0, 0) != 0 {
		t.Errorf("another client's offer was taken\n%s", l.log())
	}
	l.toClient = asIs
	l.await(Up, 10*time.Second)
	for _, f := range l.seen {
		if tags, err := discovery.ParseTags(f.Payload); f.Code == discovery.PADI || f.Code == discovery.PADR {
			if uniq, _ := discovery.Find(tags, discovery.HostUniq); err != nil || string(uniq) != "0a1b" {
				t.Errorf("%s has Host-Uniq %q", f.Code, uniq)
			}
		}
	}
}

// TestLargePackets has RFC 4638 agreed and proven, agreed but not true, and not agreed.
func TestLargePackets(t *testing.T) {
	client := clientConfig()
	client.MTU = 1500
	l := newLine(t, client, serverConfig())
	if s := l.await(Up, 2*time.Second).Session; s.MTU != 1500 || s.MRU != 1500 || l.client.checking {
		t.Errorf("agreed: the session is %+v", s)
	}

	l = newLine(t, client, serverConfig())
	l.toServer = loses(1000, func(f discovery.Frame) bool { return len(f.Payload) > 1494 })
	down := l.await(Down, 10*time.Second)
	if down.WasUp || down.Retry != 0 || !strings.Contains(down.Text, "1500 bytes do not pass") {
		t.Errorf("not true: the end is %+v", down)
	}
	if s := l.await(Up, 10*time.Second).Session; s.MTU != 1492 || s.MRU != 1492 {
		t.Errorf("not true: the session is %+v", s)
	}

	server := serverConfig()
	server.MaxPayload = 0
	l = newLine(t, client, server)
	if s := l.await(Up, 2*time.Second).Session; s.MTU != 1492 || s.MRU != 1492 {
		t.Errorf("not agreed: the session is %+v", s)
	}
}

// TestPADT ends the session at once, and the next one follows at once if the session was
// proven. Others' PADTs count nothing.
func TestPADT(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	first := l.await(Up, 2*time.Second).Session
	l.run(2 * time.Minute)
	for _, foreign := range []discovery.Frame{
		discovery.Terminate(ownMAC, secondMAC, first.ID), discovery.Terminate(ownMAC, firstMAC, first.ID+1),
		discovery.Terminate(discovery.Broadcast, firstMAC, first.ID),
	} {
		l.client.Receive(foreign.Append(nil), l.now)
	}
	l.run(time.Second)
	if l.client.upSince.IsZero() {
		t.Fatal("ended by a PADT of somebody else")
	}
	l.servers[0].Terminate(first.ID, true, l.now)
	if e := l.await(Down, time.Second); e.Cause != ppp.Peer || e.Retry != 0 || !e.WasUp {
		t.Errorf("the end is %+v", e)
	}
	second := l.await(Up, 2*time.Second).Session
	if second.ID == first.ID {
		t.Error("the same session")
	}
	// One that has not lasted waits, longer each time.
	l.servers[0].Terminate(second.ID, true, l.now)
	before := l.await(Down, time.Second).Retry
	for range 4 {
		s := l.await(Up, 30*time.Second).Session
		l.servers[0].Terminate(s.ID, true, l.now)
		e := l.await(Down, time.Second)
		if e.Retry < before*11/10 {
			t.Errorf("waits %s after %s", e.Retry, before)
		}
		before = e.Retry
	}
}

func TestTerminateRequest(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	s := l.await(Up, 2*time.Second).Session
	l.run(2 * time.Minute)
	l.servers[0].Terminate(s.ID, false, l.now)
	if e := l.await(Down, 5*time.Second); e.Cause != ppp.Peer || e.Retry != 0 {
		t.Errorf("the end is %+v", e)
	}
	l.await(Up, 2*time.Second)
}

// TestDeadPeer has a concentrator that falls silent: the echoes find out. Traffic keeps the
// session although no echo is answered.
func TestDeadPeer(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	l.await(Up, 2*time.Second)
	l.toServer = loses(1<<30, func(discovery.Frame) bool { return true })
	l.toClient = l.toServer
	seen := len(l.seen)
	for range 120 {
		l.client.Traffic(l.now)
		l.run(time.Second)
	}
	if l.client.upSince.IsZero() {
		t.Fatal("down although the peer sends")
	}
	for _, f := range l.seen[seen:] {
		if f.From == ownMAC {
			t.Errorf("an echo request although the peer sends: %s", ppp.Describe(f.Payload))
		}
	}
	silent := l.now
	e := l.await(Down, 2*time.Minute)
	if e.Cause != ppp.Dead || l.now.Sub(silent) < 49*time.Second || l.now.Sub(silent) > 61*time.Second {
		t.Errorf("down after %s: %+v", l.now.Sub(silent), e)
	}
	if l.seen[len(l.seen)-1].Code != discovery.PADI && l.count(ownMAC, discovery.PADT, 0, 0) != 1 {
		t.Error("no PADT at the end")
	}
}

// TestEndThatIsLost has the data path see an end that does not arrive here.
func TestEndThatIsLost(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	s := l.await(Up, 2*time.Second).Session
	l.run(2 * time.Minute)
	l.toClient = loses(1, func(f discovery.Frame) bool { return f.Code == discovery.PADT })
	l.servers[0].Terminate(s.ID, true, l.now)
	l.run(time.Second)
	l.client.Ended(Ref{s.Peer, s.ID + 1}, l.now) // another session's
	l.client.Ended(s.Ref, l.now)
	if e := l.await(Down, time.Millisecond); e.Cause != ppp.Peer || e.Retry != 0 {
		t.Errorf("the end is %+v", e)
	}
	l.client.Ended(s.Ref, l.now) // late
	if next := l.await(Up, 2*time.Second).Session; next.ID == s.ID {
		t.Errorf("session 0x%04x again", next.ID)
	}
}

// TestConcentratorRestarts has one that forgets its sessions without a word.
func TestConcentratorRestarts(t *testing.T) {
	server := serverConfig()
	server.EndUnknown = true
	l := newLine(t, clientConfig(), server)
	l.await(Up, 2*time.Second)
	l.run(2 * time.Minute)
	l.servers[0] = ac.New(server)
	l.await(Down, 30*time.Second)
	l.await(Up, 5*time.Second)
}

// TestStaleSession has a client that starts anew after a crash while the concentrator holds
// its old session and refuses another one.
func TestStaleSession(t *testing.T) {
	server := serverConfig()
	server.OnePerMAC, server.EchoMisses = true, 1000
	crash := func(change func(*Config, Ref)) *line {
		l := newLine(t, clientConfig(), server)
		l.await(Up, 2*time.Second)
		ref, _ := l.client.Ref()
		config := clientConfig()
		config.Random = seeded("another life")
		change(&config, ref)
		l.client, l.events = New(config), nil
		l.client.Start(l.now)
		return l
	}
	// It remembers the session and ends it first.
	l := crash(func(c *Config, r Ref) { c.Before = &r })
	l.await(Up, 2*time.Second)
	// It does not, and ends it when the concentrator asks for an echo.
	l = crash(func(*Config, Ref) {})
	l.await(Up, 2*time.Minute)
	if n := len(l.servers[0].Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
	// It must not where the session is another client's.
	l = crash(func(c *Config, _ Ref) { c.Foreign = func(Ref) bool { return true } })
	l.run(2 * time.Minute)
	if l.count(ownMAC, discovery.PADT, 0, 0) != 0 {
		t.Error("a foreign session was ended")
	}
}

// TestLostGoodbye has a line that is dead for a while, so that the concentrator does not learn of the session's end. It has
// to be told before it is asked for another one, which it would refuse.
func TestLostGoodbye(t *testing.T) {
	server := serverConfig()
	server.OnePerMAC, server.EchoEvery = true, 0
	for name, end := range map[string]func(l *line){
		"no answer to echoes": func(l *line) { l.await(Down, 2*time.Minute) },
		"a reconnect":         func(l *line) { l.client.Reconnect(l.now); l.await(Down, time.Minute) },
	} {
		l := newLine(t, clientConfig(), server)
		first := l.await(Up, 2*time.Second).Session
		l.toServer = loses(1<<30, func(discovery.Frame) bool { return true })
		l.toClient = l.toServer
		end(l)
		l.run(3 * time.Second)
		l.toServer, l.toClient = asIs, asIs
		from := len(l.events)
		if next := l.await(Up, 20*time.Second).Session; next.ID == first.ID {
			t.Errorf("%s: session 0x%04x again", name, next.ID)
		}
		for _, e := range l.events[from:] {
			if strings.Contains(e.Text, "gives no session") {
				t.Errorf("%s: %s", name, e.Text)
			}
		}
		if n := len(l.servers[0].Sessions()); n != 1 {
			t.Errorf("%s: %d sessions", name, n)
		}
		seen := len(l.seen)
		l.client.Reconnect(l.now)
		l.await(Up, 20*time.Second)
		for _, f := range l.seen[seen:] {
			if f.Code == discovery.PADT && f.SessionID == first.ID {
				t.Errorf("%s: the session before the last is ended once more", name)
			}
		}
	}
}

// TestFramesBeforePADS has the concentrator's first LCP packet overtake its PADS.
func TestFramesBeforePADS(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	var pads []byte
	l.toClient = func(b []byte) [][]byte {
		f, _ := discovery.Parse(b)
		switch {
		case f.Code == discovery.PADS:
			pads = b
			return nil
		case pads != nil:
			both := [][]byte{b, pads}
			pads = nil
			return both
		}
		return asIs(b)
	}
	l.await(Up, 100*time.Millisecond)
	if l.count(ownMAC, discovery.PADT, 0, 0) != 0 {
		t.Error("the session was ended as unknown")
	}
}

// TestChallengeInSession answers a challenge while the session is up.
func TestChallengeInSession(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	s := l.await(Up, 2*time.Second).Session
	l.run(5 * time.Second)
	l.servers[0].Challenge(s.ID, l.now)
	l.run(30 * time.Second)
	if n := l.count(ownMAC, discovery.Session, ppp.CHAP, 2); n != 2 || l.client.upSince.IsZero() {
		t.Errorf("%d answers\n%s", n, l.log())
	}
}

// TestReconnect makes a new session at once, from a long wait too.
func TestReconnect(t *testing.T) {
	client := clientConfig()
	client.Prove.Secret = ppp.NewSecret("wrong")
	l := newLine(t, client, serverConfig())
	l.await(Down, 10*time.Second)
	l.client.config.Prove.Secret = ppp.NewSecret(password)
	l.client.Reconnect(l.now)
	first := l.await(Up, 2*time.Second).Session
	l.client.Reconnect(l.now)
	if e := l.await(Down, time.Second); e.Retry != 0 || e.Cause != ppp.Local {
		t.Errorf("the end is %+v", e)
	}
	if second := l.await(Up, 2*time.Second).Session; second.ID == first.ID {
		t.Error("the same session")
	}
}

// TestOneFamily has a concentrator without IPv6, then one without IPv4: each rejects the
// protocol, and the session has the other.
func TestOneFamily(t *testing.T) {
	server := serverConfig()
	server.IPv6 = false
	l := newLine(t, clientConfig(), server)
	if s := l.await(Up, 2*time.Second).Session; !s.IPv4.IsValid() || s.ID6 != 0 {
		t.Errorf("the session is %+v", s)
	}
	server = serverConfig()
	server.Local, server.First = netip.Addr{}, netip.Addr{}
	l = newLine(t, clientConfig(), server)
	if s := l.await(Up, 2*time.Second).Session; s.IPv4.IsValid() || s.ID6 == 0 {
		t.Errorf("the session is %+v", s)
	}
	server.IPv6 = false
	l = newLine(t, clientConfig(), server)
	if e := l.await(Down, 10*time.Second); e.Cause != ppp.Clash || e.WasUp {
		t.Errorf("the end is %+v", e)
	}
}

// TestLoopedBack has a line that returns what is sent, as if from a concentrator.
func TestLoopedBack(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	l.toServer = func(b []byte) [][]byte {
		f, _ := discovery.Parse(b)
		if f.Ether != discovery.EtherSession {
			return asIs(b)
		}
		f.To, f.From = ownMAC, firstMAC
		l.client.Receive(f.Append(nil), l.now)
		return nil
	}
	l.toClient = loses(1<<30, func(f discovery.Frame) bool { return f.Ether == discovery.EtherSession })
	if e := l.await(Down, 10*time.Second); e.Cause != ppp.Loop {
		t.Errorf("the end is %+v", e)
	}
}

// TestMRUIsNakked has a peer that wants smaller packets from nobody in particular: a Nak of
// our MRU is taken if it is smaller, and not if it is larger than the line allows.
func TestMRUIsNakked(t *testing.T) {
	for wanted, agreed := range map[uint16]uint16{1400: 1400, 1500: 1492} {
		l := newLine(t, clientConfig(), serverConfig())
		naks := 0
		l.toServer = func(b []byte) [][]byte {
			f, _ := discovery.Parse(b)
			if naks >= 2 || !onlyPPP(ppp.LCP, ppp.ConfigureRequest)(f) {
				return asIs(b)
			}
			naks++
			data := binary.BigEndian.AppendUint16([]byte{1, 4}, wanted)
			nak := ppp.Packet{Code: ppp.ConfigureNak, ID: f.Payload[3], Data: data}.Append([]byte{0xc0, 0x21})
			l.client.Receive(discovery.Frame{To: ownMAC, From: firstMAC, Ether: discovery.EtherSession, SessionID: f.SessionID, Payload: nak}.Append(nil), l.now)
			return nil
		}
		if s := l.await(Up, 20*time.Second).Session; s.MRU != agreed {
			t.Errorf("after a Nak with %d the MRU is %d", wanted, s.MRU)
		}
	}
}

// TestStorm sends PADTs and strange frames of others in a flood; the session stays, and not
// each stray frame is answered.
func TestStorm(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	s := l.await(Up, 2*time.Second).Session
	random := seeded("storm")
	for i := range 20_000 {
		f := discovery.Frame{To: ownMAC, From: secondMAC, Ether: discovery.EtherSession, SessionID: uint16(i % 64), Payload: []byte{0xc0, 0x21, 1, 1, 0, 4}}
		if i%2 == 0 {
			f.Ether, f.Code, f.Payload = discovery.EtherDiscovery, discovery.PADT, nil
		}
		if i%8 == 1 {
			f.SessionID = uint16(i % 32) // again and again
		}
		if i%5 == 0 {
			// From the concentrator, in the session, but nothing that means anything.
			f = discovery.Frame{To: ownMAC, From: firstMAC, Ether: discovery.EtherSession, SessionID: s.ID, Payload: make([]byte, 2+i%60)}
			_, _ = random.Read(f.Payload)
			f.Payload[0], f.Payload[1] = 0xc2, 0x23
		}
		l.client.Receive(f.Append(nil), l.now)
		l.run(time.Millisecond)
	}
	if l.client.upSince.IsZero() || l.client.ref.ID != s.ID {
		t.Errorf("the session is gone\n%s", l.log())
	}
	if n := l.count(ownMAC, discovery.PADT, 0, 0); n < 10 || n > 21 {
		t.Errorf("%d PADTs in 20 s", n)
	}
}
