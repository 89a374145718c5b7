package datapath

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// detached returns a worker of the end that has no thread, and no tun device: it cannot write there.
func (e *end) detached() *worker {
	e.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // takes 8 bytes at least
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { unix.Close(fd) }) //nolint:errcheck // the test is over
	p := New(Tun{Queues: []int{fd}}, func() { e.Error("the tun device is gone") })
	p.Carry(e.device)
	return &worker{path: p, queue: -1, mtu: device.DefaultMTU, clock: time.Now()}
}

// The worker that delivers looks at its own queue now and then, however much others decrypt meanwhile; and what it
// has left then is delivered.
func TestTakesTurns(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	a.reaches(b, numbered(0))
	keypair := a.device.LookupPeer(device.NoisePublicKey(b.secret.Public())).Sending(time.Now())
	if keypair == nil {
		t.Fatal("there is no session")
	}
	w, others, r := b.detached(), b.detached(), &receiver{}
	var nonce device.Nonce
	gives := true
	r.read = func(into *batch) bool {
		number, _ := keypair.Reserve(1)
		packet := (&sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(20)}).bytes()
		room := append(packet, make([]byte, device.PaddingMultiple)...)
		into.size = copy(into.buffer, keypair.Seal(make([]byte, maxMessage), room[:len(packet)], number, device.DefaultMTU, &nonce))
		into.segment = into.size
		return gives
	}
	const many = 500
	delivered, left := 0, many
	b.mu.Lock()
	b.told = func(text string) { // the packet of a batch could not be written
		if delivered++; !strings.HasPrefix(text, "write to the tun device") {
			t.Error(text)
		}
		gives = true
		for ; left > 0 && r.head.Load()-r.tail.Load() < inFlight; left-- { // another worker decrypts
			next := others.readBatch(r)
			others.decrypt(next)
			next.done.Store(true)
		}
		gives = false
	}
	b.mu.Unlock()
	turns := 0
	for before := 0; w.fromSocket(r); before = delivered {
		if turns++; delivered-before > deliveries+socketReads {
			t.Fatalf("in one turn, a worker has delivered %d batches", delivered-before)
		}
	}
	if delivered != many+1 {
		t.Errorf("%d batches were delivered in %d turns", delivered, turns)
	}
}

// Somebody who could not read because another looked at a full ring is not forgotten: the ring may have room by then.
func TestMissedWhileFull(t *testing.T) {
	a := newEnd(t, 1)
	w, r := a.detached(), &receiver{}
	r.head.Store(inFlight)
	r.missed.Store(true)
	if w.readBatch(r) != nil {
		t.Error("a batch is read into a full ring")
	}
	if r.missed.Load() {
		t.Error("nobody reads for the one who could not")
	}
}

// What a socket is told of what was sent before does not hide what has come; other errors are told.
func TestErrorOfSocket(t *testing.T) {
	a := newEnd(t, 1)
	w := a.detached()
	s, err := openSocket(false, 0)
	if err != nil {
		t.Fatal(err)
	}
	port, err := s.port()
	if err == nil {
		err = unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	nobody := &device.Endpoint{Remote: closed.LocalAddr().(*net.UDPAddr).AddrPort()}
	closed.Close()
	if e := w.datagram.send(s, []byte("hello"), 5, 0, nobody); e != 0 {
		t.Fatal(e)
	}
	c, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	r := &receiver{socket: s}
	b := r.take()
	if !w.fill(r, b) || string(b.buffer[:b.size]) != "answer" {
		t.Errorf("behind an error, %q is read", b.buffer[:b.size])
	}
	if w.fill(r, b) || len(a.errors) > 0 {
		t.Errorf("of an empty socket it is told: %q", a.errors)
	}
	unix.Close(s.fd) //nolint:errcheck // it is what is tested
	if w.fill(r, b) || !slices.Contains(a.errors, "read from the port: bad file descriptor") {
		t.Errorf("of a socket that is gone it is told: %q", a.errors)
	}
}

// Who may not have buffers of any size has them as large as everybody may.
func TestRoomForEverybody(t *testing.T) {
	got := make(chan int)
	go func() {
		defer close(got)
		runtime.LockOSThread() // the thread ends with what it may not do any more
		header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capset(&header, &none[0]); err != nil {
			t.Error(err)
			return
		}
		s, err := openSocket(false, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(s.fd) //nolint:errcheck // the test is over
		n, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		if err != nil {
			t.Error(err)
			return
		}
		got <- n
	}()
	room, plain := <-got, plainRoom(t)
	if room <= plain {
		t.Errorf("the socket has room for %d bytes, as any other has: %d", room, plain)
	}
}

// plainRoom returns the size of the buffer of a socket that nobody has set.
func plainRoom(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) //nolint:errcheck // the test is over
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
