package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/vpn/key"
	"weir/internal/vpn/pathmtu"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

func networks(texts ...string) (all []netip.Prefix) {
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

// The addresses that are asked are behind the peer, and not ours.
func TestTargets(t *testing.T) {
	k := key.NewPrivate().Public()
	for _, c := range []struct{ addresses, allowed, want []string }{
		{[]string{"10.9.0.1/30", "fd09::1/64"}, []string{"10.2.0.0/16", "192.0.2.7/32", "10.9.0.2/32", "fd02::/48"}, []string{"10.9.0.1 10.9.0.2", "10.9.0.1 192.0.2.7", "10.9.0.1 10.2.0.1"}},
		{[]string{"10.9.0.1/30", "fd09::1/64"}, []string{"fd02::/48"}, []string{"fd09::1 fd02::1"}},
		{[]string{"10.9.0.1/31"}, []string{"0.0.0.0/0", "::/0"}, []string{"10.9.0.1 10.9.0.0"}},
		{[]string{"10.9.0.1/24"}, []string{"0.0.0.0/0"}, []string{"10.9.0.1 10.9.0.2"}},
		{[]string{"10.9.0.1/32"}, []string{"fd02::/48"}, nil},
		{nil, []string{"10.9.0.2/32"}, nil},
	} {
		r := &running{of: resolve.WireGuard{Addresses: networks(c.addresses...), Peers: []resolve.Peer{{Key: k.String(), Allowed: networks(c.allowed...)}}}}
		var got []string
		for _, e := range r.targets(k) {
			got = append(got, fmt.Sprint(e.from, " ", e.to))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, allowed %v: %v is asked, not %v", c.addresses, c.allowed, got, c.want)
		}
	}
}

// The interface has the MTU of the peer with the smallest path, of those that are there.
func TestMTU(t *testing.T) {
	now := time.Now()
	a, b := key.Public{1}, key.Public{2}
	r := &running{of: resolve.WireGuard{MTU: 1420}, states: map[key.Public]tunnel.State{a: {Handshake: now}, b: {Handshake: now}}}
	is := func(has, want int) {
		t.Helper()
		if got := r.mtu(has); got != want {
			t.Errorf("with an interface of %d it is %d, not %d", has, got, want)
		}
	}
	is(1500, 1420)
	is(1400, 1400)
	is(500, 1420)
	r.paths = map[key.Public]*path{a: {found: &PathMTU{Size: 1392}}, b: {}}
	is(1420, 1392)
	r.paths[b].found = &PathMTU{Size: 1200}
	is(1420, 1200)
	r.of.Addresses = networks("fd09::1/64")
	is(1420, 1280)
	r.states[b] = tunnel.State{Handshake: now.Add(-time.Hour)}
	is(1280, 1392)
	r.raising++
	is(1392, 1420)
	r.raising--
	r.of.MTUFixed, r.of.MTU = true, 1500
	is(1392, 1500)
}

// asked is an engine that answers everything up to a size, and notes what it is asked.
type asked struct {
	tunnel.Engine
	limit int
	state tunnel.State
	sizes []int
	stops int // nothing is answered after so many; 0: everything is
}

func (a *asked) States() ([]tunnel.State, error) { return []tunnel.State{a.state}, nil }
func (*asked) Resize(int)                        {}
func (*asked) Cut(bool) bool                     { return true }
func (*asked) Beyond() bool                      { return true }

func (a *asked) Ask(_ context.Context, q *tunnel.Question) (time.Duration, bool) {
	a.sizes = append(a.sizes, q.Size)
	a.state.Sent += uint64(q.Size)
	return time.Millisecond, q.Size <= a.limit && (a.stops == 0 || len(a.sizes) < a.stops)
}

// A path is measured when it is time for that, and not all the time.
func TestMeasure(t *testing.T) {
	k := key.NewPrivate().Public()
	now := time.Now()
	e := &asked{limit: 1400, state: tunnel.State{Key: k, Handshake: now, Endpoint: netip.MustParseAddrPort("127.0.0.1:51820")}}
	of := resolve.WireGuard{Name: "no such tunnel", MTU: 1420, Addresses: networks("10.9.0.1/30"), Peers: []resolve.Peer{{Name: "far", Key: k.String(), Allowed: networks("10.9.0.2/32")}}}
	r := &running{of: of, engine: e, keeper: &keeper{Config: Config{Log: slog.New(slog.DiscardHandler)}, slots: make(chan struct{}, 1)}}
	r.keeper.tunnels = map[string]*running{of.Name: r}
	step := func(what string, after time.Duration, asks bool, want int) {
		t.Helper()
		now = now.Add(after)
		e.sizes, e.state.Handshake = nil, now
		if err := r.readStates(); err != nil {
			t.Fatal(err)
		}
		r.measure(t.Context(), &of.Peers[0], k, now)
		r.keeper.measuring.Wait()
		found := &PathMTU{}
		if p := r.paths[k]; p != nil && p.found != nil {
			found = p.found
		}
		if len(e.sizes) > 0 != asks || int(found.Size) != want {
			t.Errorf("%s: asked %v, found %+v", what, e.sizes, *found)
		}
	}
	step("the first time", 0, true, 1400)
	step("again", 10*time.Second, false, 1400)
	step("nothing is sent", 2*time.Minute, false, 1400)
	e.state.Sent += 10000
	step("packets are sent", time.Second, true, 1400)
	if len(e.sizes) != 2 || e.sizes[1] != 1400 {
		t.Errorf("to confirm a size, %v is asked", e.sizes)
	}
	e.state.Sent += 10000
	step("packets are sent all the time", time.Second, false, 1400)
	e.limit = 1300
	step("the path is worse", 2*time.Minute, true, 1300)
	e.limit = 1420
	e.state.Sent += 10000
	step("the path is better", 2*time.Minute, true, 1300)
	step("10 minutes are over", 10*time.Minute, true, 1420)
	e.limit, e.state.Endpoint = 1350, netip.MustParseAddrPort("127.0.0.2:51820")
	step("the peer is elsewhere", 3*time.Second, true, 1350)
	e.limit, r.paths[k].again = 1360, true
	step("after a load", 3*time.Second, true, 1360)
	e.stops = 3
	step("the path ends meanwhile", time.Hour, true, 1360)
	e.stops = 0
	step("it is measured again soon", endedPause+time.Second, true, 1360)
	e.limit = 0
	e.state.Sent += 10000
	r.paths[k].found.By = pathmtu.Echo
	r.of.MTUFixed = true
	step("the rules say it", time.Hour, false, 1360)
	r.forget()
	if len(r.paths) != 0 {
		t.Errorf("what was measured is remembered: %+v", r.paths)
	}
}

// within is an engine that can ask only with what fits into the interface, as the kernel's.
type within struct {
	asked
	of     *running
	raised bool // the interface had its largest MTU for a request
}

func (*within) Beyond() bool { return false }

func (w *within) Ask(ctx context.Context, q *tunnel.Question) (time.Duration, bool) {
	w.raised = w.raised || w.of.raising > 0
	return w.asked.Ask(ctx, q)
}

// A path that is known, and answers now and then only, does not have the interface at its largest MTU for that.
func TestMeasureWithin(t *testing.T) { synctest.Test(t, testMeasureWithin) }

func testMeasureWithin(t *testing.T) {
	k := key.NewPrivate().Public()
	now := time.Now()
	e := &within{asked: asked{limit: 1300, state: tunnel.State{Key: k, Handshake: now, Endpoint: netip.MustParseAddrPort("127.0.0.1:51820")}}}
	of := resolve.WireGuard{Name: "no such tunnel", MTU: 1420, Addresses: networks("10.9.0.1/30"), Peers: []resolve.Peer{{Name: "far", Key: k.String(), Allowed: networks("10.9.0.2/32")}}}
	r := &running{of: of, engine: e, keeper: &keeper{Config: Config{Log: slog.New(slog.DiscardHandler)}, slots: make(chan struct{}, 1)}}
	r.keeper.tunnels = map[string]*running{of.Name: r}
	e.of = r
	step := func(what string, after time.Duration, stops int, raises bool) {
		t.Helper()
		now = now.Add(after)
		e.sizes, e.stops, e.raised, e.state.Handshake = nil, stops, false, now
		e.state.Sent += 10000
		if err := r.readStates(); err != nil {
			t.Fatal(err)
		}
		r.measure(t.Context(), &of.Peers[0], k, now)
		r.keeper.measuring.Wait()
		if len(e.sizes) == 0 || e.raised != raises {
			t.Errorf("%s: asked %v, with the largest MTU: %t", what, e.sizes, e.raised)
		}
	}
	step("the first time", 0, 0, true)
	step("packets are sent", 2*time.Minute, 1, false)
	for range 3 {
		step("nothing answers any more", endedPause+time.Minute, 2, false)
	}
	step("it answers again", endedPause+time.Minute, 0, false)
	if got := r.paths[k].found.Size; got != 1300 {
		t.Errorf("the path has %d bytes", got)
	}
	step("nothing answers from the first on", time.Minute, 1, false)
	step("it answers, long after the largest MTU", raisePause, 0, false)
	step("now it may be larger", time.Minute, 0, true)
	step("and it goes on", time.Minute, 0, false)
	step("nothing answers from the first on, again", time.Minute, 1, false)
	r.paths[k].again = true
	step("after a load larger packets are tried, and it answers", time.Minute, 0, true)
	step("long after that", raisePause, 0, false)
	step("nothing was away since", time.Minute, 0, false)
	r.paths[k].again = true
	step("after a load", time.Minute, 0, true)
}
