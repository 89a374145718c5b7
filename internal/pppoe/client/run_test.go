package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/ppp"
	"weir/internal/pppoe/wire"
	"weir/internal/testenv"
)

const secret = "wednesday-0815-mule"

// link is a wire between a client's and a concentrator's network namespace. Its devices have
// room for packets of 1,500 bytes in PPPoE.
//
//	home eth0 ---- provider eth0, with a0 and a1 on it, two more Ethernet addresses
func link(t *testing.T) *lab.Lab {
	t.Helper()
	testenv.NeedRoot(t)
	topology := lab.Topology{
		Hosts: []lab.Host{{Name: "home"}, {Name: "provider"}},
		Wires: []lab.Wire{{
			{Host: "home", Device: "eth0", MAC: "02:77:65:00:00:01"}, {Host: "provider", Device: "eth0", MAC: "02:77:65:00:00:02"},
		}},
	}
	name := fmt.Sprintf("pppoe-%d", os.Getpid())
	l, err := lab.Up(t.Context(), lab.Options{Name: name, Topology: topology, Queues: 1})
	t.Cleanup(func() {
		if _, err := lab.Remove(name, topology); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, l, "home", "ip", "link", "set", "eth0", "mtu", "1508")
	run(t, l, "provider", "ip", "link", "set", "eth0", "mtu", "1508")
	for _, device := range []string{"a0", "a1"} {
		run(t, l, "provider", "ip", "link", "add", device, "link", "eth0", "type", "macvlan", "mode", "bridge")
		run(t, l, "provider", "ip", "link", "set", device, "up")
	}
	return l
}

func run(t *testing.T, l *lab.Lab, host string, words ...string) {
	t.Helper()
	if _, err := l.Run(t.Context(), host, words[0], words[1:]...); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, l *lab.Lab, host, device string) *wire.Wire {
	t.Helper()
	var w *wire.Wire
	err := l.Do(host, func() (err error) {
		w, err = wire.Open(device, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func serverConfig(methods ...ppp.Method) ac.Config {
	return ac.Config{
		Name: "ac", MaxPayload: 1500, IPv6: true, Random: rand.Reader,
		Ask:   ppp.Ask{Methods: methods, Name: "ac", Secret: func(name string) (ppp.Secret, bool) { return ppp.NewSecret(secret), name == "me" }},
		Local: netip.MustParseAddr("192.0.2.1"), First: netip.MustParseAddr("198.51.100.10"), DNS: []netip.Addr{netip.MustParseAddr("192.0.2.53")},
	}
}

// serve runs a concentrator until stop or the end of the test.
func serve(t *testing.T, l *lab.Lab, device string, config ac.Config) (server *ac.Running, stop func()) {
	t.Helper()
	w := open(t, l, "provider", device)
	config.MAC = w.MAC()
	server = ac.NewRunning(config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, w) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
	})
	t.Cleanup(stop)
	return server, stop
}

func clientConfig() client.Config {
	return client.Config{
		Prove: ppp.Prove{Name: "me", Secret: ppp.NewSecret(secret)}, V4: &ppp.V4{AskDNS: true}, V6: &ppp.V6{},
		Restart: 300 * time.Millisecond, EchoEvery: 300 * time.Millisecond, EchoMisses: 3, Random: rand.Reader,
	}
}

// running is a client that runs.
type running struct {
	t      *testing.T
	events chan client.Event
	stop   func()
	mutex  sync.Mutex
	lines  []string
}

func dial(t *testing.T, l *lab.Lab, g *client.Group, config client.Config) *running {
	t.Helper()
	w := open(t, l, "home", "eth0")
	r := &running{t: t, events: make(chan client.Event, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- client.Run(ctx, w, g, config, nil, func(e client.Event) {
			r.mutex.Lock()
			r.lines = append(r.lines, fmt.Sprintf("%d %s", e.Kind, e.Text))
			r.mutex.Unlock()
			if e.Kind != client.Note {
				r.events <- e
			}
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
	})
	t.Cleanup(r.stop)
	return r
}

// await waits for an event. A wire that loses a fifth of all frames may need several tries of several seconds each.
func (r *running) await(kind client.Kind) client.Event {
	r.t.Helper()
	end := time.After(90 * time.Second)
	for {
		select {
		case e := <-r.events:
			if e.Kind == kind {
				return e
			}
		case <-end:
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.t.Fatalf("no event %d:\n%s", kind, strings.Join(r.lines, "\n"))
		}
	}
}

// full awaits a session with both families.
func (r *running) full() client.Session {
	r.t.Helper()
	s := r.await(client.Up).Session
	for !s.IPv4.IsValid() || s.ID6 == 0 {
		s = r.await(client.Changed).Session
	}
	return s
}

// TestOnAWire makes sessions between two namespaces, and has tshark look at every frame.
func TestOnAWire(t *testing.T) {
	l := link(t)
	capture := record(t, l)
	for _, method := range []ppp.Method{ppp.ByPAP, ppp.ByCHAP} {
		server, stop := serve(t, l, "eth0", serverConfig(method))
		config := clientConfig()
		config.MTU = 1500
		c := dial(t, l, &client.Group{}, config)
		s := c.full()
		if s.Method != method || s.MTU != 1500 || s.MRU != 1500 || s.IPv4 != netip.MustParseAddr("198.51.100.10") || len(s.DNS) != 1 {
			t.Errorf("%s: the session is %+v", method, s)
		}
		time.Sleep(time.Second) // echoes
		c.stop()
		if e := c.await(client.Down); e.Cause != ppp.Local || !e.WasUp {
			t.Errorf("%s: the end is %+v", method, e)
		}
		server.Do(func(s *ac.Server, _ time.Time) {
			if n := len(s.Sessions()); n != 0 {
				t.Errorf("%s: the concentrator has %d sessions", method, n)
			}
		})
		stop()
	}
	capture(t, "Echo Request", "Configuration Request", "Termination Request", "Active Discovery Terminate")
}

// record captures all frames at home. The returned function ends it and has tshark read them:
// nothing may be malformed, and each text has to be in it.
func record(t *testing.T, l *lab.Lab) func(t *testing.T, texts ...string) {
	t.Helper()
	tcpdump, tshark := testenv.NeedProgram(t, "tcpdump"), testenv.NeedProgram(t, "tshark")
	file := filepath.Join(t.TempDir(), "session.pcap")
	cmd := exec.Command(tcpdump, "-i", "eth0", "-U", "-s", "0", "-Z", "root", "-w", file)
	cmd.Stderr = os.Stderr
	if err := l.Start("home", cmd); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return func(t *testing.T, texts ...string) {
		t.Helper()
		time.Sleep(200 * time.Millisecond)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(tshark, "-r", file, "-V").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if !bytes.Contains(said, []byte(text)) {
				t.Errorf("tshark has seen no %s", text)
			}
		}
		bad, err := exec.Command(tshark, "-r", file, "-Y", "_ws.malformed || _ws.expert.severity >= 0x600000", "-V").Output()
		if err != nil || len(bad) > 0 {
			t.Errorf("tshark complains: %v\n%s", err, bad)
		}
	}
}

// TestWireFaults has a wrong password, two concentrators, one that starts anew, and a wire
// that loses a fifth of the frames.
func TestWireFaults(t *testing.T) {
	l := link(t)
	t.Run("wrong password", func(t *testing.T) {
		serve(t, l, "eth0", serverConfig(ppp.ByCHAP))
		config := clientConfig()
		config.Prove.Secret = ppp.NewSecret("wrong")
		c := dial(t, l, &client.Group{}, config)
		if e := c.await(client.Down); e.Cause != ppp.Refused || e.Retry < time.Minute {
			t.Errorf("the end is %+v", e)
		}
	})
	t.Run("two concentrators", func(t *testing.T) {
		first, second := serverConfig(ppp.ByCHAP), serverConfig(ppp.ByCHAP)
		first.Name, second.Name = "one", "two"
		serve(t, l, "a0", first)
		serve(t, l, "a1", second)
		for _, name := range []string{"one", "two"} {
			config := clientConfig()
			config.AC = name
			c := dial(t, l, &client.Group{}, config)
			if s := c.full(); s.AC != name {
				t.Errorf("asked for %q, the session is %+v", name, s)
			}
			c.stop()
		}
	})
	t.Run("restart", func(t *testing.T) {
		_, stop := serve(t, l, "eth0", serverConfig(ppp.ByCHAP))
		c := dial(t, l, &client.Group{}, clientConfig())
		before := c.full()
		stop()
		serve(t, l, "eth0", serverConfig(ppp.ByCHAP))
		if e := c.await(client.Down); e.Cause != ppp.Dead {
			t.Errorf("the end is %+v", e)
		}
		if after := c.full(); after.ID == before.ID {
			t.Error("the same session")
		}
	})
	t.Run("several sessions", func(t *testing.T) {
		server, _ := serve(t, l, "eth0", serverConfig(ppp.ByCHAP))
		group := &client.Group{}
		seen := map[netip.Addr]bool{}
		var all []*running
		for range 8 {
			all = append(all, dial(t, l, group, clientConfig()))
		}
		for _, c := range all {
			seen[c.full().IPv4] = true
		}
		time.Sleep(3 * time.Second)
		server.Do(func(s *ac.Server, _ time.Time) {
			if n := len(s.Sessions()); n != 8 || len(seen) != 8 {
				t.Errorf("%d sessions with %d addresses", n, len(seen))
			}
		})
	})
	t.Run("loss", func(t *testing.T) {
		for _, host := range []string{"home", "provider"} {
			run(t, l, host, "nft", "add table netdev lossy; add chain netdev lossy in { type filter hook ingress device eth0 priority 0; }; "+
				"add rule netdev lossy in numgen random mod 5 0 drop")
		}
		server := serverConfig(ppp.ByCHAP)
		server.Restart = 300 * time.Millisecond
		serve(t, l, "eth0", server)
		for range 3 {
			config := clientConfig()
			config.EchoMisses = 10
			c := dial(t, l, &client.Group{}, config)
			c.full()
			c.stop()
		}
	})
}
