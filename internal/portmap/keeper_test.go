package portmap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/portmap/mapping"
)

// rules stand for the daemon.
type rules struct {
	mu     sync.Mutex
	text   string // of the anchor
	loads  int
	called bool
	failed error

	redirects []mapping.Redirect
}

func (r *rules) Redirects(path, on string) ([]mapping.Redirect, error) {
	if path != "portmap" || on != "wan0" {
		return nil, errors.New("another anchor, or another interface")
	}
	return r.redirects, nil
}

func (r *rules) Load(_ context.Context, _, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.text = text
		r.loads++
	}
	return r.failed
}

func (r *rules) Flush(ctx context.Context, path string, _ bool) error { return r.Load(ctx, path, "") }

func (r *rules) Loaded(context.Context, string) (int, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text, "\n"), r.called, r.failed
}

func (*rules) Connection(mapping.Protocol, netip.AddrPort, netip.AddrPort) (netip.AddrPort, time.Duration, bool, error) {
	return netip.AddrPort{}, 0, false, nil
}

type bench struct {
	*testing.T
	rules *rules
	now   int64
	state string
	keeper
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, rules: &rules{called: true}, now: 1000, state: filepath.Join(t.TempDir(), "state")}
	b.begin()
	return b
}

// begin starts a keeper on what the last one has left.
func (b *bench) begin() {
	b.Helper()
	b.keeper = keeper{
		Server: &Server{
			Interfaces: mapping.Interfaces{WAN: "wan0", LAN: []string{"lan0"}}, Limits: mapping.Limits{All: 100, Host: 10}, Anchor: "portmap",
			Permissions: mapping.DefaultPermissions(), State: b.state, Rules: b.rules, Log: slog.New(slog.DiscardHandler),
		},
		clock: func() int64 { return b.now }, taken: func(mapping.Protocol, uint16) bool { return false }, jobs: make(chan job),
	}
	s, err := readState(b.state, true)
	if err != nil {
		b.Fatal(err)
	}
	if err := b.start(b.Context(), s); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) add(port uint16, ends int64) func(*mapping.Table) error {
	return func(t *mapping.Table) error {
		_, err := t.Add(&mapping.Request{By: mapping.PCP, Protocol: mapping.TCP, Internal: netip.AddrPortFrom(netip.MustParseAddr("192.168.1.10"), port), External: port, Lease: mapping.Lease{Ends: ends}})
		return err
	}
}

// do does jobs in one batch.
func (b *bench) do(do ...func(*mapping.Table) error) (errs []error) {
	var jobs []job
	for _, one := range do {
		jobs = append(jobs, job{one, make(chan error, 1)})
	}
	b.batch(jobs)
	for _, j := range jobs {
		errs = append(errs, <-j.done)
	}
	return errs
}

// has compares the external ports in force, in the table and in the anchor.
func (b *bench) has(ports ...string) {
	b.Helper()
	all := b.table.Load().All()
	if len(all) != len(ports) || strings.Count(b.rules.text, "pass in ") != len(ports) {
		b.Errorf("mappings %v, rules\n%s", all, b.rules.text)
	}
	for _, port := range ports {
		if !strings.Contains(b.rules.text, " port "+port+" tag portmap rdr-to 192.168.1.10 port "+port+"\n") {
			b.Errorf("port %s is not in\n%s", port, b.rules.text)
		}
	}
}

// Requests that come together are one load; of those, each has its own answer.
func TestBatch(t *testing.T) {
	b := newBench(t)
	loads := b.rules.loads
	errs := b.do(b.add(2000, 2000), b.add(22, 2000), b.add(2001, 3000))
	if errs[0] != nil || !errors.Is(errs[1], mapping.ErrNotAllowed) || errs[2] != nil || b.rules.loads != loads+1 {
		t.Errorf("%v, %d loads", errs, b.rules.loads-loads)
	}
	b.has("2000", "2001")
	if b.do(b.add(2000, 2500)); b.rules.loads != loads+1 {
		t.Error("a renewal loads rules")
	}
}

// If the daemon does not take the rules, nobody is told that a port is open.
func TestLoadFails(t *testing.T) {
	b := newBench(t)
	b.do(b.add(2000, 2000))
	b.rules.failed = io.ErrUnexpectedEOF
	if errs := b.do(b.add(2001, 2000)); !errors.Is(errs[0], errNotLoaded) {
		t.Errorf("%v", errs)
	}
	b.has("2000")
	b.now = 2000
	if pause := b.batch(nil); pause != retryPause {
		t.Errorf("an expiry that fails is tried again after %v", pause)
	}
	b.rules.failed = nil
	b.batch(nil)
	b.has()
}

// A new keeper goes on with the mappings and the epoch of the last one; without its file, or
// after a boot, both begin anew.
func TestRestart(t *testing.T) {
	b := newBench(t)
	b.now = uptime()
	since := b.since.Load()
	b.do(b.add(2000, b.now+100), b.add(2001, b.now+10))
	b.rules.text = "" // somebody has flushed the anchor meanwhile
	b.now += 10
	b.begin()
	b.has("2000")
	if b.since.Load() != since {
		t.Errorf("the epoch began at %d, now at %d", since, b.since.Load())
	}
	for _, text := range []string{`{"boot": "another", "since": 1, "mappings": [{}]}`, ""} {
		path := filepath.Join(t.TempDir(), "state")
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := readState(path, true); err != nil || len(s.Mappings) != 0 || s.Since < b.now-10 {
			t.Errorf("%q is read as %+v, %v", text, s, err)
		}
	}
	b.state = filepath.Join(t.TempDir(), "none")
	b.begin()
	b.has()
}

// A file that is there still after a boot opens the same ports again, for the time that they have
// left by the clock; hosts learn of the boot by the epoch.
func TestBoot(t *testing.T) {
	wall := time.Now().Unix()
	lease := func(ends int64) string { return fmt.Sprintf(`{"ends": %d, "nonce": [1,0,0,0,0,0,0,0,0,0,0,0]}`, ends) }
	one := func(port int, upnp, pcp string) string {
		return fmt.Sprintf(`{"protocol": 6, "external": %d, "internal": "192.168.1.10:%d", "leases": [%s, %s]}`, port, port, upnp, pcp)
	}
	const at = 500_000
	text := fmt.Sprintf(`{"boot": "another", "since": 1, "at": %d, "wall": %d, "mappings": [%s]}`, at, wall-100,
		strings.Join([]string{one(2000, `{"nonce": [0,0,0,0,0,0,0,0,0,0,0,0]}`, "null"), one(2001, "null", lease(at+1000)), one(2002, "null", lease(at+99)), one(2003, lease(at+50), lease(at+5000))}, ", "))
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readState(path, true)
	if err != nil || s.Since < uptime()-10 {
		t.Fatalf("%+v, %v", s, err)
	}
	var got []string
	for _, m := range s.Mappings {
		for by, l := range m.Leases {
			if l != nil {
				got = append(got, fmt.Sprint(m.External, by, l.Ends != 0 && l.Ends > uptime()+800, l.Nonce[0]))
			}
		}
	}
	if want := []string{"2000 0 false 0", "2001 1 true 1", "2003 1 true 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s, err := readState(path, false); err != nil || len(s.Mappings) != 0 {
		t.Errorf("while no server runs: %+v, %v", s, err)
	}
}

// Ports that rules of the file send on are not given away.
func TestRedirects(t *testing.T) {
	b := newBench(t)
	b.rules.redirects = []mapping.Redirect{{Protocol: mapping.TCP, Ports: mapping.Ports{First: 2000, Last: 2010}}, {Protocol: mapping.UDP, Ports: mapping.Ports{First: 2020, Last: 2020}}}
	add := func(p mapping.Protocol, port uint16, exactly bool) func(*mapping.Table) error {
		return func(t *mapping.Table) error {
			m, err := t.Add(&mapping.Request{By: mapping.PCP, Protocol: p, Internal: netip.AddrPortFrom(netip.MustParseAddr("192.168.1.10"), port), External: port, Exactly: exactly, Lease: mapping.Lease{Ends: 5000}})
			if err == nil && b.own(p, m.External) {
				b.Errorf("port %d of %s is given away", m.External, p)
			}
			return err
		}
	}
	errs := b.do(add(mapping.TCP, 2010, true), add(mapping.UDP, 2009, true), add(mapping.TCP, 2000, false), add(mapping.UDP, 2020, true))
	if !errors.Is(errs[0], mapping.ErrTaken) || errs[1] != nil || errs[2] != nil || !errors.Is(errs[3], mapping.ErrTaken) {
		t.Errorf("%v", errs)
	}
	b.rules.redirects = nil
	if errs := b.do(add(mapping.UDP, 2020, true)); errs[0] != nil {
		t.Errorf("after the rules were replaced: %v", errs)
	}
}

// If nobody evaluates the anchor, the keeper does not start, and leaves nothing.
func TestNotCalled(t *testing.T) {
	b := newBench(t)
	b.do(b.add(2000, 2000))
	b.rules.called = false
	s, err := readState(b.state, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.start(t.Context(), s); err == nil || !strings.Contains(err.Error(), `add to the rules: anchor "portmap"`) || b.rules.text != "" {
		t.Errorf("%v, rules %q", err, b.rules.text)
	}
}

// What others do to the anchor is found and undone.
func TestLook(t *testing.T) {
	b := newBench(t)
	b.do(b.add(2000, 2000))
	b.rules.text = ""
	b.look(t.Context())
	b.has("2000")
	loads := b.rules.loads
	if b.look(t.Context()); b.rules.loads != loads {
		t.Error("nothing has changed, but rules are loaded")
	}
}

func TestLimit(t *testing.T) {
	l := newLimit(2)
	var now [4]bool
	for i := range now {
		now[i] = l.take(time.Unix(5, 0))
	}
	if now != [4]bool{true, true, false, false} || !l.take(time.Unix(6, 0)) {
		t.Errorf("%v", now)
	}
}
