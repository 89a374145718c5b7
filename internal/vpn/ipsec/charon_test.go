package ipsec

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/pf/resolve"
)

// stand is a Charon before a fake one, and two tunnels: one with a preshared key, one with certificates.
type stand struct {
	*testing.T
	fake   *fake
	charon *Charon
	ledger string
	files  *files
	all    []resolve.IKEv2

	own     []netip.Addr // the machine's addresses
	way     way          // to the peers
	flushed []uint32     // the xfrm interfaces whose keys were removed from the kernel
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{T: t, fake: newFake(t), files: newFiles(t), own: []netip.Addr{netip.MustParseAddr(localAddress)}}
	s.ledger = filepath.Join(t.TempDir(), "charon.json")
	s.all = rules(t, `ikev2 ipsec0 peer 192.0.2.7 psk file "`+s.files.psk+`" networks 10.2.0.0/16
ikev2 ipsec1 peer 192.0.2.8 srcid hq.example.org dstid branch.example.org certificate file "`+s.files.leaf+`" key file "`+s.files.key+`" ca file "`+s.files.ca+`" networks 10.3.0.0/16
pass
`)
	s.begin()
	return s
}

// begin starts another process.
func (s *stand) begin() {
	s.Helper()
	s.charon = New(s.fake.socket, s.ledger, slog.New(slog.DiscardHandler))
	s.charon.flush = func(id uint32) error { s.flushed = append(s.flushed, id); return nil }
	s.charon.own = func() ([]netip.Addr, error) { return s.own, nil }
	s.charon.way = func(netip.Addr) (way, error) {
		if s.way.link == 0 {
			return way{}, errors.New("no route")
		}
		return s.way, nil
	}
	s.charon.spawn = func(f func()) { f() }
	if err := s.charon.ledger.read(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(s.charon.hangUp)
}

// wants has some tunnels be wanted, and compares what charon is asked for.
func (s *stand) wants(tunnels []resolve.IKEv2, want ...string) {
	s.Helper()
	s.charon.Want(tunnels)
	s.looks(want...)
}

func (s *stand) looks(want ...string) {
	s.Helper()
	s.charon.look(context.Background())
	if _, about := s.charon.State(""); about.Problem != "" {
		s.Fatal(about.Problem)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, s.fake.took()); diff != "" {
		s.Errorf("charon was asked for (-want +got):\n%s", diff)
	}
}

// whole are the requests by which charon gets both tunnels.
var whole = []string{
	"initiate weir-ipsec0", "initiate weir-ipsec1", "load-conn weir-ipsec0", "load-cert ", "load-conn weir-ipsec1", "load-key ", "load-shared weir-ipsec0",
}

// Only what changes is loaded, and only what weir has loaded is unloaded.
func TestCompare(t *testing.T) {
	s := newStand(t)
	f := s.fake
	f.keyIDs[s.files.keyText] = s.files.keyID
	f.connections["mine"], f.shared["mine"], f.keys["0123"] = true, true, true
	s.wants(s.all, whole...)
	if f.data["weir-ipsec0"] != pskText {
		t.Errorf("the preshared key is %q", f.data["weir-ipsec0"])
	}
	s.looks()
	if state, _ := s.charon.State("ipsec1"); state.Up() == nil || state.Problem != "" || !state.Up().Covers(s.all[0].Networks[0]) {
		t.Errorf("%+v", state)
	}
	changed := slices.Clone(s.all)
	changed[0].MTU, changed[0].Routes = 1300, nil
	s.wants(changed)
	changed[0].DPD = 7
	s.wants(changed, "load-shared weir-ipsec0", "load-conn weir-ipsec0", "terminate weir-ipsec0", "initiate weir-ipsec0")
	s.begin()
	s.looks() // another process that does not know yet what is wanted
	s.wants(changed)
	if err := os.WriteFile(s.files.psk, []byte("another preshared key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.looks()
	s.wants(changed, "load-shared weir-ipsec0", "load-conn weir-ipsec0")

	t.Log("swanctl --load-all")
	clear(f.connections)
	clear(f.shared)
	clear(f.keys)
	s.looks("load-conn weir-ipsec0", "load-cert ", "load-conn weir-ipsec1", "load-key ", "load-shared weir-ipsec0")

	t.Log("another charon")
	f.stop()
	s.charon.look(context.Background())
	if _, about := s.charon.State("ipsec0"); about.Problem == "" {
		t.Error("charon is gone, and nothing is said")
	}
	f.start(t)
	f.connections["mine"], f.shared["mine"], f.keys["0123"] = true, true, true
	for _, tunnel := range s.charon.tunnels {
		tunnel.began = time.Time{}
	}
	s.looks(whole...)

	t.Log("the end of one, while no process runs")
	s.begin()
	s.wants(changed[:1], "unload-conn weir-ipsec1", "terminate weir-ipsec1", "unload-key "+s.files.keyID)
	s.wants(nil, "unload-conn weir-ipsec0", "terminate weir-ipsec0", "unload-shared weir-ipsec0")
	if !f.connections["mine"] || !f.shared["mine"] || !f.keys["0123"] || len(f.connections)+len(f.shared)+len(f.keys) != 3 {
		t.Errorf("charon has %v %v %v", f.connections, f.shared, f.keys)
	}
	if diff := cmp.Diff([]uint32{s.all[1].ID, s.all[0].ID}, s.flushed); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(s.ledger); !os.IsNotExist(err) {
		t.Errorf("the ledger: %v", err)
	}
	if s.charon.look(context.Background()); s.charon.client != nil {
		t.Error("weir asks a charon that it wants nothing of")
	}
}

// Down takes back what there is.
func TestDown(t *testing.T) {
	s := newStand(t)
	s.fake.keyIDs[s.files.keyText] = s.files.keyID
	s.wants(s.all, whole...)
	if err := Down(context.Background(), s.fake.socket, s.ledger, s.charon.log); err != nil {
		t.Fatal(err)
	}
	if f := s.fake; len(f.connections)+len(f.shared)+len(f.keys)+len(f.up) != 0 {
		t.Errorf("charon has %v %v %v %v", f.connections, f.shared, f.keys, f.up)
	}
	s.fake.stop()
	s.begin()
	s.charon.ledger.Keys["0123"], s.charon.ledger.Given["ipsec0"] = true, given{}
	if err := s.charon.ledger.write(); err != nil {
		t.Fatal(err)
	}
	if err := Down(context.Background(), s.fake.socket, s.ledger, s.charon.log); err != nil {
		t.Errorf("without a charon: %v", err)
	}
	s.charon.Want(nil)
	if s.charon.look(context.Background()); !slices.Equal(s.flushed, []uint32{resolve.InterfaceID("ipsec0")}) {
		t.Errorf("the kernel's keys of %v are removed", s.flushed)
	}
}

// A private key that somebody else has loaded is not unloaded.
func TestForeignKey(t *testing.T) {
	s := newStand(t)
	s.fake.keys[s.files.keyID] = true
	s.wants(s.all[1:], "load-cert ", "load-conn weir-ipsec1", "initiate weir-ipsec1")
	s.wants(nil, "unload-conn weir-ipsec1", "terminate weir-ipsec1")
	if !s.fake.keys[s.files.keyID] {
		t.Error("the key is gone")
	}
}

// What charon refuses, and what cannot be read, is said, and the others work.
func TestProblems(t *testing.T) {
	s := newStand(t)
	s.fake.keyIDs[s.files.keyText] = s.files.keyID
	s.fake.refuse = "load-shared"
	s.wants(s.all, "initiate weir-ipsec1", "load-cert ", "load-conn weir-ipsec1", "load-key ", "load-shared weir-ipsec0")
	if state, _ := s.charon.State("ipsec0"); !strings.Contains(state.Problem, "charon refuses load-shared: no such thing") {
		t.Errorf("%+v", state)
	}
	s.looks() // it is left alone for a while
	if err := os.Chmod(s.files.psk, 0o644); err != nil {
		t.Fatal(err)
	}
	s.fake.refuse = ""
	s.wants(s.all)
	if state, _ := s.charon.State("ipsec0"); !strings.Contains(state.Problem, "chmod 600") {
		t.Errorf("%+v", state)
	}
	if err := os.Chmod(s.files.psk, 0o600); err != nil {
		t.Fatal(err)
	}
	s.charon.tunnels["ipsec0"].tried = time.Time{}
	s.looks("initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
}

// A tunnel is begun again when it is not up, later each time, and not while the peer has to.
func TestBegin(t *testing.T) {
	s := newStand(t)
	s.wants(s.all[:1], "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
	s.fake.set(nil)
	s.looks()
	tunnel := s.charon.tunnels["ipsec0"]
	var pauses []time.Duration
	for range 6 {
		pauses = append(pauses, tunnel.pause)
		tunnel.began = tunnel.began.Add(-tunnel.pause - time.Second)
		s.looks("initiate weir-ipsec0")
		s.fake.set(nil)
	}
	if diff := cmp.Diff([]time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute}, pauses); diff != "" {
		t.Error(diff)
	}
	s.fake.set([]string{"weir-ipsec0"})
	s.looks()
	s.fake.set(nil)
	s.looks("initiate weir-ipsec0")
	passive := slices.Clone(s.all[:1])
	passive[0].Passive = true
	s.fake.set(nil)
	tunnel.began = time.Time{}
	s.wants(passive)
}

// A peer that gives keys and takes them away at once is not asked for more all the time.
func TestUnsteady(t *testing.T) {
	s := newStand(t)
	s.fake.age = "3"
	s.wants(s.all[:1], "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
	tunnel := s.charon.tunnels["ipsec0"]
	for _, want := range []time.Duration{4 * time.Second, 8 * time.Second} {
		s.looks()
		s.fake.set(nil)
		s.looks()
		tunnel.began = tunnel.began.Add(-tunnel.pause - time.Second)
		s.looks("initiate weir-ipsec0")
		if tunnel.pause != want {
			t.Errorf("the pause is %v, not %v", tunnel.pause, want)
		}
	}
	s.fake.age = "10"
	s.looks()
	s.fake.set(nil)
	s.looks("initiate weir-ipsec0")
}

// Ends that know each other and have no keys for packets begin anew: a peer that refuses the key exchange
// of a renewal takes none with the first messages. While charon is at keys, nobody asks for more.
func TestChildless(t *testing.T) {
	s := newStand(t)
	s.wants(s.all[:1], "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
	s.fake.bare = true
	tunnel := s.charon.tunnels["ipsec0"]
	again := func(want ...string) {
		t.Helper()
		tunnel.began = tunnel.began.Add(-tunnel.pause - time.Second)
		s.looks(want...)
	}
	again("initiate weir-ipsec0")
	s.fake.tasks = []string{"CHILD_CREATE"}
	again()
	s.fake.tasks = nil
	again("initiate weir-ipsec0")
	again("terminate weir-ipsec0", "initiate weir-ipsec0")
	again("initiate weir-ipsec0")
	s.fake.bare = false
	again()
	s.fake.bare = true
	for range 2 {
		again("initiate weir-ipsec0")
	}
	again("terminate weir-ipsec0", "initiate weir-ipsec0")
}

// While charon looks up the name of a peer, the other tunnels are begun and looked after.
func TestSlowName(t *testing.T) {
	s := newStand(t)
	f := s.fake
	f.keyIDs[s.files.keyText], f.slow = s.files.keyID, "weir-ipsec0"
	s.charon.spawn = s.charon.asking.Go
	ctx, cancel := context.WithCancel(context.Background())
	defer s.charon.asking.Wait()
	defer cancel()
	s.charon.Want(s.all)
	began := time.Now()
	for deadline := began.Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s.charon.look(ctx)
		state, about := s.charon.State("ipsec1")
		if about.Problem != "" {
			t.Fatal(about.Problem)
		}
		if state.Up() != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("ipsec1 is not up: %+v", state)
		}
	}
	s.charon.tunnels["ipsec0"].began = time.Time{}
	f.took()
	s.looks() // it is not begun twice
	f.mu.Lock()
	f.up = nil // charon works on it just now
	f.mu.Unlock()
	for range mostMissed {
		s.charon.look(ctx)
		if state, _ := s.charon.State("ipsec1"); state.Up() == nil {
			t.Errorf("%+v", state)
		}
	}
	s.charon.tunnels["ipsec1"].began = time.Now() // it is not begun again yet
	s.charon.look(ctx)
	if state, _ := s.charon.State("ipsec1"); state.Up() != nil {
		t.Errorf("ipsec1 is gone, and counts as up: %+v", state)
	}
	f.set([]string{"weir-ipsec1"})
	s.charon.look(ctx)
	f.set(nil)
	s.charon.look(ctx)
	if state, _ := s.charon.State("ipsec1"); state.Up() == nil {
		t.Errorf("ipsec1 was there at the look before: %+v", state)
	}
}

// When the machine has another address, what was up from the old one is ended, and begun from the new one.
func TestStranded(t *testing.T) {
	s := newStand(t)
	s.wants(s.all[:1], "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
	s.looks()
	s.own[0] = netip.MustParseAddr("192.0.2.99")
	s.looks("terminate 1", "initiate weir-ipsec0")
	s.own[0] = netip.MustParseAddr(localAddress)
	s.looks()
	s.fake.state, s.fake.bare = connecting, true // from an address that is gone nobody gets an answer
	s.looks()
	s.own[0] = netip.MustParseAddr("192.0.2.99")
	s.charon.tunnels["ipsec0"].began = time.Time{}
	s.looks("terminate 1", "initiate weir-ipsec0")
}

// When the routes to the peer lead by another uplink, the tunnel is ended and begun from there at once, and only then.
func TestMoved(t *testing.T) {
	s := newStand(t)
	here, there := netip.MustParseAddr(localAddress), netip.MustParseAddr("198.51.100.9")
	s.own = append(s.own, there)
	s.way = way{2, here}
	s.wants(s.all[:1], "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
	s.looks()
	s.way = way{} // no route, for a moment
	s.looks()
	s.way = way{2, there} // another address of the same uplink
	s.looks()
	s.way = way{3, there}
	s.looks("terminate 1", "initiate weir-ipsec0")
	s.looks() // the fake one goes on from the address before, as if the peer had chosen it
	s.way = way{2, here}
	s.looks()

	t.Log("it was up from an address that the routes do not have")
	s.begin()
	s.way = way{3, there}
	s.wants(s.all[:1])
	s.way = way{4, there}
	s.looks()

	t.Log("whoever does not begin, or has an address of its own, stays")
	for _, change := range []func(*resolve.IKEv2){
		func(of *resolve.IKEv2) { of.Passive = true },
		func(of *resolve.IKEv2) { of.Local = localAddress },
	} {
		s := newStand(t)
		changed := slices.Clone(s.all[:1])
		s.way = way{2, here}
		s.wants(changed, "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
		change(&changed[0])
		s.charon.Want(changed)
		s.charon.look(context.Background())
		s.charon.look(context.Background())
		s.fake.took()
		s.fake.set([]string{"weir-ipsec0"})
		s.looks()
		s.way = way{3, there}
		s.looks()
	}
}

// A charon that does not answer stops nothing for long: neither requests nor the reading of its log.
func TestSilence(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fake.silent = true
	s.charon.Want(s.all)
	began := time.Now()
	done := make(chan error)
	go func() { done <- s.charon.follow(context.Background()) }()
	s.charon.look(context.Background())
	if _, about := s.charon.State("ipsec0"); !strings.Contains(about.Problem, "ask charon (version)") {
		t.Errorf("%+v", about)
	}
	if err := <-done; err == nil {
		t.Error("the log is read")
	}
	if took := time.Since(began); took > 2*answerPatience {
		t.Errorf("it took %v", took)
	}
}

// Run follows what is wanted and the log, and ends at once.
func TestRun(t *testing.T) {
	s := newStand(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.charon.Run(ctx) }()
	s.charon.Want(s.all[:1])
	until := func(what string, ok func(State) bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			state, _ := s.charon.State("ipsec0")
			if ok(state) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("not %s: %+v", what, state)
			}
		}
	}
	until("up", func(s State) bool { return s.Up() != nil })
	until("heard", func(state State) bool {
		s.fake.say("weir-ipsec0", "1", "received AUTHENTICATION_FAILED notify error")
		return strings.HasPrefix(state.Error, "the peer refuses us") && time.Since(state.ErrorTime) < time.Minute
	})
	s.fake.stop()
	until("down", func(s State) bool { return s.Up() == nil })
	s.fake.start(t)
	until("up again", func(s State) bool { return s.Up() != nil })
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end")
	}
}

// A charon of another network namespace is not asked, and one that is not there is named.
func TestSocket(t *testing.T) {
	f := newFake(t)
	if err := listensHere(f.socket); err != nil {
		t.Error(err)
	}
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := listensHere(plain); err == nil || !strings.Contains(err.Error(), "another network namespace") {
		t.Errorf("what nobody listens on here: %v", err)
	}
	if _, err := open(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "--vici") {
		t.Error(err)
	}
}

// Each pair of networks has keys of its own: charon is asked for one after the other, and for what the peer refuses less and
// less often.
func TestPairs(t *testing.T) {
	s := newStand(t)
	networks := func(texts ...string) (all []netip.Prefix) {
		for _, n := range texts {
			all = append(all, netip.MustParsePrefix(n))
		}
		return all
	}
	tunnel := s.all[0]
	tunnel.PerPair, tunnel.From, tunnel.To = true, networks("10.1.0.0/16", "fd01::/48"), networks("10.3.0.0/16", "10.4.0.0/16", "fd03::/48")
	s.fake.pairs = []string{"10.1.0.0/16 10.3.0.0/16"}
	s.wants([]resolve.IKEv2{tunnel}, "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
	begun := func(want ...string) {
		t.Helper()
		s.fake.mu.Lock()
		defer s.fake.mu.Unlock()
		if diff := cmp.Diff(want, s.fake.begun); diff != "" {
			t.Error(diff)
		}
		s.fake.begun = nil
	}
	begun("weir-ipsec0")
	s.looks("initiate weir-ipsec0")
	s.looks("initiate weir-ipsec0")
	begun("weir-ipsec0-2", "weir-ipsec0-3")
	s.looks()
	if is, _ := s.charon.State("ipsec0"); !slices.Equal(is.Missing, []string{"10.1.0.0/16 to 10.4.0.0/16", "fd01::/48 to fd03::/48"}) {
		t.Errorf("what is missing: %q", is.Missing)
	}
	s.fake.mu.Lock()
	s.fake.pairs = append(s.fake.pairs, "fd01::/48 fd03::/48")
	s.fake.mu.Unlock()
	m := s.charon.tunnels["ipsec0"]
	const refused = "weir-ipsec0-2"
	for _, want := range []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		s.looks()
		m.asked[refused] = asked{m.asked[refused].at.Add(-m.asked[refused].pause), m.asked[refused].pause}
		s.looks("initiate weir-ipsec0")
		begun(refused)
		if pause := m.asked[refused].pause; pause != want {
			t.Errorf("the pause is %v, not %v", pause, want)
		}
	}
	s.fake.mu.Lock()
	s.fake.pairs = s.fake.pairs[:1] // another pair loses its keys: it does not wait for the one that is refused
	s.fake.mu.Unlock()
	s.looks("initiate weir-ipsec0")
	begun("weir-ipsec0-3")
	s.fake.mu.Lock()
	s.fake.pairs = append(s.fake.pairs, "fd01::/48 fd03::/48")
	s.fake.mu.Unlock()
	s.looks()
	s.fake.mu.Lock()
	s.fake.pairs = append(s.fake.pairs, "10.0.0.0/8 10.4.0.0/16")
	s.fake.mu.Unlock()
	m.asked = nil
	s.looks()
	if is, _ := s.charon.State("ipsec0"); is.Missing != nil {
		t.Errorf("nothing is missing: %q", is.Missing)
	}
}

// A peer that refuses the first pair of networks may agree to another one: each has its turn to come with the connection.
func TestFirstPairRefused(t *testing.T) {
	s := newStand(t)
	tunnel := s.all[0]
	tunnel.PerPair = true
	tunnel.From = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")}
	tunnel.To = []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")}
	s.fake.bare = true
	s.wants([]resolve.IKEv2{tunnel}, "initiate weir-ipsec0", "load-conn weir-ipsec0", "load-shared weir-ipsec0")
	again := func() {
		s.charon.tunnels["ipsec0"].began = time.Time{}
		s.looks("initiate weir-ipsec0")
	}
	again()
	again()
	s.fake.mu.Lock()
	if diff := cmp.Diff([]string{"weir-ipsec0", "weir-ipsec0-2", "weir-ipsec0"}, s.fake.begun); diff != "" {
		t.Error(diff)
	}
	s.fake.mu.Unlock()
}
