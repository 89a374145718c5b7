package client

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// TestResume has a second process go on with the session of a first that is gone, through
// JSON. The concentrator notices nothing; what it asks is answered, and a challenge too.
func TestResume(t *testing.T) {
	for name, change := range map[string]func(*ac.Config){
		"both": func(*ac.Config) {}, "IPv4": func(c *ac.Config) { c.IPv6 = false },
		"IPv6": func(c *ac.Config) { c.Local, c.First = netip.Addr{}, netip.Addr{} },
	} {
		server := serverConfig()
		change(&server)
		config := clientConfig()
		config.MTU = 1500
		l := newLine(t, config, server)
		l.await(Up, 2*time.Second)
		l.run(25 * time.Second)
		before := l.client.last
		saved, ok := l.client.Save()
		coded, err := json.Marshal(saved)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		var read Saved
		if err := json.Unmarshal(coded, &read); err != nil {
			t.Fatal(err)
		}
		config.Resume, config.Random = &read, seeded("another life")
		l.client, l.events, l.seen = New(config), nil, nil
		l.client.Start(l.now)
		after := l.await(Up, time.Millisecond).Session
		if !same(before, after) || after.AC != before.AC || after.Local != before.Local {
			t.Errorf("%s: %+v became %+v", name, before, after)
		}
		l.servers[0].Challenge(after.ID, l.now)
		l.run(3 * time.Minute)
		if l.client.upSince.IsZero() || len(l.events) == 0 || l.count(ownMAC, discovery.Session, ppp.LCP, ppp.EchoRequest) < 10 ||
			l.count(ownMAC, discovery.Session, ppp.LCP, ppp.ConfigureRequest) != 0 || l.count(ownMAC, discovery.PADI, 0, 0) != 0 ||
			l.count(firstMAC, discovery.Session, ppp.CHAP, 3) != 1 {
			t.Errorf("%s: the session has not gone on\n%s", name, l.log())
		}
		for _, f := range l.seen {
			if f.From == ownMAC && isPPP(f, ppp.LCP, ppp.EchoRequest) {
				if id := f.Payload[3]; id != saved.Link.Echo+1 {
					t.Errorf("%s: the first echo request is %d after %d", name, id, saved.Link.Echo)
				}
				break
			}
		}
		l.client.Stop(l.now)
		l.await(Down, 2*time.Second)
		if n := len(l.servers[0].Sessions()); n != 0 {
			t.Errorf("%s: %d sessions are left", name, n)
		}
	}
}

// TestResumeWhatIsGone has the concentrator forget the session while no process lives.
func TestResumeWhatIsGone(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	l.await(Up, 2*time.Second)
	l.run(time.Second)
	saved, _ := l.client.Save()
	l.servers[0] = ac.New(serverConfig())
	config := clientConfig()
	config.Resume = &saved
	l.client, l.events = New(config), nil
	l.client.Start(l.now)
	l.await(Up, time.Millisecond)
	if e := l.await(Down, 61*time.Second); e.Cause != ppp.Dead {
		t.Errorf("the end is %+v", e)
	}
	l.await(Up, 5*time.Second)
}
