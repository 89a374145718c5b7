package datapath

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
)

// An end is an end of a tunnel. The queues of its tun device are pairs of sockets.
type end struct {
	testing.TB
	secret key.Secret
	device *device.Device
	path   *Path
	tun    []int // the other ends of the queues
	port   uint16
	noUDP  bool // the kernel does not know datagrams that are put together

	mu     sync.Mutex
	errors []string
	told   func(text string) // of each error
}

func newEnd(t testing.TB, workers int) *end {
	t.Helper()
	e := &end{TB: t, secret: key.NewPrivate()}
	e.start(workers)
	return e
}

// start starts a path, as a process does.
func (e *end) start(workers int) {
	e.Helper()
	var queues []int
	e.tun = nil
	for range workers {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			e.Fatal(err)
		}
		for _, fd := range pair {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20) //nolint:errcheck // less does, too
		}
		if err := unix.SetNonblock(pair[0], true); err != nil {
			e.Fatal(err)
		}
		queues, e.tun = append(queues, pair[0]), append(e.tun, pair[1])
	}
	tun := e.tun
	e.path = New(Tun{Queues: queues, UDP: !e.noUDP}, func() { e.Error("the tun device is gone") })
	e.device = device.NewDevice(e.path, 1420, &device.Logger{Verbosef: device.DiscardLogf, Errorf: func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		e.mu.Lock()
		e.errors = append(e.errors, text)
		told := e.told
		e.mu.Unlock()
		if told != nil {
			told(text)
		}
	}})
	e.path.Carry(e.device)
	d := e.device
	e.Cleanup(func() {
		d.Close()
		for i := range queues {
			unix.Close(queues[i]) //nolint:errcheck // the test is over
			unix.Close(tun[i])    //nolint:errcheck // the test is over
		}
	})
	raw := e.secret.Reveal()
	e.set("private_key=%s\nlisten_port=%d\n", hex.EncodeToString(raw[:]), e.port)
	if err := e.device.Up(); err != nil {
		e.Fatal(err)
	}
	if e.port == 0 {
		e.port = e.path.boundPort(e)
	}
}

func (p *Path) boundPort(t testing.TB) uint16 {
	port, err := p.four.socket.port()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (e *end) set(format string, args ...any) {
	e.Helper()
	if err := e.device.IpcSet(fmt.Sprintf(format, args...)); err != nil {
		e.Fatal(err)
	}
}

// meets has the end know a peer, at a port of an address of this machine.
func (e *end) meets(peer key.Public, address string, port uint16, networks ...string) {
	e.Helper()
	text := "public_key=" + peer.Hex() + "\n"
	if port != 0 {
		text += fmt.Sprintf("endpoint=%s\n", net.JoinHostPort(address, fmt.Sprint(port)))
	}
	for _, n := range networks {
		text += "allowed_ip=" + n + "\n"
	}
	e.set("%s", text)
}

// put gives the end a packet, through one of its queues.
func (e *end) put(queue int, read []byte) {
	e.Helper()
	if _, err := unix.Write(e.tun[queue], read); err != nil {
		e.Fatal(err)
	}
}

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// take returns the next packets that the end writes to a queue, or nil if there are none for a time.
func (e *end) take(queue int, wait time.Duration) [][]byte {
	e.Helper()
	poll := []unix.PollFd{{Fd: int32(e.tun[queue]), Events: unix.POLLIN}}
	if n, _ := unix.Poll(poll, int(wait.Milliseconds())); n <= 0 { // -1: a signal
		return nil
	}
	b := make([]byte, 1<<17)
	n, err := unix.Read(e.tun[queue], b)
	if err != nil {
		e.Fatal(err)
	}
	return all(b[:n])
}

// takeAny returns the next packets of any queue.
func (e *end) takeAny(wait time.Duration) [][]byte {
	e.Helper()
	for until := time.Now().Add(wait); ; {
		for i := range e.tun {
			if p := e.take(i, 0); p != nil {
				return p
			}
		}
		if time.Now().After(until) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// reaches sends a packet and waits until it comes out at another end.
func (e *end) reaches(to *end, packet []byte) {
	e.Helper()
	e.put(0, append(make([]byte, sizeVnet), packet...))
	for got := to.takeAny(patience); ; got = to.takeAny(patience) {
		if got == nil {
			e.Fatalf("a packet of %d bytes did not come\n%q %q", len(packet), e.errors, to.errors)
		}
		for _, p := range got {
			if bytes.Equal(p, packet) {
				return
			}
		}
	}
}

// pairOf returns two ends that know each other: the networks of four[0] and six[0] are behind the first. at is
// the address of this machine that they talk to.
func pairOf(t testing.TB, at string, workers int) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, workers), newEnd(t, workers)
	a.meets(b.secret.Public(), at, b.port, "10.2.0.0/16", "fd02::/64")
	b.meets(a.secret.Public(), at, a.port, "10.1.0.0/16", "fd01::/64")
	return a, b
}

// A wire stands between two ends: what the first sends to its port it passes on to the second, and back.
type wire struct {
	near, far *net.UDPConn
	port      uint16 // where the first end sends
	mu        sync.Mutex
	seen      [][]byte                    // what the first end has sent
	from      atomic.Pointer[net.UDPAddr] // the first end
}

func newWire(t testing.TB, to uint16) *wire {
	t.Helper()
	w := &wire{}
	var err error
	if w.near, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	w.port = uint16(w.near.LocalAddr().(*net.UDPAddr).Port)
	if w.far, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(to)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*net.UDPConn{w.near, w.far} { // a wire has room for a burst
		raw, err := c.SyscallConn()
		if err == nil {
			raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) }) //nolint:errcheck // it is open
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { w.near.Close(); w.far.Close() })
	go func() {
		for b := make([]byte, 1<<16); ; {
			n, from, err := w.near.ReadFromUDP(b)
			if err != nil {
				return
			}
			w.from.Store(from)
			w.mu.Lock()
			w.seen = append(w.seen, append([]byte{}, b[:n]...))
			w.mu.Unlock()
			w.far.Write(b[:n]) //nolint:errcheck // lost, as on a wire
		}
	}()
	go func() {
		for b := make([]byte, 1<<16); ; {
			n, err := w.far.Read(b)
			if err != nil {
				return
			}
			w.near.WriteToUDP(b[:n], w.from.Load()) //nolint:errcheck // lost, as on a wire
		}
	}()
	return w
}

// messages returns what the first end has sent so far, of a type.
func (w *wire) messages(kind byte) (all [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.seen {
		if m[0] == kind {
			all = append(all, m)
		}
	}
	return all
}

func endpointOf(t testing.TB, e *end, k key.Public) netip.AddrPort {
	t.Helper()
	p := e.device.LookupPeer(device.NoisePublicKey(k))
	if p == nil || p.Endpoint() == nil {
		return netip.AddrPort{}
	}
	return p.Endpoint().Remote
}
