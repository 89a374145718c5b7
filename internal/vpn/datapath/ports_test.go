package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
)

// linked returns two ends that know each other, with a link of some ports. lanes are those of each, by the place of
// their port; the first is the peer itself.
func linked(t testing.TB, at string, workers, ports int) (a, b *end, lanes [2][]*device.Peer) {
	t.Helper()
	a, b = pairOf(t, at, workers)
	for try := 0; ; try++ { // other programs may have the ports that follow
		if a.widens(ports) && b.widens(ports) {
			break
		}
		if try == 20 {
			t.Fatal("no ports that follow each other are free")
		}
		a, b = pairOf(t, at, workers)
	}
	ends := [2]*end{a, b}
	for i, e := range ends {
		lanes[i] = []*device.Peer{e.device.LookupPeer(device.NoisePublicKey(ends[1-i].secret.Public()))}
	}
	for place := 1; place < ports; place++ {
		keys := [2]key.Secret{key.NewPrivate(), key.NewPrivate()}
		for i := range ends {
			other := ends[1-i]
			lane, err := lanes[i][0].NewLane(uint8(place), keys[i].Reveal(), device.NoisePublicKey(keys[1-i].Public()))
			if err != nil {
				t.Fatal(err)
			}
			lane.Follow(other.port + uint16(place))
			lanes[i] = append(lanes[i], lane)
		}
	}
	return a, b, lanes
}

func (e *end) widens(ports int) bool {
	n, _ := e.path.Widen(ports)
	return n == ports
}

// meet has all lanes have a session.
func meet(t testing.TB, lanes [2][]*device.Peer) {
	t.Helper()
	for _, lane := range lanes[0][1:] {
		if err := lane.SendHandshakeInitiation(false); err != nil {
			t.Fatal(err)
		}
	}
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		fresh := func(p *device.Peer) bool { return p.Fresh(time.Now()) }
		if !slices.ContainsFunc(slices.Concat(lanes[0][1:], lanes[1][1:]), func(p *device.Peer) bool { return !fresh(p) }) {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the lanes have no sessions")
		}
	}
}

// by returns by which of an end's lanes something has come since before.
func by(lanes []*device.Peer, before []uint64) (place int) {
	place = -1
	for i, n := range receivedBy(lanes) {
		if n > before[i] {
			place = i
		}
	}
	return place
}

func receivedBy(lanes []*device.Peer) (all []uint64) {
	for _, l := range lanes {
		_, received := l.Own()
		all = append(all, received)
	}
	return all
}

// Each connection goes by one port, both directions of it by the same, and all ports are used. What comes by any of them
// is the peer's, who is counted as one.
func TestSpread(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		t.Run(at, func(t *testing.T) {
			const ports = 4
			a, b, lanes := linked(t, at, 2, ports)
			s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(600)}
			a.reaches(b, s.bytes())
			meet(t, lanes)
			a.reaches(b, s.bytes())
			lanes[0][0].Spread(lanes[0])
			lanes[1][0].Spread(lanes[1])
			used := map[int]int{}
			const flows = 100
			for i := range flows {
				s.from, s.to = netipPort(four[0], uint16(2000+i)), four[1]
				before := receivedBy(lanes[1])
				a.reaches(b, s.bytes())
				place := by(lanes[1], before)
				used[place]++
				s.from, s.to = s.to, s.from
				before = receivedBy(lanes[0])
				b.reaches(a, s.bytes())
				if back := by(lanes[0], before); back != place {
					t.Errorf("connection %d goes by port %d, and comes by port %d", i, place, back)
				}
				s.from, s.to = s.to, s.from
				before = receivedBy(lanes[1])
				if a.reaches(b, s.bytes()); by(lanes[1], before) != place {
					t.Errorf("connection %d changes its port", i)
				}
			}
			for place := range ports {
				if used[place] < flows/ports/3 {
					t.Errorf("of %d connections port %d has %d: %v", flows, place, used[place], used)
				}
			}
			var sum uint64
			for _, n := range receivedBy(lanes[0]) {
				sum += n
			}
			states, err := a.device.IpcGet()
			if _, received := lanes[0][0].Bytes(); err != nil || received != sum || !bytes.Contains([]byte(states), fmt.Appendf(nil, "\nrx_bytes=%d\n", sum)) {
				t.Errorf("%v: %d bytes came by the link, %d by its ports:\n%s", err, received, sum, states)
			}
			if n := bytes.Count([]byte(states), []byte("public_key=")); n != 1 {
				t.Errorf("%d peers are shown", n)
			}
			// What was put together is one connection, too.
			super := together(&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(30000)}, 1000)
			a.put(0, super)
			got := 0
			for got < 30 {
				p := b.takeAny(patience)
				if p == nil {
					t.Fatalf("%d of 30 packets came", got)
				}
				got += len(p)
			}
			if len(a.errors)+len(b.errors) > 0 {
				t.Errorf("errors: %q %q", a.errors, b.errors)
			}
		})
	}
}

// Without a session of a lane its connections go by the first tunnel, at once.
func TestLaneWithoutKeys(t *testing.T) {
	a, b, lanes := linked(t, "127.0.0.1", 1, 3)
	a.reaches(b, numbered(0))
	for _, l := range lanes[0][1:] {
		l.Follow(9) // nobody answers
	}
	lanes[0][0].Spread(lanes[0])
	begun := time.Now()
	for i := range 30 {
		s := sample{from: netipPort(four[0], uint16(3000+i)), to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
		a.reaches(b, s.bytes())
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("30 packets took %v", took)
	}
}

// Messages of a lane that somebody sends to other ports do not come in, and do not move the lane.
func TestOtherPort(t *testing.T) {
	a, b, lanes := linked(t, "127.0.0.1", 1, 3)
	a.reaches(b, numbered(0))
	w := newWire(t, b.port+1)
	meet(t, lanes)
	lanes[0][1].Follow(w.port)
	lanes[0][0].Spread([]*device.Peer{lanes[0][1]})
	a.reaches(b, numbered(1))
	wired, at := lanes[1][1].Endpoint().Remote, netip.AddrPort{}
	if wired.Port() == a.port+1 {
		t.Fatalf("the lane does not follow its messages: %v", wired)
	}
	var full atomic.Bool // what is sent now is kept from the far end, and only shown to other ports
	full.Store(true)
	var kept [][]byte
	var mu sync.Mutex
	f := fault(func(messages []byte, _ int, to *device.Endpoint) unix.Errno {
		if to.Place == 1 && full.Load() {
			mu.Lock()
			kept = append(kept, bytes.Clone(messages))
			mu.Unlock()
		}
		return 0
	})
	port := (*a.path.more.Load())[0]
	port.four.socket.fault.Store(&f)
	lanes[0][1].Follow(9)
	a.put(0, append(make([]byte, sizeVnet), numbered(2)...))
	for until := time.Now().Add(patience); at == (netip.AddrPort{}); time.Sleep(time.Millisecond) {
		mu.Lock()
		if len(kept) > 0 {
			at = lanes[1][1].Endpoint().Remote
		}
		mu.Unlock()
		if time.Now().After(until) {
			t.Fatal("nothing was sent")
		}
	}
	for _, place := range []uint16{0, 2} {
		for _, m := range kept {
			conn, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Sendto(conn, m, 0, &unix.SockaddrInet4{Port: int(b.port + place), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
				t.Fatal(err)
			}
			unix.Close(conn) //nolint:errcheck // it is sent
		}
	}
	if p := b.takeAny(300 * time.Millisecond); p != nil {
		t.Errorf("%d packets came by another port", len(p))
	}
	if now := lanes[1][1].Endpoint().Remote; now != at {
		t.Errorf("a message that came to another port has moved the lane from %v to %v", at, now)
	}
}

// Ports are opened and closed under traffic, and nothing is lost by the first.
func TestWiden(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 2)
	a.reaches(b, numbered(0))
	done := make(chan int)
	go func() {
		n := 0
		for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
			for _, p := range b.takeAny(10 * time.Millisecond) {
				if binary.BigEndian.Uint32(p[28:]) > 0 {
					n++
				}
			}
		}
		done <- n
	}()
	sent := 0
	for i := range 300 {
		a.put(i%2, append(make([]byte, sizeVnet), numbered(i+1)...))
		sent++
		if i%10 == 0 {
			b.path.Widen(1 + i/10%5) //nolint:errcheck // another program may have a port
			a.path.Widen(1 + i/20%5) //nolint:errcheck // likewise
		}
	}
	if got := <-done; got != sent {
		t.Errorf("%d packets were sent, %d came", sent, got)
	}
	if n, err := a.path.Widen(1); n != 1 || err != nil || len(a.path.receivers()) > 2 {
		t.Errorf("%d ports are open: %v", n, err)
	}
	if err := a.device.Down(); err != nil {
		t.Fatal(err)
	}
	if n, err := a.path.Widen(3); n != 0 || err != nil {
		t.Errorf("a path that is closed has %d ports open: %v", n, err)
	}
}

// A port that somebody else has is said.
func TestPortTaken(t *testing.T) {
	a, fd := newEnd(t, 1), -1
	for try := 0; fd < 0; try++ { // another program may have it already
		s, err := openSocket(false, a.port+2)
		if err == nil && a.widens(2) {
			fd = s.fd
			break
		}
		if try == 20 {
			t.Fatal(err)
		}
		a = newEnd(t, 1)
	}
	defer unix.Close(fd) //nolint:errcheck // the test is over
	n, err := a.path.Widen(4)
	if n != 2 || err == nil {
		t.Errorf("%d ports are open: %v", n, err)
	}
}

// Notes go to the far end's engine, by the first tunnel and by lanes, and not to its interface. What a host sends is
// never one.
func TestNotes(t *testing.T) {
	a, b, lanes := linked(t, "127.0.0.1", 1, 2)
	type heard struct {
		from *device.Peer
		text string
	}
	came := make(chan heard, 10)
	b.path.Hear(func(from *device.Peer, note []byte) { came <- heard{from, string(note)} })
	note := append([]byte{0}, "twenty-one more bytes"...)
	if err := a.path.Tell(lanes[0][0], note); err == nil {
		t.Error("a note is sent without a session")
	}
	a.reaches(b, numbered(0))
	back := sample{from: four[1], to: four[0], protocol: unix.IPPROTO_UDP, payload: letters(100)}
	b.reaches(a, back.bytes())
	meet(t, lanes)
	for i := range 2 {
		if err := a.path.Tell(lanes[0][i], note); err != nil {
			t.Fatal(err)
		}
		select {
		case h := <-came:
			if h.from != lanes[1][i] || h.text != string(note)+string(make([]byte, 10)) {
				t.Errorf("%d: %q came from %v", i, h.text, h.from)
			}
		case <-time.After(patience):
			t.Fatal("the note does not come")
		}
	}
	if lanes[0][0].Unanswered() {
		t.Error("a note counts as data that has to be answered")
	}
	a.put(0, append(make([]byte, sizeVnet), note...))
	a.reaches(b, numbered(1))
	select {
	case h := <-came:
		t.Errorf("a host sends a note: %q", h.text)
	default:
	}
	b.path.Hear(func(*device.Peer, []byte) {})
	if err := a.path.Tell(lanes[0][0], note); err != nil {
		t.Fatal(err)
	}
	if p := b.takeAny(100 * time.Millisecond); p != nil {
		t.Errorf("a note comes out: %x", p)
	}
}
