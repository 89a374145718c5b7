package userspace

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"weir/internal/vpn/device"
	"weir/internal/vpn/tunnel"
)

// A hub is an end with wide links to several others.
type hub struct {
	*end
	links []*end
}

// place gives the hub and the ends ports of their own.
func (h *hub) place() {
	h.Helper()
	taken := []uint16{}
	for _, e := range append([]*end{h.end}, h.links...) {
		for e.port = freePorts(h.TB, 8); slices.ContainsFunc(taken, func(p uint16) bool { return e.port >= p-8 && e.port <= p+8 }); {
			e.port = freePorts(h.TB, 8)
		}
		taken = append(taken, e.port)
		h.Cleanup(e.stop)
	}
}

// widen has the links have some ports at the hub.
func (h *hub) widen(widths ...int) {
	h.Helper()
	c := &tunnel.Config{Private: h.secret, Port: h.port}
	for i, e := range h.links {
		c.Peers = append(c.Peers, tunnel.Peer{
			Key: e.secret.Public(), Endpoint: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), e.port), Wide: widths[i],
			Allowed: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, e.net, 0, 0}), 16)},
		})
	}
	if err := h.Apply(c); err != nil {
		h.Fatal(err)
	}
}

// state is what the hub tells of the link to an end.
func (h *hub) state(of *end) *tunnel.State {
	h.Helper()
	all, err := h.States()
	at := slices.IndexFunc(all, func(s tunnel.State) bool { return s.Key == of.secret.Public() })
	if err != nil || at < 0 {
		h.Fatalf("%+v, %v", all, err)
	}
	return &all[at]
}

// use waits until the links use so many ports, at both ends.
func (h *hub) use(ports ...int) {
	h.Helper()
	used := func(w *tunnel.Wide) int {
		if w == nil {
			return 1
		}
		return w.Used
	}
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		wrong := slices.IndexFunc(h.links, func(e *end) bool {
			n := ports[slices.Index(h.links, e)]
			return used(h.state(e).Wide) != n || used(e.link()) != n
		})
		if wrong < 0 {
			return
		}
		if time.Now().After(until) {
			h.Fatalf("link %d does not use %d ports: %+v, and at the other end %+v", wrong, ports[wrong], h.state(h.links[wrong]).Wide, h.links[wrong].link())
		}
	}
}

// talk has the hub and the ends exchange flows for a time, and reports what did not come: of each link, to the end and
// from it.
func (h *hub) talk(rounds int) (lost [][2]int) {
	h.Helper()
	const from = 1 << 24 // a number has its sender's above
	lost = make([][2]int, len(h.links))
	take := func() {
		for _, n := range h.take() {
			lost[n/from-1][1]--
		}
		for i, e := range h.links {
			lost[i][0] -= len(e.take())
		}
	}
	for n := range rounds {
		for i, e := range h.links {
			h.send(e, n%16, n)
			e.send(h.end, n%16, (i+1)*from+n)
			lost[i][0]++
			lost[i][1]++
		}
		take()
		time.Sleep(500 * time.Microsecond)
	}
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until) && slices.ContainsFunc(lost, func(n [2]int) bool { return n != [2]int{} }); {
		time.Sleep(10 * time.Millisecond)
		take()
	}
	return lost
}

// keys are those that the hub uses to an end beside the first.
func (h *hub) keys(of *end) (all []device.NoisePublicKey) {
	h.wides.mu.Lock()
	defer h.wides.mu.Unlock()
	if l := h.wides.links[of.secret.Public()]; l != nil && len(l.over) > 1 {
		for _, p := range l.over[1:] {
			all = append(all, p.Key())
		}
	}
	return all
}

// A tunnel with two peers to which wide links lead has the ports of both: each carries what is the peer's own and is
// counted there. What becomes of one link disturbs the other in nothing.
func TestTwoLinks(t *testing.T) {
	h := &hub{end: newEnd(t, 1), links: []*end{newEnd(t, 2), newEnd(t, 3)}}
	h.place()
	h.widen(4, 2)
	for _, e := range h.links {
		e.knows(h.end, 4)
		h.greets(e)
	}
	h.use(4, 2)
	whole := func(what string) {
		t.Helper()
		for i, n := range h.talk(2000) {
			if n[0] != 0 || n[1] != 0 {
				t.Errorf("%s: of link %d %d datagrams did not come to the end, %d from it", what, i, n[0], n[1])
			}
		}
	}
	whole("both are wide")
	bytes := [2]uint64{}
	for i, e := range h.links {
		s := h.state(e)
		ports := s.Wide.Ports
		if len(ports) != []int{4, 2}[i] {
			t.Fatalf("link %d: %+v", i, s.Wide)
		}
		for j, p := range ports {
			if p.Port != h.port+uint16(j) || p.Endpoint.Port() != e.port+uint16(j) || p.Sent < 5000 || p.Received < 5000 {
				t.Errorf("port %d of link %d: %+v", j, i, p)
			}
		}
		bytes[i] = s.Received
	}
	if n := h.keys(h.links[0]); slices.ContainsFunc(n, func(k device.NoisePublicKey) bool { return slices.Contains(h.keys(h.links[1]), k) }) {
		t.Error("both links have a key")
	}
	for n := range 500 {
		h.links[0].send(h.end, n%16, 1<<24)
	}
	time.Sleep(200 * time.Millisecond)
	h.take()
	if grown := h.state(h.links[0]).Received - bytes[0]; grown < 500*128 {
		t.Errorf("the link that carried 500 datagrams counts %d bytes more", grown)
	}
	if grown := h.state(h.links[1]).Received - bytes[1]; grown > 20000 { // notes are not counted
		t.Errorf("the link that carried nothing counts %d bytes more", grown)
	}
	before := h.keys(h.links[1])
	h.wides.mu.Lock()
	h.wides.links[h.links[0].secret.Public()].of.Rotate(time.Now())
	h.wides.mu.Unlock()
	whole("one is rotated")
	if after := h.keys(h.links[1]); !slices.Equal(after, before) {
		t.Error("the other link has other keys")
	}
	h.use(4, 2)
	h.widen(4, 0)
	h.use(4, 1)
	whole("one is narrow")
	h.widen(0, 4)
	h.use(1, 4)
	whole("the other is narrow")
	h.widen(3, 4)
	h.use(3, 4)
	h.links[1].stop()
	if lost := h.talkTo(0, 2000); lost != [2]int{} {
		t.Errorf("one end is gone: of the other link %d datagrams did not come to the end, %d from it", lost[0], lost[1])
	}
	h.links[1].start()
	h.links[1].knows(h.end, 4)
	h.links[1].greets(h.end)
	h.use(3, 4)
	whole("it is back")
}

// talkTo is talk with one end.
func (h *hub) talkTo(link, rounds int) [2]int {
	h.Helper()
	all := h.links
	h.links = all[link : link+1]
	defer func() { h.links = all }()
	return h.talk(rounds)[0]
}

// An end cannot pass as another through a port that both use.
func TestTwoLinksApart(t *testing.T) {
	h := &hub{end: newEnd(t, 1), links: []*end{newEnd(t, 2), newEnd(t, 3)}}
	h.place()
	h.widen(2, 2)
	for _, e := range h.links {
		e.knows(h.end, 2)
		h.greets(e)
	}
	h.use(2, 2)
	own := h.links[1].net
	h.links[1].net = h.links[0].net
	for n := range 200 {
		h.links[1].send(h.end, n%16, n)
	}
	h.links[1].net = own
	time.Sleep(300 * time.Millisecond)
	if got := h.take(); len(got) > 0 {
		t.Errorf("%d datagrams with the addresses of another peer came in", len(got))
	}
}
