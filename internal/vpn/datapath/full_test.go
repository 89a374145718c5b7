package datapath

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
)

// fails has the end's IPv4 socket be asked f before each datagram that it sends.
func (e *end) fails(f fault) { e.path.four.socket.fault.Store(&f) }

// numbered is a packet of the first end's with a number in it.
func numbered(i int) []byte {
	s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(1000)}
	binary.BigEndian.PutUint32(s.payload, uint32(i))
	return s.bytes()
}

// A full socket does not stop what comes, and nothing is lost or out of order when it has room again, though it takes
// one message of a batch and not the next.
func TestFullSocket(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	good := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
	back := good
	back.from, back.to = good.to, good.from
	a.reaches(b, good.bytes())
	b.reaches(a, back.bytes())
	var full atomic.Bool
	full.Store(true)
	asked := 0
	a.fails(func(messages []byte, segment int, _ *device.Endpoint) unix.Errno {
		if asked++; full.Load() || asked%3 > 0 {
			return unix.EAGAIN
		}
		if len(messages) > segment && asked%2 == 0 {
			return unix.EINVAL // one by one, then
		}
		return 0
	})
	const count = 40
	super := together(&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(30000)}, 1000)
	for i := range count {
		a.put(0, append(make([]byte, sizeVnet), numbered(i)...))
		a.put(0, super)
	}
	begun := time.Now()
	for range 20 {
		b.reaches(a, back.bytes())
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("20 packets took %v to come beside a full socket", took)
	}
	full.Store(false)
	var got [][]byte
	for len(got) < count*31 {
		p := b.takeAny(patience)
		if p == nil {
			t.Fatalf("only %d packets came: %q", len(got), a.errors)
		}
		got = append(got, p...)
	}
	for i, p := range got {
		switch {
		case i%31 == 0:
			if n := int(binary.BigEndian.Uint32(p[28:])); n != i/31 {
				t.Fatalf("packet %d comes where %d should", n, i/31)
			}
		case !bytes.Equal(p, all(super)[i%31-1]):
			t.Fatalf("packet %d of what was put together is %x", i%31-1, p[:60])
		}
	}
	if len(a.errors) > 0 {
		t.Errorf("errors: %q", a.errors)
	}
}

// A message that is no data does not wait in whoever sends it, and is not lost.
func TestLate(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	a.reaches(b, numbered(0))
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	to := &device.Endpoint{Remote: c.LocalAddr().(*net.UDPAddr).AddrPort()}
	var full atomic.Bool
	full.Store(true)
	a.fails(func([]byte, int, *device.Endpoint) unix.Errno {
		if full.Load() {
			return unix.EAGAIN
		}
		return 0
	})
	send := func(message string) {
		t.Helper()
		begun := time.Now()
		if err := a.path.Send([]byte(message), to); err != nil {
			t.Errorf("%q is not sent: %v", message, err)
		}
		if took := time.Since(begun); took > 50*time.Millisecond {
			t.Errorf("to send %q took %v", message, took)
		}
	}
	for i := range 10 {
		a.put(0, append(make([]byte, sizeVnet), numbered(i)...)) // the worker waits for room, too
	}
	send("first")
	send("second")
	full.Store(false)
	room := make([]byte, 100)
	for _, want := range []string{"first", "second"} {
		c.SetReadDeadline(time.Now().Add(patience)) //nolint:errcheck // the read fails then
		n, err := c.Read(room)
		if err != nil || string(room[:n]) != want {
			t.Fatalf("%q came instead of %q, %v", room[:n], want, err)
		}
	}
	full.Store(true)
	for i := range maxLate + 1 { // what is too much is refused
		if err := a.path.Send([]byte("more"), to); (err != nil) != (i == maxLate) {
			t.Errorf("message %d: %v", i, err)
		}
	}
	begun := time.Now()
	a.device.Close()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("while messages wait, to close took %v", took)
	}
}

// A socket that is full though it is said to have room is not asked again and again.
func TestVain(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	a.reaches(b, numbered(0))
	var asked atomic.Int32
	var full atomic.Bool
	full.Store(true)
	a.fails(func([]byte, int, *device.Endpoint) unix.Errno {
		if asked.Add(1); full.Load() {
			return unix.EAGAIN
		}
		return 0
	})
	waits := numbered(1)
	a.put(0, append(make([]byte, sizeVnet), waits...))
	peer := a.device.LookupPeer(device.NoisePublicKey(b.secret.Public()))
	if err := a.path.Send([]byte("waits"), peer.Endpoint()); err != nil {
		t.Error(err)
	}
	const long = 500 * time.Millisecond
	time.Sleep(long)
	if n := asked.Load(); n > 4*int32(long/time.Millisecond) {
		t.Errorf("the kernel was asked %d times in %v", n, long)
	}
	full.Store(false)
	if got := b.takeAny(patience); got == nil || !bytes.Equal(got[0], waits) {
		t.Error("what waited did not come")
	}
}

// Where the way to one peer splits no datagrams, others do not suffer, and it is tried again when the peer is elsewhere.
func TestUnsplit(t *testing.T) {
	hub, near, far := newEnd(t, 1), newEnd(t, 1), newEnd(t, 1)
	hub.meets(near.secret.Public(), "127.0.0.1", near.port, "10.2.0.0/16")
	hub.meets(far.secret.Public(), "127.0.0.1", far.port, "10.3.0.0/16")
	other := netip.MustParseAddrPort("10.3.0.1:443")
	for _, e := range []*end{near, far} {
		e.meets(hub.secret.Public(), "127.0.0.1", hub.port, "10.1.0.0/16")
	}
	var together [2]atomic.Int32 // datagrams of several messages, to each
	hub.fails(func(messages []byte, segment int, to *device.Endpoint) unix.Errno {
		if len(messages) <= segment {
			return 0
		}
		if to.Remote.Port() == near.port {
			together[0].Add(1)
			return 0
		}
		together[1].Add(1)
		return unix.EIO
	})
	send := func(to *end, address netip.AddrPort) {
		comesOut(t, hub, to, &sample{from: four[0], to: address, protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(30000)})
	}
	hub.reaches(near, numbered(0))
	hub.reaches(far, (&sample{from: four[0], to: other, protocol: unix.IPPROTO_UDP, payload: letters(100)}).bytes())
	for range 5 {
		send(far, other)
		send(near, four[1])
	}
	if n, f := together[0].Load(), together[1].Load(); n < 5 || f != 1 {
		t.Errorf("%d datagrams together to the peer that takes them, %d to the other", n, f)
	}
	peer := hub.device.LookupPeer(device.NoisePublicKey(far.secret.Public()))
	peer.SetEndpointFromPacket(&device.Endpoint{Remote: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), far.port), Local: netip.MustParseAddr("127.0.0.7")})
	send(far, other)
	if f := together[1].Load(); f != 2 {
		t.Errorf("elsewhere it is tried %d times", f-1)
	}
}

// The address that a peer is sent to from is forgotten when it is gone, and not when the kernel does not split.
func TestRefusedSplit(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuses func(messages []byte, segment int, to *device.Endpoint) bool
		forgets bool
	}{
		{"too long to split", func(messages []byte, segment int, _ *device.Endpoint) bool { return len(messages) > segment }, false},
		{"no such address", func(_ []byte, _ int, to *device.Endpoint) bool { return to.Local.IsValid() }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pairOf(t, "127.0.0.1", 1)
			back := sample{from: four[1], to: four[0], protocol: unix.IPPROTO_UDP, payload: letters(100)}
			b.reaches(a, back.bytes())
			peer := a.device.LookupPeer(device.NoisePublicKey(b.secret.Public()))
			if !peer.Endpoint().Local.IsValid() {
				t.Fatal("the peer came to no address")
			}
			var refused atomic.Int32
			a.fails(func(messages []byte, segment int, to *device.Endpoint) unix.Errno {
				if c.refuses(messages, segment, to) {
					refused.Add(1)
					return unix.EINVAL
				}
				return 0
			})
			comesOut(t, a, b, &sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(30000)})
			if refused.Load() == 0 {
				t.Error("nothing was refused")
			}
			if has := peer.Endpoint().Local.IsValid(); has == c.forgets {
				t.Errorf("the peer has an address to be sent to from: %v", has)
			}
		})
	}
}

// What the answer does to the timers of a peer comes after what sending does, which does not hang on the send's error.
func TestTimersBefore(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	a.reaches(b, numbered(0))
	peer := a.device.LookupPeer(device.NoisePublicKey(b.secret.Public()))
	b.reaches(a, (&sample{from: four[1], to: four[0], protocol: unix.IPPROTO_UDP, payload: letters(100)}).bytes())
	if peer.Unanswered() {
		t.Fatal("what was sent is not answered")
	}
	said := make(chan bool, 100)
	a.fails(func([]byte, int, *device.Endpoint) unix.Errno {
		said <- peer.Unanswered()
		return unix.ENETUNREACH
	})
	a.put(0, append(make([]byte, sizeVnet), numbered(1)...))
	if !<-said {
		t.Error("when a packet is sent, no answer is expected yet")
	}
	if !peer.Unanswered() {
		t.Error("after an error nobody looks for an answer")
	}
}

// Datagrams are not put together for a kernel that does not know it.
func TestWithoutUDP(t *testing.T) {
	for _, without := range []bool{false, true} {
		a, b := newEnd(t, 1), &end{TB: t, secret: key.NewPrivate(), noUDP: without}
		b.start(1)
		a.meets(b.secret.Public(), "127.0.0.1", b.port, "10.2.0.0/16")
		b.meets(a.secret.Public(), "127.0.0.1", a.port, "10.1.0.0/16")
		a.reaches(b, numbered(0))
		for _, protocol := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			most := 0
			a.put(0, together(&sample{from: four[0], to: four[1], protocol: protocol, flags: flagACK, payload: letters(30000)}, 1000))
			for came := 0; came < 30; {
				got := b.takeAny(patience)
				if got == nil {
					t.Fatalf("protocol %d: only %d packets came", protocol, came)
				}
				came += len(got)
				most = max(most, len(got))
			}
			if together := most > 1; together != (protocol == unix.IPPROTO_TCP || !without) {
				t.Errorf("without it: %v; protocol %d: %d packets are written at once", without, protocol, most)
			}
		}
	}
}
