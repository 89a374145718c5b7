package keeper

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"weir/internal/host/netif"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// A rack has cards, and counts who asks for them.
type rack struct {
	all                  []netif.Link
	links, ways, counted int
}

func (r *rack) cards() *cards {
	c := newCards()
	c.links = func() ([]netif.Link, error) { r.links++; return r.all, nil }
	c.queues = func(l *netif.Link) int { r.counted++; return l.RxQueues }
	c.way = func(f netif.Flow) (netif.Way, error) {
		if r.ways++; !f.To.Addr().Is4() {
			return netif.Way{}, errors.New("no route leads there")
		}
		return netif.Way{Link: int(f.To.Addr().As4()[0])}, nil
	}
	return c
}

// Queues are those of the cards, however deep they are.
func TestQueues(t *testing.T) {
	r := rack{all: []netif.Link{
		{Index: 1, Name: "card0", RxQueues: 3, Master: 4}, {Index: 2, Name: "card1", RxQueues: 5, Master: 4}, {Index: 3, Name: "card2", RxQueues: 7},
		{Index: 4, Name: "bond0", Kind: netif.Bond}, {Index: 5, Name: "bond0.7", Kind: netif.VLAN, Parent: 4}, {Index: 6, Name: "loop", Parent: 6},
	}}
	c := r.cards()
	for index, want := range map[int]int{3: 7, 4: 8, 5: 8, 6: 0, 9: 0} {
		if n := c.queuesTo(&tunnel.State{Interface: index}, 51820); n != want {
			t.Errorf("interface %d has %d queues below it, want %d", index, n, want)
		}
	}
	for to, want := range map[string]int{"3.0.0.1:1": 7, "5.0.0.1:1": 8, "9.0.0.1:1": 0, "[fd00::1]:1": 0} {
		if n := c.queuesTo(&tunnel.State{Endpoint: netip.MustParseAddrPort(to)}, 51820); n != want {
			t.Errorf("the cards on the way to %s have %d queues, want %d", to, n, want)
		}
	}
	if r.links != 1 || r.counted != 3 {
		t.Errorf("interfaces were asked for %d times, queues of three cards %d times", r.links, r.counted)
	}
	c.links = func() ([]netif.Link, error) { return nil, errors.New("the kernel says nothing") }
	if c.asked = false; c.queuesTo(&tunnel.State{Interface: 3}, 51820) != 0 {
		t.Error("without interfaces there are queues")
	}
}

// The links of a hundred peers need one look at the interfaces, and one at each card. Where messages to a peer leave by an
// interface that was chosen, its queues count, and no route is asked for.
func TestOneLook(t *testing.T) {
	const peers = 100
	r := rack{all: []netif.Link{{Index: 1, RxQueues: 3}, {Index: 2, RxQueues: 7}}}
	run := &running{keeper: &keeper{cards: r.cards()}, engine: &staff{count: 1}, config: &tunnel.Config{}, states: map[key.Public]tunnel.State{}}
	for i := range peers {
		k := key.Public{byte(i), 1}
		run.of.Peers = append(run.of.Peers, resolve.Peer{Key: k.String(), WideAuto: true, Wide: 16})
		s := tunnel.State{Key: k, Endpoint: netip.MustParseAddrPort("1.0.0.9:51820")} // the route to it leads to the first
		width := 3
		if i%2 == 1 {
			s.Interface, width = 2, 7
		}
		run.states[k] = s
		run.config.Peers = append(run.config.Peers, tunnel.Peer{Key: k, Wide: width})
	}
	if run.widthsChanged() {
		t.Error("links are to have other ports than their cards have queues")
	}
	if r.links != 1 || r.counted != 2 || r.ways != 1 {
		t.Errorf("interfaces were asked for %d times, queues %d times, routes %d times", r.links, r.counted, r.ways)
	}
	if run.keeper.cards = r.cards(); run.widthsChanged() || r.links != 2 {
		t.Errorf("a second look: interfaces were asked for %d times in all", r.links)
	}
	r.all[1].RxQueues = 5
	if run.keeper.cards = r.cards(); !run.widthsChanged() {
		t.Error("a card has other queues, and nothing changes")
	}
}

// Where outer packets of a tunnel leave is where its engine sends them.
func TestVia(t *testing.T) {
	lo, err := netif.Links()
	at := slices.IndexFunc(lo, func(l netif.Link) bool { return l.Name == "lo" })
	if err != nil || at < 0 {
		t.Fatalf("%v: %v", err, lo)
	}
	r := &running{keeper: &keeper{}, states: map[key.Public]tunnel.State{
		{1}: {Endpoint: netip.MustParseAddrPort("203.0.113.77:1"), Interface: lo[at].Index},
		{2}: {},
	}}
	if got := r.via(); !slices.Equal(got, []string{"lo"}) {
		t.Errorf("packets leave by %v", got)
	}
}
