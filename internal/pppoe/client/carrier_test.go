package client

import (
	"testing"
	"time"

	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// cut has nothing pass, and the client be told of it, or of the end of it.
func (l *line) cut(is bool) {
	l.toServer, l.toClient = asIs, asIs
	if is {
		l.toServer = loses(1<<30, func(discovery.Frame) bool { return true })
		l.toClient = l.toServer
	}
	l.client.Carrier(!is, l.now)
}

// A driver may tell the carrier wrongly: then the session goes on with the first answer.
func TestWrongCarrier(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	l.await(Up, 2*time.Second)
	l.run(5 * time.Second)
	l.client.Carrier(false, l.now)
	l.await(Held, time.Millisecond)
	l.await(Changed, 2*time.Minute)
}

// An answer that was on its way when the line went dark again says nothing.
func TestCarrierComesAndGoes(t *testing.T) {
	server := serverConfig()
	server.EchoEvery = 0
	l := newLine(t, clientConfig(), server)
	l.await(Up, 2*time.Second)
	l.client.Carrier(false, l.now)
	l.await(Held, time.Millisecond)
	l.run(5 * time.Second)
	l.client.Carrier(true, l.now) // an echo request leaves
	l.client.Carrier(false, l.now)
	from := len(l.events)
	l.run(time.Second)
	for _, e := range l.events[from:] {
		if e.Kind == Changed {
			t.Errorf("the session goes on: %+v", e)
		}
	}
}

// A session is held while the line has no carrier, and goes on if the concentrator has not noticed.
func TestCarrier(t *testing.T) {
	server := serverConfig()
	server.EchoEvery = 0
	l := newLine(t, clientConfig(), server)
	s := l.await(Up, 2*time.Second).Session
	l.run(5 * time.Second)
	l.cut(true)
	held := l.await(Held, time.Millisecond).Session
	if held.Ref != s.Ref {
		t.Errorf("held is %+v", held)
	}
	l.client.Carrier(false, l.now)
	l.run(30 * time.Second)
	from := len(l.seen)
	l.cut(false)
	back := l.now
	if e := l.await(Changed, time.Second); !same(e.Session, held) {
		t.Errorf("it goes on as %+v", e)
	}
	if took := l.now.Sub(back); took > 10*time.Millisecond {
		t.Errorf("it goes on after %v", took)
	}
	l.client.Carrier(true, l.now)
	l.run(2 * time.Minute)
	for i, e := range l.events {
		if e.Kind == Down || e.Kind == Held && i > 0 && l.events[i-1].Kind == Held {
			t.Errorf("then comes %+v", e)
		}
	}
	requests := 0
	for _, f := range l.seen[from:] {
		if f.From == ownMAC && ppp.Describe(f.Payload) != "" {
			requests++
		}
	}
	if requests > 14 { // one at once, then one each 10 s
		t.Errorf("in two minutes the client has sent %d frames", requests)
	}
}

// A session that is gone when the carrier comes back is found out soon, and what waits begins at once.
func TestCarrierBack(t *testing.T) {
	server := serverConfig()
	server.OnePerMAC = true
	l := newLine(t, clientConfig(), server)
	first := l.await(Up, 2*time.Second).Session
	l.cut(true)
	l.run(20 * time.Second)
	l.servers[0] = ac.New(server)
	l.cut(false)
	back := l.now
	if e := l.await(Down, time.Minute); e.Cause != ppp.Dead {
		t.Errorf("down: %+v", e)
	}
	if next := l.await(Up, time.Minute).Session; next.Ref == first.Ref || l.now.Sub(back) > 10*time.Second {
		t.Errorf("another session after %v", l.now.Sub(back))
	}
	l.cut(true)
	l.await(Down, 2*time.Minute)
	l.run(10 * time.Minute)
	l.cut(false)
	back = l.now
	if l.await(Up, time.Minute); l.now.Sub(back) > time.Second {
		t.Errorf("a cable that was out for long: a session after %v", l.now.Sub(back))
	}
}

// What the data path has received may be from before the darkness. It is no answer, and does not slow the questions down.
func TestCarrierTraffic(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	l.await(Up, 2*time.Second)
	l.cut(true)
	l.run(time.Second)
	l.client.Carrier(true, l.now)
	from := len(l.events)
	l.client.Traffic(l.now)
	l.run(time.Second)
	for _, e := range l.events[from:] {
		if e.Kind == Changed {
			t.Errorf("the session goes on: %+v", e)
		}
	}
	l.toServer, l.toClient = asIs, asIs
	l.await(Changed, 2*time.Second)
}

// A switch with spanning tree has a carrier long before it forwards. The session goes on then, as the concentrator still has it.
func TestCarrierBeforeTheLine(t *testing.T) {
	server := serverConfig()
	server.EchoEvery = 0
	l := newLine(t, clientConfig(), server)
	first := l.await(Up, 2*time.Second).Session
	l.run(5 * time.Second)
	l.cut(true)
	l.run(3 * time.Second)
	l.client.Carrier(true, l.now)
	l.run(30 * time.Second)
	from := len(l.seen)
	l.toServer, l.toClient = asIs, asIs
	back := l.now
	if e := l.await(Changed, 10*time.Second); e.Session.Ref != first.Ref || l.now.Sub(back) > 1100*time.Millisecond {
		t.Errorf("it goes on after %v as %+v", l.now.Sub(back), e)
	}
	l.run(2 * time.Minute)
	for _, f := range l.seen[from:] {
		if f.From == ownMAC && f.Code != discovery.Session {
			t.Errorf("then the client sends a %s", f.Code)
		}
	}
	if l.count(ownMAC, discovery.PADT, 0, 0)+l.count(ownMAC, discovery.PADR, 0, 0) != 1 {
		t.Error("the client has ended a session, or asked for another one")
	}
}

// If the concentrator has lost it meanwhile, there is another one soon after the line carries packets.
func TestCarrierBeforeTheLineBack(t *testing.T) {
	for _, offers := range []bool{true, false} {
		server := serverConfig()
		l := newLine(t, clientConfig(), server)
		l.await(Up, 2*time.Second)
		l.cut(true)
		l.run(3 * time.Second)
		l.client.Carrier(true, l.now)
		l.run(20 * time.Second)
		l.servers[0] = ac.New(server)
		l.toServer, l.toClient = asIs, asIs
		if !offers { // until the client has said that its session is over
			l.toClient = func(b []byte) [][]byte {
				if l.count(ownMAC, discovery.PADT, 0, 0) == 0 {
					return nil
				}
				return asIs(b)
			}
		}
		back, most := l.now, 10*time.Second
		if !offers {
			most = returnPatience
		}
		if e := l.await(Down, 2*time.Minute); e.Cause != ppp.Dead || !e.WasUp {
			t.Errorf("down: %+v", e)
		}
		if l.await(Up, time.Minute); l.now.Sub(back) > most {
			t.Errorf("offers %t: another session after %v", offers, l.now.Sub(back))
		}
	}
}

// A client that goes on with a session while the line has no carrier does not say that it is up.
func TestStartWithoutCarrier(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	s := l.await(Up, 2*time.Second).Session
	l.run(time.Second)
	saved, ok := l.client.Save()
	if !ok {
		t.Fatal("there is nothing to go on with")
	}
	config := clientConfig()
	config.Resume, config.Dark = &saved, true
	l.client, l.events = New(config), nil
	l.cut(true)
	l.client.Start(l.now)
	if e := l.await(Held, time.Millisecond); e.Session.Ref != s.Ref {
		t.Errorf("held: %+v", e.Session)
	}
	l.run(5 * time.Second)
	l.cut(false)
	if e := l.await(Changed, time.Second); e.Session.Ref != s.Ref {
		t.Errorf("it goes on as %+v", e.Session)
	}
	for _, e := range l.events {
		if e.Kind == Up || e.Kind == Down {
			t.Errorf("there was %+v", e)
		}
	}
}

// A carrier that is told late says nothing against a session that is up: no other one is asked for.
func TestCarrierIsToldLate(t *testing.T) {
	config := clientConfig()
	config.Dark = true
	l := newLine(t, config, serverConfig())
	l.await(Up, 2*time.Second)
	l.run(time.Second)
	from := len(l.seen)
	l.client.Carrier(true, l.now)
	l.toServer = loses(1<<30, func(f discovery.Frame) bool { return f.Code == discovery.PADI }) // it offers none to one that has a session
	l.run(time.Minute)
	for _, f := range l.seen[from:] {
		if f.Ether == discovery.EtherDiscovery {
			t.Fatalf("there was %+v", f)
		}
	}
}

// A line that goes dark again does so before its session has answered. The session has as long as in any other darkness, also
// after an offer of a session.
func TestCarrierFlaps(t *testing.T) {
	for _, offer := range []bool{false, true} {
		for _, lit := range []time.Duration{100 * time.Millisecond, returnPatience - time.Second} {
			server := serverConfig()
			server.EchoEvery = 0
			l := newLine(t, clientConfig(), server)
			s := l.await(Up, 2*time.Second).Session
			l.run(5 * time.Second)
			l.cut(true)
			l.run(time.Second)
			l.client.Carrier(true, l.now)
			l.run(lit)
			if offer {
				l.client.link.Hurry(l.now)
			}
			l.client.Carrier(false, l.now)
			from := len(l.events)
			l.run(30 * time.Second)
			for _, e := range l.events[from:] {
				if e.Kind == Down {
					t.Errorf("after %v with a carrier, offer %t: %s", lit, offer, e.Text)
				}
			}
			if ref, open := l.client.Ref(); !open || ref != s.Ref {
				continue
			}
			l.cut(false)
			l.await(Changed, time.Second)
		}
	}
}
