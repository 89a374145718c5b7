package portmap

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
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
	s, err := readState(b.state)
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
		if s, err := readState(path); err != nil || len(s.Mappings) != 0 || s.Since < b.now-10 {
			t.Errorf("%q is read as %+v, %v", text, s, err)
		}
	}
	b.state = filepath.Join(t.TempDir(), "none")
	b.begin()
	b.has()
}

// If nobody evaluates the anchor, the keeper does not start, and leaves nothing.
func TestNotCalled(t *testing.T) {
	b := newBench(t)
	b.do(b.add(2000, 2000))
	b.rules.called = false
	s, err := readState(b.state)
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
