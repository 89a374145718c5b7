package client

import (
	"testing"
	"time"

	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// Concentrators and lines do many things wrong. The client has one session all the same, and keeps it.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		faults ac.Faults
		mtu    uint16 // of the session; 0: 1,500
		plain  bool   // it asks for no more than 1,492
		noIPv6 bool
		noDNS  bool
		within time.Duration
	}{
		"nothing":            {within: time.Second},
		"lost PADS":          {faults: ac.Faults{LosePADS: 3}, within: 10 * time.Second},
		"late refusals":      {faults: ac.Faults{LateNaks: 2, LateNak: 10 * time.Second}, within: time.Minute},
		"half-dead IPv6":     {faults: ac.Faults{MuteIPv6: true}, noIPv6: true, within: 2 * time.Second},
		"a small MTU":        {faults: ac.Faults{SmallMTU: 1492}, mtu: 1492, within: 15 * time.Second},
		"no MRU but 1,500":   {faults: ac.Faults{MRU: 1500}, mtu: 1492, within: 15 * time.Second, plain: true},
		"no MRU but 1,520":   {faults: ac.Faults{MRU: 1520}, within: 15 * time.Second},
		"no name servers":    {faults: ac.Faults{NoDNS: true}, within: 2 * time.Second, noDNS: true},
		"lost echoes":        {faults: ac.Faults{LoseEcho: 3}, within: 10 * time.Second},
		"a storm of PADT":    {faults: ac.Faults{Storm: 20}, within: 2 * time.Second},
		"hostile tags":       {faults: ac.Faults{Hostile: true}, within: 2 * time.Second},
		"duplicate sessions": {faults: ac.Faults{Double: true}, within: 2 * time.Second},
		"a relay":            {faults: ac.Faults{Relay: []byte{1, 2, 3, 4}}, within: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := serverConfig(), clientConfig()
			server.Faults, client.MTU = test.faults, 1500
			if test.plain {
				client.MTU = 0
			}
			l := newLine(t, client, server)
			s := l.await(Up, test.within).Session
			l.run(10 * time.Minute)
			for _, e := range l.events {
				if e.Kind == Changed {
					s = e.Session
				}
				if e.Kind == Down && e.WasUp {
					t.Fatalf("the session has ended: %s\n%s", e.Text, l.log())
				}
			}
			want := test.mtu
			if want == 0 {
				want = 1500
			}
			if s.MTU != want || !s.IPv4.IsValid() || (s.ID6 == 0) != test.noIPv6 || (len(s.DNS) == 0) != test.noDNS {
				t.Errorf("the session is %+v", s)
			}
			if all := l.servers[0].Sessions(); len(all) != 1 || all[0].ID != s.ID {
				t.Errorf("sessions of the concentrator: %+v", all)
			}
			if n := l.count(ownMAC, discovery.PADT, 0, 0); test.faults.Double && n != 1 || n > 2 {
				t.Errorf("%d PADT of the client", n)
			}
			if test.faults.LateNaks > 0 && l.count(firstMAC, discovery.Session, ppp.IPCP, ppp.ConfigureNak) < 3 {
				t.Error("nothing was refused")
			}
		})
	}
}

// TestNameServerTwice has a concentrator that names one server as both, as pppoe-server does if it has one.
func TestNameServerTwice(t *testing.T) {
	server, client := serverConfig(), clientConfig()
	server.DNS[1], client.V6 = server.DNS[0], nil
	l := newLine(t, client, server)
	if s := l.await(Up, 2*time.Second).Session; len(s.DNS) != 1 || s.DNS[0] != server.DNS[0] {
		t.Errorf("name servers: %v", s.DNS)
	}
}
