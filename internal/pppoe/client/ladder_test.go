package client

import (
	"strings"
	"testing"
	"time"

	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// TestLadder has providers fail at each step. The log says at which, why, and what is odd about the provider.
func TestLadder(t *testing.T) {
	// without loses the frames of the concentrator that a function knows
	without := func(lose func(f discovery.Frame) bool) func(*line) {
		return func(l *line) {
			l.toClient = func(b []byte) [][]byte {
				if f, err := discovery.Parse(b); err == nil && lose(f) {
					return nil
				}
				return [][]byte{b}
			}
		}
	}
	of := func(protocol ppp.Protocol) func(*line) {
		return without(func(f discovery.Frame) bool {
			is, _, err := ppp.ParseFrame(f.Payload)
			return f.Ether == discovery.EtherSession && err == nil && is == protocol
		})
	}
	for name, test := range map[string]struct {
		server     func(*ac.Config)
		client     func(*Config)
		spoil      func(*line)
		lasts      time.Duration
		step, why  string // why: a part of it
		quirk      string // a part of one; "": there is none
		mostQuirks int
	}{
		"nobody":          {spoil: without(func(discovery.Frame) bool { return true }), lasts: 30 * time.Second, step: "PADI", why: "no concentrator answers"},
		"another name":    {client: func(c *Config) { c.AC = "ac-2" }, lasts: 30 * time.Second, step: "PADI", why: "is not taken: another name", quirk: "another name", mostQuirks: 1},
		"no PADS":         {spoil: without(func(f discovery.Frame) bool { return f.Code == discovery.PADS }), lasts: 3 * time.Second, step: "PADR"},
		"no PADS, longer": {spoil: without(func(f discovery.Frame) bool { return f.Code == discovery.PADS }), lasts: 3 * time.Minute, step: "PADR", why: "no answer of", quirk: "no answer of", mostQuirks: 1},
		"no LCP":          {spoil: of(ppp.LCP), lasts: 2 * time.Minute, step: "LCP", why: "no answer"},
		"the password":    {client: func(c *Config) { c.Prove.Secret = ppp.NewSecret("another") }, lasts: 20 * time.Second, step: "authentication", why: "refuses name or password"},
		"no verdict":      {spoil: of(ppp.CHAP), lasts: 2 * time.Minute, step: "authentication", why: "terminated by the peer"},
		"no IPv4":         {client: func(c *Config) { c.V6 = nil }, spoil: of(ppp.IPCP), lasts: 2 * time.Minute, step: "IPCP", why: "", quirk: "no IPv4: ", mostQuirks: 1},
		"up":              {lasts: 5 * time.Second, step: ""},
		"no IPv6":         {server: func(c *ac.Config) { c.Faults.MuteIPv6 = true }, lasts: time.Minute, step: "", quirk: "no IPv6: ", mostQuirks: 1},
		"a small MTU":     {server: func(c *ac.Config) { c.Faults.SmallMTU = 1492 }, lasts: time.Minute, step: "", quirk: "bytes do not pass", mostQuirks: 1},
		"two sessions":    {server: func(c *ac.Config) { c.Faults.Double = true }, lasts: 5 * time.Second, step: "", quirk: "a second session", mostQuirks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := serverConfig(), clientConfig()
			client.MTU = 1500
			if test.server != nil {
				test.server(&server)
			}
			if test.client != nil {
				test.client(&client)
			}
			l := newLine(t, client, server)
			if test.spoil != nil {
				test.spoil(l)
			}
			l.run(test.lasts)
			got := NewLadder(l.texts())
			if got.Step != test.step || !strings.Contains(got.Why, test.why) || test.step == "" && got.Why != "" {
				t.Errorf("at %q, %q; want %q, %q\n%s", got.Step, got.Why, test.step, test.why, l.log())
			}
			if len(got.Quirks) > test.mostQuirks || test.quirk != "" && !strings.Contains(strings.Join(got.Quirks, "\n"), test.quirk) {
				t.Errorf("quirks %q, want %q\n%s", got.Quirks, test.quirk, l.log())
			}
		})
	}
}

// TestLadderAfterUp checks that a session that has ended says so, and another one forgets it.
func TestLadderAfterUp(t *testing.T) {
	l := newLine(t, clientConfig(), serverConfig())
	l.await(Up, 5*time.Second)
	for _, s := range l.servers[0].Sessions() {
		l.servers[0].Terminate(s.ID, true, l.now)
	}
	l.await(Down, 5*time.Second)
	if got := NewLadder(l.texts()); got.Step != "session" || got.Why == "" {
		t.Errorf("after a PADT: %+v\n%s", got, l.log())
	}
	l.await(Up, time.Minute)
	if got := NewLadder(l.texts()); got.String() != "" {
		t.Errorf("after the next session: %s", got.String())
	}
}

// texts are those of the events, as the log of the daemon has them.
func (l *line) texts() (all []string) {
	for _, e := range l.events {
		all = append(all, e.String())
	}
	return all
}

// TestLadderOfFamilies has a session without IPv4, and the next one with it: the first says so as long as it lasts.
func TestLadderOfFamilies(t *testing.T) {
	texts := []string{"→ PADI to ff:ff:ff:ff:ff:ff", "← PADS from 02:00:00:00:00:0a: session 0x0001, packets of 1492 bytes", "no IPv4: the peer has no IPCP", "up"}
	if l := NewLadder(texts); len(l.Quirks) != 1 || l.Quirks[0] != "no IPv4: the peer has no IPCP" {
		t.Errorf("the first session: %q", l.Quirks)
	}
	texts = append(texts, "down: stopped", "→ PADI to ff:ff:ff:ff:ff:ff", "← PADS from 02:00:00:00:00:0a: session 0x0002, packets of 1492 bytes", "up")
	if l := NewLadder(texts); len(l.Quirks) != 0 {
		t.Errorf("the next one: %q", l.Quirks)
	}
}

// TestLadderOfRefusal has a session that has ended, and a concentrator that refuses the next one: the refusal is the reason.
func TestLadderOfRefusal(t *testing.T) {
	const refusal = "PADS from 02:00:00:00:00:0a gives no session: AC-System-Error there is one"
	texts := []string{"up", "down: no answer to 5 echo requests", "→ PADI to ff:ff:ff:ff:ff:ff", "← PADO from 02:00:00:00:00:0a \"ac-1\"", "→ PADR to 02:00:00:00:00:0a"}
	if l := NewLadder(texts); l.String() != "at session: no answer to 5 echo requests" {
		t.Errorf("before: %s", l.String())
	}
	if l := NewLadder(append(texts, "← "+refusal)); l.Step != "PADR" || l.Why != refusal {
		t.Errorf("after a refusal: %s", l.String())
	}
}
