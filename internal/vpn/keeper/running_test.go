package keeper

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/host/netif"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// A text is passed on at once, and then once a minute with how often it came.
func TestEcho(t *testing.T) {
	passed, times := 0, 0
	e := &echo{pass: func(_ string, n int) { passed++; times = n }}
	now := time.Unix(1000, 0)
	for range 61 {
		e.say("no route to host", now)
		now = now.Add(time.Second)
	}
	if passed != 2 || times != 60 {
		t.Errorf("passed on %d times, the last for %d", passed, times)
	}
	if e.say("another", now); passed != 3 || times != 1 {
		t.Errorf("another text: passed on %d times, the last for %d", passed, times)
	}
}

// moves is an engine that notes where peers are sent.
type moves struct {
	tunnel.Engine
	to []netip.AddrPort
}

func (m *moves) Move(_ key.Public, to netip.AddrPort) error {
	m.to = append(m.to, to)
	return nil
}

func (*moves) Greet(key.Public) error { return nil }

// A peer that roams is looked for when it does not answer, and not when nothing is sent to it. Only a
// handshake tells that it was found.
func TestFollow(t *testing.T) {
	k, p := key.Public{1}, &resolve.Peer{Endpoint: "192.0.2.1", Port: 51820}
	roams, stated := netip.MustParseAddrPort("198.51.100.7:7"), netip.MustParseAddrPort("192.0.2.1:51820")
	keeper := &keeper{Config: Config{Log: slog.New(slog.DiscardHandler)}, endpoints: endpoints{seen: map[string]netip.AddrPort{}}}
	engine := &moves{}
	began := time.Unix(1000, 0)
	s := tunnel.State{Key: k, Endpoint: roams, Handshake: began, Sent: 5000, Received: 5000}
	r := &running{keeper: keeper, engine: engine}
	follow := func(after time.Duration) {
		r.states = map[key.Public]tunnel.State{k: s}
		r.follow(p, k, began.Add(after))
	}
	seen := func() netip.AddrPort { return keeper.endpoints.seen[seenKey("", p)] }
	follow(0)
	s.Sent += 32
	follow(time.Hour)
	if len(engine.to) != 0 || seen() != roams {
		t.Errorf("an idle peer is sent to %v, and was seen at %v", engine.to, seen())
	}
	s.Sent += initiation
	follow(time.Hour + time.Second)
	if len(engine.to) != 1 || engine.to[0] != stated {
		t.Errorf("a peer that does not answer is sent to %v", engine.to)
	}
	s.Endpoint = stated
	if follow(time.Hour + 2*time.Second); seen() != roams {
		t.Errorf("without a handshake it is seen at %v", seen())
	}
	s.Handshake = began.Add(time.Hour + 3*time.Second)
	if follow(time.Hour + 4*time.Second); seen() != stated {
		t.Errorf("after a handshake it is seen at %v", seen())
	}
}

// A key that cannot be read keeps no peer that is removed, and lets in none without its key.
func TestConfigure(t *testing.T) {
	dir := t.TempDir()
	secret, missing := filepath.Join(dir, "wg0.key"), filepath.Join(dir, "psk")
	if err := key.WriteFile(secret, key.NewPrivate()); err != nil {
		t.Fatal(err)
	}
	removed, stays, fresh := key.Public{1}, key.Public{2}, key.Public{3}
	psk := key.NewPreshared()
	r := &running{
		keeper: &keeper{},
		of:     resolve.WireGuard{KeyFile: secret, Peers: []resolve.Peer{{Key: stays.String(), PSKFile: missing}, {Key: fresh.String(), PSKFile: missing}}},
		config: &tunnel.Config{Private: key.NewPrivate(), Peers: []tunnel.Peer{{Key: removed}, {Key: stays, Preshared: psk}}},
	}
	for range 2 {
		c, err := r.configure()
		if err == nil || c == nil || len(c.Peers) != 1 || c.Peers[0].Key != stays || c.Peers[0].Preshared != psk {
			t.Fatalf("%+v, %v", c, err)
		}
		if err := os.Chmod(secret, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.config = nil
	if c, err := r.configure(); c != nil || err == nil {
		t.Errorf("without a private key: %+v, %v", c, err)
	}
}

// engineNamed is an engine that has a name.
type engineNamed struct {
	tunnel.Engine
	name string
}

func (e *engineNamed) Name() string { return e.name }

// An engine that suits the next statement as well goes on: peers would lose their sessions.
func TestSuits(t *testing.T) {
	wide := resolve.WireGuard{Peers: []resolve.Peer{{Wide: 4}}}
	ways := resolve.WireGuard{Peers: []resolve.Peer{{Ways: []resolve.Way{{Endpoint: "192.0.2.1"}}}}}
	plain, copies, user, core := resolve.WireGuard{}, resolve.WireGuard{CopyDSCP: true}, resolve.WireGuard{Engine: "userspace"}, resolve.WireGuard{Engine: "kernel"}
	for _, c := range []struct {
		is      string
		missing bool
		next    resolve.WireGuard
		want    bool
	}{
		{"userspace", true, plain, true}, {"userspace", false, plain, false}, // the kernel's may be there
		{"userspace", true, wide, true}, {"userspace", false, ways, true}, {"userspace", false, copies, true}, {"userspace", false, user, true},
		{"userspace", true, core, false},
		{"kernel", false, plain, true}, {"kernel", false, core, true},
		{"kernel", false, wide, false}, {"kernel", false, ways, false}, {"kernel", false, copies, false}, {"kernel", false, user, false},
	} {
		r := &running{engine: &engineNamed{name: c.is}, missing: c.missing}
		if got := r.suits(&c.next); got != c.want {
			t.Errorf("the engine %s (missing: %t) suits %+v: %t", c.is, c.missing, c.next, got)
		}
	}
}

// A handshake that is yet to come, by a clock that has gone back since, says nothing of the keys.
func TestSessionOfAnotherClock(t *testing.T) {
	now := time.Unix(100000, 0)
	for _, c := range []struct {
		handshake time.Time
		want      Session
	}{{time.Time{}, NoSession}, {now, Current}, {now.Add(time.Second / 2), Current}, {now.Add(time.Hour), OldSession}, {now.Add(-rejectAfter), OldSession}} {
		if got := sessionOf(c.handshake, now); got != c.want {
			t.Errorf("after a handshake %v from now the session is %s, want %s", c.handshake.Sub(now), got, c.want)
		}
	}
}

// Messages follow the routes, unless the routes did not lead by where they leave, or the peer has begun by itself.
func TestLead(t *testing.T) {
	k, at := key.Public{1}, netip.MustParseAddrPort("192.0.2.1:51820")
	engine, link := &moves{}, 0
	r := &running{
		keeper: &keeper{Config: Config{Log: slog.New(slog.DiscardHandler)}, cards: &cards{way: func(netif.Flow) (netif.Way, error) {
			if link == 0 {
				return netif.Way{}, errors.New("no route")
			}
			return netif.Way{Link: link}, nil
		}}},
		engine: engine, watched: map[key.Public]*watch{k: {}},
	}
	const wan0, wan1 = 7, 8
	stated, alone := &resolve.Peer{Endpoint: "192.0.2.1"}, &resolve.Peer{}
	for _, step := range []struct {
		name         string
		of           *resolve.Peer
		routes, used int
		moves        bool
	}{
		{"at first", stated, wan0, wan0, false},
		{"the routes are the same", stated, wan0, wan0, false},
		{"other routes", stated, wan1, wan0, true},
		{"it has moved", stated, wan1, wan1, false},
		{"there is no route for a while", stated, 0, wan1, false},
		{"the routes are back", stated, wan0, wan1, true},
		{"the engine chooses none yet", stated, wan0, 0, false},
		{"the peer has come by the other uplink", stated, wan0, wan1, false},
		{"it stays there", stated, wan0, wan1, false},
		{"the routes lead there, too", stated, wan1, wan1, false},
		{"a peer that begins by itself, with other routes", alone, wan0, wan1, false},
	} {
		engine.to = nil
		link, r.states = step.routes, map[key.Public]tunnel.State{k: {Key: k, Endpoint: at, Interface: step.used}}
		r.lead(step.of, k)
		if moved := len(engine.to) == 1 && engine.to[0] == at; moved != step.moves || len(engine.to) > 1 {
			t.Errorf("%s: it was moved to %v, want %v", step.name, engine.to, step.moves)
		}
	}
}

// leads is an engine that notes by which interface the routes lead.
type leads struct {
	moves
	by []int
}

func (l *leads) Lead(_ key.Public, by int) { l.by = append(l.by, by) }

// When the routes have changed, the engine is told by which interface they lead, until it ends: packets of the peer that come by the uplink
// of before change nothing then. A peer that has come by another uplink before that stays there.
func TestLeads(t *testing.T) {
	k, at, roamed := key.Public{1}, netip.MustParseAddrPort("192.0.2.1:51820"), netip.MustParseAddrPort("192.0.2.2:51820")
	engine, link := &leads{}, 0
	r := &running{
		keeper: &keeper{Config: Config{Log: slog.New(slog.DiscardHandler)}, cards: &cards{way: func(netif.Flow) (netif.Way, error) { return netif.Way{Link: link}, nil }}},
		engine: engine, watched: map[key.Public]*watch{k: {}},
	}
	const wan0, wan1 = 7, 8
	for _, step := range []struct {
		name         string
		at           netip.AddrPort
		routes, used int
		moves        bool
		by           []int
	}{
		{"it has come by the other uplink", at, wan0, wan1, false, nil},
		{"it stays there", at, wan0, wan1, false, nil},
		{"it comes by the first one", at, wan0, wan0, false, nil},
		{"other routes", at, wan1, wan0, true, []int{wan1}},
		{"it comes by the uplink of before", at, wan1, 0, false, []int{wan1}},
		{"it has followed", at, wan1, wan1, false, []int{wan1}},
		{"it roams, and comes by the uplink of before", roamed, wan1, 0, false, []int{wan1}},
		{"the routes are back", roamed, wan0, 0, true, []int{wan0, wan0}},
		{"it still comes by the other one", roamed, wan0, 0, false, []int{wan0}},
	} {
		engine.to, engine.by = nil, nil
		link, r.states = step.routes, map[key.Public]tunnel.State{k: {Key: k, Endpoint: step.at, Interface: step.used}}
		r.lead(&resolve.Peer{Endpoint: "192.0.2.1"}, k)
		if (len(engine.to) == 1) != step.moves || !slices.Equal(engine.by, step.by) {
			t.Errorf("%s: it was moved to %v, and is led by %v, want %v", step.name, engine.to, engine.by, step.by)
		}
	}
}

// A name that has another address by now is asked for when a peer has not answered for 20 s, and the peer is looked for there. One that roams,
// or answers, or whose name has the address still, stays where it is.
func TestNameMoves(t *testing.T) {
	k, p := key.Public{1}, &resolve.Peer{Endpoint: "far.example.test", Port: 51820}
	was, is, roams := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddrPort("198.51.100.7:7")
	began := time.Unix(1000, 0)
	for _, c := range []struct {
		what     string
		at       netip.AddrPort
		has      netip.Addr
		received uint64 // in each second
		sent     uint64
		want     bool
	}{
		{"the name has moved", netip.AddrPortFrom(was, 51820), is, 0, 148, true},
		{"it has not", netip.AddrPortFrom(was, 51820), was, 0, 148, false},
		{"the peer answers", netip.AddrPortFrom(was, 51820), is, 32, 148, false},
		{"nothing is sent", netip.AddrPortFrom(was, 51820), is, 0, 0, false},
		{"the peer roams", roams, is, 0, 148, false},
	} {
		keeper := &keeper{Config: Config{Log: slog.New(slog.DiscardHandler)}, endpoints: endpoints{
			seen: map[string]netip.AddrPort{}, names: map[string]*lookup{p.Endpoint: {addresses: []netip.Addr{c.has}, had: map[netip.Addr]bool{was: true, c.has: true}, asking: true, at: -1}},
		}}
		engine := &moves{}
		r := &running{keeper: keeper, engine: engine}
		s := tunnel.State{Key: k, Endpoint: c.at, Handshake: began, Sent: 5000, Received: 5000}
		for second := range 25 {
			r.states = map[key.Public]tunnel.State{k: s}
			r.follow(p, k, began.Add(time.Duration(second)*time.Second))
			s.Sent, s.Received = s.Sent+c.sent, s.Received+c.received
		}
		if moved := len(engine.to) > 0 && engine.to[0] == netip.AddrPortFrom(is, 51820); moved != c.want {
			t.Errorf("%s: it is looked for at %v", c.what, engine.to)
		}
	}
}
