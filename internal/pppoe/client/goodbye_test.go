package client

import (
	"testing"
	"time"

	"weir/internal/pppoe/discovery"
)

// TestGoodbyeOfAnother loses the end of a session, whose number another client on the interface has got since.
func TestGoodbyeOfAnother(t *testing.T) {
	config, taken := clientConfig(), Ref{}
	config.Foreign = func(r Ref) bool { return r == taken }
	server := serverConfig()
	server.EchoEvery = 0
	l := newLine(t, config, server)
	first := l.await(Up, 2*time.Second).Session
	l.toServer = loses(1<<30, func(discovery.Frame) bool { return true })
	l.toClient = l.toServer
	l.client.Reconnect(l.now)
	l.await(Down, time.Minute)
	l.run(3 * time.Second)
	l.toServer, l.toClient = asIs, asIs
	taken = first.Ref
	seen := len(l.seen)
	l.await(Up, 20*time.Second)
	for _, f := range l.seen[seen:] {
		if f.Code == discovery.PADT {
			t.Errorf("the session of another client is ended: %v", f)
		}
	}
}
