package web

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// network is a lab whose firewall forwards everything.
func network(t *testing.T) (l *lab.Lab, server netip.Addr) {
	t.Helper()
	testenv.NeedRoot(t)
	l, err := lab.Up(t.Context(), lab.Options{Name: "weir-test-web", Neighbours: true})
	t.Cleanup(func() {
		if _, err := lab.Remove("weir-test-web", lab.Topology{}); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Do(lab.FW, func() error { return netif.SetSysctl("net/ipv4/conf/all/forwarding", "1") }); err != nil {
		t.Fatal(err)
	}
	// The server's host has no route to the LAN, whose addresses are translated
	// elsewhere.
	router := l.Addr(lab.FW, "wan0", false)
	if err := l.AddRoute(lab.WAN, "eth0", netip.MustParsePrefix("192.168.1.0/24"), router); err != nil {
		t.Fatal(err)
	}
	return l, l.Addr(lab.WAN, "eth0", false)
}

// checkResult fails unless clients saw what they should.
func checkResult(t *testing.T, r Result, p Plan) {
	t.Helper()
	if why := r.Invalid(); why != "" {
		t.Fatal(why)
	}
	if r.Connections == 0 || r.Transactions < r.Connections || len(r.FirstByte) != r.Transactions || len(r.LastByte) != r.Transactions {
		t.Errorf("%d connections, %d transactions, %d and %d times", r.Connections, r.Transactions, len(r.FirstByte), len(r.LastByte))
	}
	if r.LastByte.Min() <= 0 || r.FirstByte.Median() > r.LastByte.Median() {
		t.Errorf("first byte after %v ms, last after %v ms", r.FirstByte.Median(), r.LastByte.Median())
	}
	if p.TLS != (len(r.Handshake) > 0) || len(r.Whole) == 0 {
		t.Errorf("TLS %v, %d handshakes, %d visits", p.TLS, len(r.Handshake), len(r.Whole))
	}
}

func TestClients(t *testing.T) {
	l, addr := network(t)
	server, err := StartServer(Host{l, lab.WAN}, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := Plan{Clients: 4, PerConnection: 3, Sizes: []int{1024, 100_000},
		RampUp: 50 * time.Millisecond, Sustain: 300 * time.Millisecond, RampDown: 50 * time.Millisecond}
	for _, p.TLS = range []bool{false, true} {
		p.Target = server.Address(p.TLS)
		r, err := Run(t.Context(), Host{l, lab.LAN}, p)
		if err != nil {
			t.Fatal(err)
		}
		checkResult(t, r, p)
	}
	p.TLS, p.Target, p.Rate = false, server.Address(false), 50
	r, err := Run(t.Context(), Host{l, lab.LAN}, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Connections < 5 || r.Connections > 25 {
		t.Errorf("%d connections in 0.3 s at 50 in a second", r.Connections)
	}
	p.Hold, p.Connections, p.Rate = true, 50, 0
	if r, err = Run(t.Context(), Host{l, lab.LAN}, p); err != nil || r.Held != 50 || r.Broken != 0 {
		t.Errorf("held %d of 50: %v %v", r.Held, r.FirstError, err)
	}
}

// TestClientsNoServer: unreachable targets count as broken, and the result is invalid.
func TestClientsNoServer(t *testing.T) {
	l, addr := network(t)
	p := Plan{Target: netip.AddrPortFrom(addr, 9), Clients: 2, PerConnection: 1, Sizes: []int{1}, Sustain: 50 * time.Millisecond}
	r, err := Run(t.Context(), Host{l, lab.LAN}, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Broken == 0 || r.Connections != 0 || !strings.Contains(r.Invalid(), "refused") {
		t.Errorf("%d broken, invalid: %q", r.Broken, r.Invalid())
	}
	if _, err := Run(t.Context(), Host{l, lab.LAN}, Plan{}); err == nil {
		t.Error("an empty plan was run")
	}
}

func TestNginx(t *testing.T) {
	if why := NginxMissing(); why != "" {
		testenv.Skip(t, "%s", why)
	}
	l, addr := network(t)
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // nginx's workers run as another user
		t.Fatal(err)
	}
	n, err := StartNginx(context.Background(), Host{l, lab.WAN}, addr, dir, []int{5000, 300_000})
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{Target: n.Address(), Clients: 2, PerConnection: 2, Sizes: []int{5000, 300_000}, Sustain: 200 * time.Millisecond}
	r, err := Run(t.Context(), Host{l, lab.LAN}, p)
	if err != nil {
		t.Error(err)
	}
	checkResult(t, r, p)
	if !strings.HasPrefix(NginxVersion(), "nginx/") {
		t.Errorf("version %q", NginxVersion())
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestInvalid(t *testing.T) {
	r := Result{Connections: 200_000, Transactions: 200_000, Failed: 2, Broken: 2}
	if why := r.Invalid(); why != "" {
		t.Errorf("0.001 %% is too much: %s", why)
	}
	r.Failed = 3
	if r.Invalid() == "" {
		t.Error("three failures of 200,003 are valid")
	}
	r.Failed, r.Broken = 0, 3
	if r.Invalid() == "" {
		t.Error("three broken connections of 200,003 are valid")
	}
}
