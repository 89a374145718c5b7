package userspace

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/datapath"
	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/internal/vpn/wide"
	"weir/pf/ast"
)

// The limits of the packages are the same.
func TestMostPorts(t *testing.T) {
	if device.MostPorts != wide.MostPorts || wide.MostPorts != ast.MostPorts {
		t.Errorf("%d ports of a device, %d of a link, %d of a statement", device.MostPorts, wide.MostPorts, ast.MostPorts)
	}
	if wide.Late < device.RejectAfterTime {
		t.Errorf("an offer may come for %v, and one of before is known for %v", device.RejectAfterTime, wide.Late)
	}
}

// An end is an engine whose tun device is a pair of sockets.
type end struct {
	*Engine
	testing.TB
	secret key.Secret
	host   int // the other end of its tun device
	port   uint16
	net    byte // 10.N.0.0/16 is behind it

	mu      sync.Mutex
	remarks []string
}

func newEnd(t testing.TB, net byte) *end {
	t.Helper()
	e := &end{TB: t, secret: key.NewPrivate(), net: net}
	e.start()
	return e
}

// start starts an engine, as a process does.
func (e *end) start() {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(pair[0], true)
	}
	if err != nil {
		e.Fatal(err)
	}
	e.host = pair[1]
	e.Engine = newEngine("lo", datapath.Tun{Queues: []int{pair[0]}, UDP: true}, 1420, func(text string) { e.Log(text) })
	e.Remark(func(text string) {
		e.mu.Lock()
		e.remarks = append(e.remarks, text)
		e.mu.Unlock()
	})
}

func (e *end) stop() {
	e.Close()
	unix.Close(e.host) //nolint:errcheck // the process has ended
}

// knows has the end know the other, with a link of some ports.
func (e *end) knows(other *end, ports int) {
	e.Helper()
	c := &tunnel.Config{Private: e.secret, Port: e.port, Peers: []tunnel.Peer{{
		Key: other.secret.Public(), Endpoint: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), other.port), Wide: ports,
		Allowed: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, other.net, 0, 0}), 16)},
	}}}
	if err := e.Apply(c); err != nil {
		e.Fatal(err)
	}
}

// freePorts returns a port behind which some are free, too.
func freePorts(t testing.TB, count int) uint16 {
	t.Helper()
	for port := 20000 + int(time.Now().UnixNano()/1000%20000); port < 60000; port += count {
		free := true
		for i := range count {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			free = free && unix.Bind(fd, &unix.SockaddrInet4{Port: port + i}) == nil
			unix.Close(fd) //nolint:errcheck // it was only tried
		}
		if free {
			return uint16(port)
		}
	}
	t.Fatal("no ports are free")
	return 0
}

// twoEnds returns both ends of a link.
func twoEnds(t testing.TB, first, second int) (a, b *end) {
	t.Helper()
	a, b = strangers(t, first, second)
	a.greets(b)
	time.Sleep(50 * time.Millisecond)
	return a, b
}

// greets begins. If both did at the same moment, it would take 5 s.
func (e *end) greets(other *end) {
	e.Helper()
	if err := e.Greet(other.secret.Public()); err != nil {
		e.Fatal(err)
	}
}

// strangers returns both ends of a link of which none has begun.
func strangers(t testing.TB, first, second int) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, 1), newEnd(t, 2)
	a.port = freePorts(t, 8)
	b.port = freePorts(t, 8)
	for b.port >= a.port-8 && b.port <= a.port+8 {
		b.port = freePorts(t, 8)
	}
	t.Cleanup(func() { a.stop(); b.stop() })
	a.knows(b, first)
	b.knows(a, second)
	return a, b
}

// send sends a datagram of a flow to the other end.
func (e *end) send(to *end, flow, number int) {
	e.Helper()
	p := make([]byte, 10+28+100)
	h := p[10:]
	h[0], h[8], h[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)))
	copy(h[12:], []byte{10, e.net, 0, 1})
	copy(h[16:], []byte{10, to.net, 0, 1})
	binary.BigEndian.PutUint16(h[20:], uint16(1000+flow))
	binary.BigEndian.PutUint16(h[22:], 53)
	binary.BigEndian.PutUint16(h[24:], uint16(len(h)-20))
	binary.BigEndian.PutUint32(h[28:], uint32(number))
	if _, err := unix.Write(e.host, p); err != nil {
		e.Fatal(err)
	}
}

// take returns the numbers of datagrams that have come since.
func (e *end) take() (all []int) {
	e.Helper()
	b := make([]byte, 1<<17)
	for {
		poll := []unix.PollFd{{Fd: int32(e.host), Events: unix.POLLIN}}
		if n, _ := unix.Poll(poll, 0); n <= 0 { // -1: a signal
			return all
		}
		n, err := unix.Read(e.host, b)
		if err != nil || n < 10+32 {
			e.Fatalf("%d bytes: %v", n, err)
		}
		headers := 28
		all = append(all, int(binary.BigEndian.Uint32(b[10+headers:])))
	}
}

// flow sends in both directions, all the time.
type traffic struct {
	stop func() (sent, came [2]int, longest time.Duration)
}

// exchange sends 16 flows in both directions until it is stopped, at the latest before the ends are. It tells how many datagrams came, and the longest time
// in which a flow had none.
func exchange(a, b *end) traffic {
	done, result := make(chan struct{}), make(chan struct{})
	var sent, came [2]int
	var longest time.Duration
	go func() {
		defer close(result)
		var last [2][16]time.Time
		for i := range last {
			for j := range last[i] {
				last[i][j] = time.Now()
			}
		}
		got := func() {
			now := time.Now()
			for i, e := range []*end{b, a} {
				for _, n := range e.take() {
					came[i]++
					longest = max(longest, now.Sub(last[i][n%16]))
					last[i][n%16] = now
				}
			}
		}
		for n := 0; ; n++ {
			select {
			case <-done:
				time.Sleep(200 * time.Millisecond)
				got()
				return
			case <-time.After(500 * time.Microsecond):
			}
			a.send(b, n%16, n)
			b.send(a, n%16, n)
			sent[0]++
			sent[1]++
			got()
		}
	}()
	var once sync.Once
	stop := func() ([2]int, [2]int, time.Duration) {
		once.Do(func() { close(done) })
		<-result
		return sent, came, longest
	}
	a.Cleanup(func() { stop() })
	return traffic{stop}
}

func (e *end) link() *tunnel.Wide {
	e.Helper()
	all, err := e.States()
	if err != nil || len(all) != 1 {
		e.Fatalf("%+v, %v", all, err)
	}
	return all[0].Wide
}

// uses waits until both ends use so many ports.
func uses(t testing.TB, ports int, within time.Duration, ends ...*end) {
	t.Helper()
	for until := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		all := true
		for _, e := range ends {
			w := e.link()
			all = all && w != nil && w.Used == ports
		}
		if all {
			return
		}
		if time.Now().After(until) {
			for _, e := range ends {
				t.Errorf("%+v", e.link())
			}
			t.Fatalf("after %v the ends do not use %d ports", within, ports)
		}
	}
}

// A link is as wide as both ends have it, and carries connections by all of its ports. Nothing is lost when it becomes
// wide, is rotated, becomes narrower, wider and narrow again.
func TestTaken(t *testing.T) {
	a, b := twoEnds(t, 4, 3)
	traffic := exchange(a, b)
	uses(t, 3, 5*time.Second, a, b)
	time.Sleep(time.Second)
	w := a.link()
	if w.Wanted != 4 || len(w.Ports) != 3 || w.Why != "the other end has 3 ports" || !w.Fewer {
		t.Errorf("%+v", w)
	}
	if w := b.link(); w.Why != "" || w.Fewer {
		t.Errorf("the end with fewer ports: %+v", w)
	}
	for i, p := range w.Ports {
		if p.Port != a.port+uint16(i) || p.Endpoint.Port() != b.port+uint16(i) || p.Sent < 5000 || p.Received < 5000 || !p.Works {
			t.Errorf("port %d: %+v", i, p)
		}
	}
	keysOf := func() (all []device.NoisePublicKey) {
		a.wides.mu.Lock()
		defer a.wides.mu.Unlock()
		for _, l := range a.wides.links {
			for _, p := range l.over {
				all = append(all, p.Key())
			}
		}
		return all
	}
	before := keysOf()
	a.wides.mu.Lock()
	for _, l := range a.wides.links {
		l.of.Rotate(time.Now())
	}
	a.wides.mu.Unlock()
	time.Sleep(3 * time.Second)
	uses(t, 3, 5*time.Second, a, b)
	for _, k := range keysOf()[1:] {
		if slices.Contains(before, k) {
			t.Error("a key is in use that should be gone")
		}
	}
	for _, ports := range []int{2, 4, 0, 4} {
		a.knows(b, ports)
		if ports == 0 {
			uses(t, 1, 5*time.Second, b)
			if w := b.link(); w.Why != "the other end's statement does not say wide" || w.Fewer {
				t.Errorf("the other end is off: %+v", w)
			}
			time.Sleep(time.Second)
			continue
		}
		uses(t, min(ports, 3), 10*time.Second, a, b)
	}
	sent, came, longest := traffic.stop()
	t.Logf("sent %v, came %v, longest %v", sent, came, longest)
	for i := range sent {
		if came[i] < sent[i]-sent[i]/200 {
			t.Errorf("of %d datagrams %d came", sent[i], came[i])
		}
	}
}

// A far end that is another process, with other keys for the lanes, or with none, is noticed at once: its connections go
// by the first tunnel as soon as that works.
func TestRestarted(t *testing.T) {
	for _, ports := range []int{4, 0} {
		t.Run(fmt.Sprint(ports), func(t *testing.T) {
			a, b := twoEnds(t, 4, 4)
			uses(t, 4, 5*time.Second, a, b)
			b.stop()
			b.start()
			b.knows(a, ports)
			if err := b.Greet(a.secret.Public()); err != nil {
				t.Fatal(err)
			}
			traffic := exchange(a, b)
			if ports == 4 {
				uses(t, 4, 10*time.Second, a, b)
			} else {
				uses(t, 1, 5*time.Second, a)
			}
			time.Sleep(time.Second)
			sent, came, longest := traffic.stop()
			t.Logf("sent %v, came %v, longest %v", sent, came, longest)
			if longest > 1500*time.Millisecond {
				t.Errorf("a connection stood still for %v", longest)
			}
		})
	}
}

// isAt reports whether all ports of the end's link are at an address of the other end, and used.
func (e *end) isAt(address string) bool {
	e.Helper()
	w := e.link()
	return !slices.ContainsFunc(w.Ports, func(p tunnel.Port) bool { return p.Endpoint.Addr().String() != address }) && w.Used == len(w.Ports)
}

// at waits until all ports of the end's link are at an address of the other end.
func (e *end) at(address string) {
	e.Helper()
	for until := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if e.isAt(address) {
			return
		}
		if time.Now().After(until) {
			e.Fatalf("the ports are not all at %s, or not used: %+v", address, e.link())
		}
	}
}

// All ports of a link go where its first tunnel goes: to another way, and back, with the end that is held to it, and with
// the other one, which follows what comes. No connection stands still for long.
func TestHeld(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	a, b := twoEnds(t, 3, 3)
	traffic := exchange(a, b)
	uses(t, 3, 5*time.Second, a, b)
	ways := []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.port), netip.AddrPortFrom(netip.MustParseAddr("::1"), b.port)}
	for _, way := range []int{1, 0, 1} {
		if err := a.Hold(b.secret.Public(), tunnel.At{Remote: ways[way]}, []netip.AddrPort{ways[1-way]}); err != nil {
			t.Fatal(err)
		}
		for _, e := range []*end{a, b} {
			e.at(ways[way].Addr().String())
		}
		time.Sleep(500 * time.Millisecond)
	}
	if all, err := a.States(); err != nil || all[0].Interface != 0 {
		t.Errorf("%v: messages leave by interface %d, and none was chosen", err, all[0].Interface)
	}
	if err := a.Hold(b.secret.Public(), tunnel.At{Remote: ways[1], Interface: lo.Index}, nil); err != nil {
		t.Fatal(err)
	}
	if all, err := a.States(); err != nil || all[0].Interface != lo.Index {
		t.Errorf("%v: messages leave by interface %d, chosen was %d", err, all[0].Interface, lo.Index)
	}
	sent, came, longest := traffic.stop()
	t.Logf("sent %v, came %v, longest %v", sent, came, longest)
	if longest > 1500*time.Millisecond || came[0] < sent[0]*95/100 || came[1] < sent[1]*95/100 {
		t.Errorf("of %v datagrams %v came, and a connection stood still for %v", sent, came, longest)
	}
}

// A peer whose address is not known begins, and all ports find it where it goes.
func TestRoams(t *testing.T) {
	a, b := twoEnds(t, 3, 3)
	uses(t, 3, 5*time.Second, a, b)
	traffic := exchange(a, b)
	// Messages of b that were under way have a follow them back, until b has followed.
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until) && !(a.isAt("::1") && b.isAt("::1")); time.Sleep(20 * time.Millisecond) {
		if a.link().Ports[0].Endpoint.Addr().String() == "::1" {
			continue
		}
		if err := a.Move(b.secret.Public(), netip.AddrPortFrom(netip.MustParseAddr("::1"), b.port)); err != nil {
			t.Fatal(err)
		}
	}
	b.at("::1")
	a.at("::1")
	if _, _, longest := traffic.stop(); longest > 1500*time.Millisecond {
		t.Errorf("a connection stood still for %v", longest)
	}
}
