package userspace

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shut has the kernel drop what comes to ports of the end, until open is called. The engine does not know of that.
func (e *end) shut(places ...uint16) (open func()) {
	e.Helper()
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	var shut []int
	for _, place := range places {
		all := socketsOf(e.TB, e.port+place)
		if len(all) == 0 {
			e.Fatalf("nobody listens on port %d", e.port+place)
		}
		shut = append(shut, all...)
	}
	for _, fd := range shut {
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing}); err != nil {
			e.Fatal(err)
		}
	}
	return func() {
		e.Helper()
		for _, fd := range shut {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil {
				e.Fatal(err)
			}
		}
	}
}

// socketsOf returns this process's sockets on a port.
func socketsOf(t testing.TB, port uint16) (all []int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		at, err := unix.Getsockname(fd)
		if err != nil {
			continue // it is no socket
		}
		switch at := at.(type) {
		case *unix.SockaddrInet4:
			if at.Port == int(port) {
				all = append(all, fd)
			}
		case *unix.SockaddrInet6:
			if at.Port == int(port) {
				all = append(all, fd)
			}
		}
	}
	return all
}

// stood is how long a connection may stand still when its port carries nothing any more: 2 s, and what a busy machine adds.
const stood = 3500 * time.Millisecond

// A far end whose ports but the first are blocked from the beginning is reached by the first. The others are used when they
// are open.
func TestBlockedPorts(t *testing.T) {
	a, b := strangers(t, 3, 3)
	open := b.shut(1, 2)
	a.greets(b)
	time.Sleep(50 * time.Millisecond)
	traffic := exchange(a, b)
	for until := time.Now().Add(10 * time.Second); !strings.Contains(a.link().Why, "nothing comes back by the other ports"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%+v", a.link())
		}
	}
	if w := a.link(); w.Used != 1 || len(w.Ports) != 3 || w.Ports[1].Works || w.Ports[1].Sent > 0 {
		t.Errorf("%+v", w)
	}
	time.Sleep(2 * time.Second)
	if w := b.link(); w.Used != 1 || w.Ports[1].Received > 0 {
		t.Errorf("blocked ports are used: %+v", w)
	}
	sent, came, longest := traffic.stop()
	if came[0] != sent[0] || came[1] != sent[1] {
		t.Errorf("of %v datagrams %v came, and a connection stood still for %v", sent, came, longest)
	}
	open()
	uses(t, 3, 20*time.Second, a, b)
}

// Ports that are blocked later are left by both ends in time, and used again when they are open: all but the first, and one
// that carries packets one way still. There the end that hears nothing tells the other.
func TestBlockedLater(t *testing.T) {
	for _, c := range []struct {
		name   string
		places []uint16
		both   bool // ways
	}{{"all but the first", []uint16{1, 2}, true}, {"one, one way", []uint16{1}, false}} {
		t.Run(c.name, func(t *testing.T) {
			a, b := twoEnds(t, 3, 3)
			uses(t, 3, 5*time.Second, a, b)
			traffic := exchange(a, b)
			time.Sleep(500 * time.Millisecond)
			opens := []func(){b.shut(c.places...)}
			if c.both {
				opens = append(opens, a.shut(c.places...))
			}
			left := 3 - len(c.places)
			uses(t, left, 5*time.Second, a, b)
			time.Sleep(2 * time.Second)
			uses(t, left, 0, a, b)
			if w := a.link(); w.Why == "" || w.Fewer {
				t.Errorf("a port is blocked: %+v", w)
			}
			sent, came, longest := traffic.stop()
			t.Logf("of %v datagrams %v came, longest %v", sent, came, longest)
			if longest < time.Second || longest > stood {
				t.Errorf("a connection stood still for %v", longest)
			}
			traffic = exchange(a, b)
			for _, open := range opens {
				open()
			}
			uses(t, 3, 20*time.Second, a, b)
			if sent, came, _ := traffic.stop(); came[0] < sent[0]*99/100 || came[1] < sent[1]*99/100 {
				t.Errorf("while the ports are used again, of %v datagrams %v came", sent, came)
			}
		})
	}
}

// What answers peers whose links are not to be wide is another process to them after one was.
func TestBoot(t *testing.T) {
	a := newEnd(t, 1)
	b := newEnd(t, 2)
	t.Cleanup(func() { a.stop(); b.stop() })
	a.port, b.port = freePorts(t, 8), freePorts(t, 8)
	before := a.wides.boot
	if a.knows(b, 0); a.wides.boot != before {
		t.Error("it is another one without a reason")
	}
	if a.knows(b, 3); a.wides.boot == before {
		t.Error("it is the same as before")
	}
}
