package datapath

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
)

// total adds what the workers have done.
func total(p *Path) (all Work) {
	for _, w := range p.Work() {
		all.SentPackets += w.SentPackets
		all.SentBytes += w.SentBytes
		all.SentLost += w.SentLost
		all.ReceivedPackets += w.ReceivedPackets
		all.ReceivedBytes += w.ReceivedBytes
		all.ReceivedLost += w.ReceivedLost
	}
	return all
}

// minus returns what was done since.
func (w Work) minus(before Work) Work {
	w.SentPackets -= before.SentPackets
	w.SentBytes -= before.SentBytes
	w.SentLost -= before.SentLost
	w.ReceivedPackets -= before.ReceivedPackets
	w.ReceivedBytes -= before.ReceivedBytes
	w.ReceivedLost -= before.ReceivedLost
	return w
}

// until waits for a moment.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// The workers count the packets inside the tunnel, those that are put together too, and what is lost.
func TestWork(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 3)
	s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_TCP, flags: flagACK, payload: letters(30000)}
	good := s
	good.payload = letters(10)
	a.reaches(b, good.bytes()) // there is a session now
	before, received := total(a.path), total(b.path)
	super := together(&s, 1000)
	a.put(1, super)
	packets, bytes, came := 0, 0, 0
	for _, p := range all(super) {
		packets, bytes = packets+1, bytes+len(p)
	}
	for came < packets {
		got := b.takeAny(patience)
		if got == nil {
			t.Fatalf("of %d packets only %d came", packets, came)
		}
		came += len(got)
	}
	stranger := s
	stranger.to, stranger.payload = stranger.from, letters(10) // its own network: no peer has it
	a.put(2, append(make([]byte, sizeVnet), stranger.bytes()...))
	spoofed := s
	spoofed.from, spoofed.payload = spoofed.to, letters(10) // the other end has no peer with that address
	a.put(0, append(make([]byte, sizeVnet), spoofed.bytes()...))
	both := func() (there, here Work) { return total(a.path).minus(before), total(b.path).minus(received) }
	until(t, "both lost packets are counted", func() bool { there, here := both(); return there.SentLost == 1 && here.ReceivedLost == 1 })
	if w, _ := both(); int(w.SentPackets) != packets+1 || int(w.SentBytes) != bytes+len(spoofed.bytes()) || w.ReceivedPackets != 0 || w.ReceivedLost != 0 {
		t.Errorf("%d packets of %d bytes and a wrong one went: %+v", packets, bytes, w)
	}
	if _, w := both(); int(w.ReceivedPackets) != packets || int(w.ReceivedBytes) != bytes || w.SentPackets != 0 || w.SentLost != 0 {
		t.Errorf("%d packets of %d bytes came: %+v", packets, bytes, w)
	}
}

// A worker runs where it is told to, and after it has begun anew.
func TestPlace(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 2)
	home, err := cpulist.OfThread(0)
	if err != nil {
		t.Fatal(err)
	}
	good := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
	a.reaches(b, good.bytes())
	last := home[len(home)-1:]
	if err := a.path.Place(1, last); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		w := a.path.Work()
		for i, want := range [][]int{home, last} {
			if really, err := cpulist.OfThread(w[i].Thread); err != nil || !slices.Equal(w[i].Allowed, want) || !slices.Equal(really, want) {
				t.Errorf("worker %d may run on %v and is said to on %v, not on %v: %v", i, really, w[i].Allowed, want, err)
			}
		}
	}
	check()
	before := a.path.Work()[1].Thread
	a.set("listen_port=0\n")
	until(t, "the workers run again", func() bool { w := a.path.Work(); return w[0].Thread != 0 && w[1].Thread != 0 && w[1].Thread != before })
	check()
	other := good
	other.payload = letters(120)
	a.reaches(b, other.bytes())
	for _, queue := range []int{-1, 2} {
		if err := a.path.Place(queue, last); !errors.Is(err, ErrNoWorker) {
			t.Errorf("worker %d: %v", queue, err)
		}
	}
	if err := a.path.Place(0, []int{cpulist.MaxCPU}); err == nil {
		t.Error("a core that is not there is accepted")
	}
	check()
}

// What finds no room in the socket is counted.
func TestSocketLost(t *testing.T) {
	a := newEnd(t, 1)
	w := newWire(t, a.port)
	fd := a.path.four.socket.fd
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 2048); err != nil {
		t.Fatal(err)
	}
	a.path.four.reading.Lock() // nobody reads
	for range 100 {
		if _, err := w.far.Write(letters(1000)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "datagrams are dropped", func() bool { return a.path.SocketLost() > 50 })
	a.path.four.reading.Unlock()
}
