package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/host/hostdb"
	"weir/pf/resolve"
)

// anybody is a DNS in which every name is a host.
type anybody struct{ asked []string }

func (a *anybody) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a.asked = append(a.asked, host)
	return []netip.Addr{netip.MustParseAddr("203.0.113.66")}, nil
}

func machineWith(interfaces ...string) *machine {
	m := &machine{host: &resolve.Host{}}
	for _, name := range interfaces {
		m.host.Interfaces = append(m.host.Interfaces, resolve.HostInterface{
			Name: name, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")},
		})
	}
	return m
}

// textsOf returns the rules of a source on a machine.
func textsOf(s *Source, m *machine) ([]string, error) {
	rules, err := s.compile(m)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, r := range rules.texts {
		texts = append(texts, r.Text)
	}
	return texts, nil
}

// A name that meant an interface at the load does not become a host when the interface
// goes. Hosts keep the addresses that they had at the load.
func TestLoadedRulesMakeNoLookups(t *testing.T) {
	dns := &anybody{}
	s := Source{Name: "a.conf", Text: "pass from dmz0 to db.example.invalid\n", hosts: hostdb.Asking(dns)}
	with, without := machineWith("dmz0"), machineWith()
	s.lookUp(t.Context(), with)
	rules, err := textsOf(&s, with)
	if want := "pass inet from 192.0.2.1 to 203.0.113.66 flags S/SA"; err != nil || !slices.Equal(rules, []string{want}) {
		t.Fatalf("%q, %v; want %s", rules, err, want)
	}
	for _, s := range []*Source{&s, restored(&rundir.Source{Name: s.Name, Text: s.Text, Hosts: s.hosts.Known()})} {
		if rules, err := textsOf(s, without); err == nil || !strings.Contains(err.Error(), "dmz0") {
			t.Errorf("without dmz0: %q, %v", rules, err)
		}
		s.lookUp(t.Context(), with)
		if rules, err := textsOf(s, with); err != nil || len(rules) != 1 {
			t.Errorf("with dmz0 again: %q, %v", rules, err)
		}
	}
	if !slices.Equal(dns.asked, []string{"db.example.invalid"}) {
		t.Errorf("asked for %q", dns.asked)
	}
}

// Rules from a record look up no host, whoever loads them.
func TestRestoredRulesMakeNoLookups(t *testing.T) {
	s := restored(&rundir.Source{Name: "a.conf", Text: "pass from localhost\n"})
	s.lookUp(t.Context(), machineWith())
	if rules, err := textsOf(s, machineWith()); err == nil || !strings.Contains(err.Error(), "has not been looked up") {
		t.Errorf("%q, %v", rules, err)
	}
}

// A start with --or-block looks up no host before the box is filtered. Other starts do.
func TestStartOrBlockMakesNoLookups(t *testing.T) {
	for _, orBlock := range []bool{false, true} {
		dns := &anybody{}
		b := &box{cfg: &Config{OrBlock: orBlock, Log: slog.New(slog.DiscardHandler)}, dir: t.TempDir()}
		s := Source{Name: "a.conf", Text: "pass from db.example.invalid\n", hosts: hostdb.Asking(dns)}
		if err := b.findHosts(t.Context(), &s); err != nil || (len(dns.asked) == 0) != orBlock {
			t.Errorf("--or-block %v: %v, asked for %q", orBlock, err, dns.asked)
		}
	}
}

// A host look-up holds no lock that the rest of the daemon waits for.
func TestLookUpTakesNoLock(t *testing.T) {
	asked := make(chan struct{}, 100)
	usual := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	defer func() { net.DefaultResolver = usual }()
	const text = "pass from db.example.invalid\n"
	file := filepath.Join(t.TempDir(), "a.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, load := range map[string]func(context.Context, *box) error{
		"a load": func(ctx context.Context, b *box) error {
			_, err := (&controller{box: b, living: ctx}).Load(t.Context(), control.LoadRequest{File: "a.conf", Text: text})
			if errors.Is(err, control.ErrEnding) {
				return nil
			}
			return err
		},
		"the start's file": func(ctx context.Context, b *box) error { return b.retryFile(ctx) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		b := &box{cfg: &Config{File: file, Log: slog.New(slog.DiscardHandler)}, retrying: true}
		b.mu.Lock()
		done := make(chan error, 1)
		go func() { done <- load(ctx, b) }()
		select {
		case <-asked:
		case <-time.After(3 * time.Second):
			t.Fatalf("%s waits for the lock before it asks", what)
		}
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(3 * time.Second):
			t.Fatalf("%s goes on when the daemon ends", what)
		}
		b.mu.Unlock()
	}
}

// The daemon becomes ready even if the file is still waiting for something.
func TestReadyDoesNotWaitForTheFile(t *testing.T) {
	b := &box{retrying: true}
	w := &retrier{readiness: newReadiness(), box: b}
	b.mu.Lock()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case <-time.After(3 * time.Second):
		t.Error("not ready")
	}
	b.retrying = false
	b.mu.Unlock()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A file that did not load is read again, with the files it includes: at boot they may
// not exist yet.
func TestRetriedFileIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cfg := &Config{File: filepath.Join(dir, "main.conf"), NoDNS: true}
	for _, step := range []struct {
		file, text string
		fits       bool
	}{
		{"other", "", false},
		{"main.conf", "include \"more\"\n", false},
		{"more", "nonsense\n", false},
		{"more", "pass from nobody.example.invalid\n", false},
		{"more", "pass\n", true},
	} {
		if err := os.WriteFile(filepath.Join(dir, step.file), []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, fits := cfg.readWanted(t.Context()); fits != step.fits {
			t.Errorf("after %s is %q: fits %v", step.file, step.text, fits)
		}
	}
}

// A database that cannot be read causes a warning. The others are still read.
func TestMachineWithoutDatabase(t *testing.T) {
	var said strings.Builder
	root := fstest.MapFS{"etc/group/x": {}, "etc/hosts": {Data: []byte("192.0.2.7 www\n")}}
	m, err := readMachineIn(root, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.host.Hosts["www"]) != 1 || !strings.Contains(said.String(), "etc/group") {
		t.Errorf("hosts %v, said %q", m.host.Hosts, said.String())
	}
}
