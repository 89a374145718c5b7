package foreign_test

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
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/ppp"
	"weir/internal/pppoe/wire"
	"weir/internal/testenv"
)

const (
	name     = "me@provider.example"
	password = "friday-1234-donkey"
)

// patience is what an emulated machine needs, where every step may take a second.
const patience = 60 * time.Second

// link is a wire between a client and a provider:
//
//	home eth0 ---- eth0 provider
func link(t *testing.T) *lab.Lab {
	t.Helper()
	testenv.NeedRoot(t)
	t.Parallel()
	if out, err := exec.Command("modprobe", "-a", "pppoe", "ppp_generic").CombinedOutput(); err != nil {
		testenv.SkipOutside(t, "this kernel has no PPPoE: %v %s", err, bytes.TrimSpace(out))
	}
	topology := lab.Topology{
		Hosts: []lab.Host{{Name: "home"}, {Name: "provider"}},
		Wires: []lab.Wire{{
			{Host: "home", Device: "eth0", MAC: "02:77:65:00:00:01"}, {Host: "provider", Device: "eth0", MAC: "02:77:65:00:00:02"},
		}},
	}
	namespace := fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), os.Getpid())
	l, err := lab.Up(t.Context(), lab.Options{Name: namespace, Topology: topology, Queues: 1})
	t.Cleanup(func() {
		if _, err := lab.Remove(namespace, topology); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"home", "provider"} {
		if _, err := l.Run(t.Context(), host, "ip", "link", "set", "eth0", "mtu", "1508"); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// open opens a device of a host.
func open(t *testing.T, l *lab.Lab, host string) *wire.Wire {
	t.Helper()
	var w *wire.Wire
	err := l.Do(host, func() (err error) {
		w, err = wire.Open("eth0", 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// start starts a program in a host, with a folder of its own for /etc/ppp. What it writes is
// shown if the test fails. The returned function ends it.
func start(t *testing.T, l *lab.Lab, host, folder, command string) (stop func()) {
	t.Helper()
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-c", "mount --bind "+folder+" /etc/ppp && exec "+command)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := l.Start(host, cmd); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(folder, "log"))
			t.Logf("%s: %s\n%s", command, said.Bytes(), log)
		}
	}
	t.Cleanup(stop)
	return stop
}

// folder makes a folder for /etc/ppp with the secret of name.
func folder(t *testing.T, options ...string) string {
	t.Helper()
	dir := t.TempDir()
	secrets := fmt.Sprintf("\"%s\" * \"%s\" *\n", name, password)
	for file, text := range map[string]string{"chap-secrets": secrets, "pap-secrets": secrets, "options": "", "server": strings.Join(options, "\n") + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plugins, err := filepath.Glob("/usr/lib/pppd/*/rp-pppoe.so")
	if err != nil || len(plugins) == 0 {
		t.Fatalf("pppd has no plugin for PPPoE: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(plugins[0], filepath.Join(dir, "plugins", "rp-pppoe.so")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestClient has weir's client make sessions with pppoe-server, which asks by PAP, by
// CHAP and by MS-CHAPv2, and then one with a wrong password.
func TestClient(t *testing.T) {
	testenv.NeedProgram(t, "pppoe-server")
	testenv.NeedProgram(t, "pppd")
	l := link(t)
	common := []string{"ms-dns 192.0.2.53", "ms-dns 192.0.2.54", "+ipv6", "lcp-echo-interval 1", "lcp-echo-failure 5", "debug", "logfile /etc/ppp/log"}
	for _, c := range []struct {
		method  ppp.Method
		option  string
		refused bool
	}{{ppp.ByPAP, "require-pap", false}, {ppp.ByCHAP, "require-chap", false}, {ppp.ByMSCHAPv2, "require-mschap-v2", false}, {ppp.ByMSCHAPv2, "require-mschap-v2", true}, {ppp.ByCHAP, "require-chap", true}} {
		t.Run(fmt.Sprintf("%s refused=%v", c.option, c.refused), func(t *testing.T) {
			dir := folder(t, append(common, c.option)...)
			stop := start(t, l, "provider", dir, "pppoe-server -F -I eth0 -C foreign -L 192.0.2.1 -R 198.51.100.20 -N 4 -O /etc/ppp/server")
			config := client.Config{
				AC: "foreign", MTU: 1500, Prove: ppp.Prove{Name: name, Secret: ppp.NewSecret(password)}, V4: &ppp.V4{AskDNS: true}, V6: &ppp.V6{},
				EchoEvery: time.Second, EchoMisses: 20, Random: rand.Reader,
			}
			if c.refused {
				config.Prove.Secret = ppp.NewSecret("wrong")
			}
			r := dial(t, open(t, l, "home"), config)
			if c.refused {
				if e := r.await(t, client.Down); e.Cause != ppp.Refused || e.Retry < time.Minute {
					t.Errorf("the end is %+v", e)
				}
				r.stop(t)
				stop()
				return
			}
			s := r.full(t)
			if s.Method != c.method || s.IPv4 != netip.MustParseAddr("198.51.100.20") || s.PeerIPv4 != netip.MustParseAddr("192.0.2.1") ||
				len(s.DNS) != 2 || s.DNS[0] != netip.MustParseAddr("192.0.2.53") || s.MTU < 1492 || s.MRU < 1492 {
				t.Errorf("the session is %+v", s)
			}
			time.Sleep(2 * time.Second) // echoes of both
			r.stop(t)
			if e := r.await(t, client.Down); e.Cause != ppp.Local || !e.WasUp || strings.Contains(e.Text, "not answered") {
				t.Errorf("the end is %+v", e)
			}
			r.check(t, "← LCP Echo-Request", "← LCP Echo-Reply", "→ LCP Echo-Reply", "← LCP Terminate-Ack")
			stop()
		})
	}
}

// TestServer has pppd with the kernel's PPPoE make sessions with weir's concentrator.
func TestServer(t *testing.T) {
	testenv.NeedProgram(t, "pppd")
	l := link(t)
	for _, method := range []ppp.Method{ppp.ByPAP, ppp.ByCHAP, ppp.ByMSCHAPv2} {
		t.Run(method.String(), func(t *testing.T) {
			w := open(t, l, "provider")
			server := ac.NewRunning(ac.Config{
				MAC: w.MAC(), Name: "weir", MaxPayload: 1500, IPv6: true, Random: rand.Reader,
				Ask: ppp.Ask{Methods: []ppp.Method{method}, Name: "weir", Secret: func(n string) (ppp.Secret, bool) {
					return ppp.NewSecret(password), n == name
				}},
				Local: netip.MustParseAddr("192.0.2.1"), First: netip.MustParseAddr("198.51.100.10"),
				EchoEvery: time.Second, EchoMisses: 30,
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- server.Run(ctx, w) }()
			dir := folder(t)
			stop := start(t, l, "home", dir, fmt.Sprintf("pppd nodetach noauth noipdefault +ipv6 user %s plugin rp-pppoe.so rp_pppoe_ac weir "+
				"eth0 lcp-echo-interval 1 lcp-echo-failure 30 debug logfile /etc/ppp/log", name))
			info := awaitSession(t, server)
			if info.Name != name || info.IPv4 != netip.MustParseAddr("198.51.100.10") || info.ID6 == 0 || info.MTU < 1492 {
				t.Errorf("the session is %+v", info)
			}
			awaitDevice(t, l, "inet 198.51.100.10 peer 192.0.2.1", "inet6 fe80::")
			time.Sleep(2 * time.Second)
			stop()
			awaitNone(t, server)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func sessions(server *ac.Running) (all []ac.Info) {
	server.Do(func(s *ac.Server, _ time.Time) { all = s.Sessions() })
	return all
}

func awaitSession(t *testing.T, server *ac.Running) ac.Info {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if all := sessions(server); len(all) == 1 && all[0].IPv4.IsValid() && all[0].ID6 != 0 {
			return all[0]
		}
	}
	t.Fatalf("no session is up: %+v", sessions(server))
	return ac.Info{}
}

func awaitNone(t *testing.T, server *ac.Running) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if len(sessions(server)) == 0 {
			return
		}
	}
	t.Errorf("a session is left: %+v", sessions(server))
}

// awaitDevice waits until pppd has set its addresses.
func awaitDevice(t *testing.T, l *lab.Lab, texts ...string) {
	t.Helper()
	var out []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		out, _ = l.Run(t.Context(), "home", "ip", "-o", "address", "show", "dev", "ppp0")
		missing := false
		for _, text := range texts {
			missing = missing || !bytes.Contains(out, []byte(text))
		}
		if !missing {
			return
		}
	}
	t.Errorf("ppp0 has not %v:\n%s", texts, out)
}
