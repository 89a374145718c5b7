package datapath

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// counted returns a worker of a path with some ports, and how often each of their sockets is read: 2 and 3 are those of the
// second port. waiting has how many batches each of them has.
func counted(t *testing.T, ports int) (w *worker, reads, waiting []int) {
	t.Helper()
	reads, waiting = make([]int, 2*ports), make([]int, 2*ports)
	at := func(place int, six bool) *receiver {
		source := sourceOf(place, six)
		return &receiver{place: uint8(place), read: func(b *batch) bool {
			reads[source]++
			if waiting[source] == 0 {
				return false
			}
			waiting[source]--
			b.size, b.segment = 0, 1
			return true
		}}
	}
	w = newEnd(t, 1).detached()
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(pipe[0]); unix.Close(pipe[1]) }) //nolint:errcheck // there is nothing in it
	w.queue, w.read = pipe[0], make([]byte, maxRead)
	var more []port
	for place := 1; place < ports; place++ {
		more = append(more, port{at(place, false), at(place, true)})
	}
	w.path.four, w.path.six = at(0, false), at(0, true)
	w.path.setMore(more)
	return w, reads, waiting
}

// A worker that was woken reads the sockets that it was told of, and no others before it sleeps again.
func TestWoken(t *testing.T) {
	for _, ports := range []int{1, 16} {
		w, reads, waiting := counted(t, ports)
		for source := range reads {
			waiting[source] = 1
			w.tell(source)
			turns := 0
			for w.work() {
				turns++
			}
			if turns != 1 || reads[source] != 3 { // what there is, that there is nothing more, and the same before it sleeps
				t.Errorf("socket %d of %d was read %d times in %d turns", source, len(reads), reads[source], turns)
			}
			reads[source] = 0
			if n := slices.Max(reads); n > 0 {
				t.Errorf("for a packet at socket %d others were read: %v", source, reads)
			}
		}
		w.tell(sourceTun)
		if w.work() || slices.Max(reads) > 0 {
			t.Errorf("for the tun device sockets were read: %v", reads)
		}
		if w.told != 0 || w.tunTold || w.busy != 0 {
			t.Errorf("it goes to sleep with %x, %v, %d", w.told, w.tunTold, w.busy)
		}
	}
}

// A worker that never sleeps, as one socket has always something, comes to the others although nobody tells it.
func TestNeverSleeps(t *testing.T) {
	const ports = 16
	for busy := range 2 * ports {
		w, reads, waiting := counted(t, ports)
		w.tell(busy)
		for source := range waiting {
			waiting[source] = 1
		}
		waiting[busy] = 1 << 20
		for range 2*ports + busyTurns {
			if !w.work() {
				t.Fatal("it goes to sleep")
			}
		}
		for source, n := range waiting {
			if source != busy && n > 0 {
				t.Errorf("socket %d is forgotten beside %d", source, busy)
			}
		}
		if w.told == 0 || reads[busy] < ports {
			t.Errorf("the busy socket was read %d times", reads[busy])
		}
	}
}

// Whatever comes by many ports to several workers that sleep and wake is delivered at once: no edge is lost.
func TestNothingForgotten(t *testing.T) {
	const ports, flows, rounds = 6, 32, 60
	a, b, lanes := linked(t, "127.0.0.1", 3, ports)
	s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(200)}
	a.reaches(b, s.bytes())
	meet(t, lanes)
	a.reaches(b, s.bytes())
	lanes[0][0].Spread(lanes[0])
	longest := time.Duration(0)
	for round := range rounds {
		begun := time.Now()
		for flow := range flows {
			s.from = netipPort(four[0], uint16(2000+flow))
			for part := range 1 + round%4 {
				binary.BigEndian.PutUint32(s.payload, uint32(round<<8|part))
				a.put(flow%3, append(make([]byte, sizeVnet), s.bytes()...))
			}
		}
		for came := 0; came < flows*(1+round%4); {
			p := b.takeAny(time.Second)
			if p == nil {
				t.Fatalf("round %d: %d of %d packets came", round, came, flows*(1+round%4))
			}
			came += len(p)
		}
		longest = max(longest, time.Since(begun))
		time.Sleep(time.Duration(round%5) * time.Millisecond) // they sleep, or nearly do
	}
	t.Logf("the longest round took %v", longest)
}

// While a socket is full, what comes by other ports is taken.
func TestFullBesidePorts(t *testing.T) {
	a, b, lanes := linked(t, "127.0.0.1", 1, 4)
	s := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
	a.reaches(b, s.bytes())
	meet(t, lanes)
	a.reaches(b, s.bytes())
	back := s
	back.from, back.to = s.to, s.from
	b.reaches(a, back.bytes())
	var full atomic.Bool
	full.Store(true)
	a.fails(func([]byte, int, *device.Endpoint) unix.Errno {
		if full.Load() {
			return unix.EAGAIN
		}
		return 0
	})
	a.put(0, append(make([]byte, sizeVnet), s.bytes()...))
	time.Sleep(20 * time.Millisecond)
	lanes[1][0].Spread([]*device.Peer{lanes[1][3]})
	begun := time.Now()
	for range 20 {
		b.reaches(a, back.bytes())
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("20 packets took %v to come by a port beside a full socket", took)
	}
	full.Store(false)
	if p := b.takeAny(patience); p == nil {
		t.Error("what waited for room does not come")
	}
}

// cpuTime returns the CPU time of this process, in nanoseconds.
func cpuTime(t testing.TB) int64 {
	t.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return used.Nano()
}

// BenchmarkPingPong measures a packet there and one back, one after the other: workers sleep before each. It goes by the
// first port, whatever others the ends have.
func BenchmarkPingPong(b *testing.B) {
	for _, ports := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("ports %d", ports), func(b *testing.B) {
			near, far, _ := linked(b, "127.0.0.1", 1, ports)
			there := sample{from: four[0], to: four[1], protocol: unix.IPPROTO_UDP, payload: letters(100)}
			back := there
			back.from, back.to = there.to, there.from
			near.reaches(far, there.bytes())
			far.reaches(near, back.bytes())
			ping, pong := append(make([]byte, sizeVnet), there.bytes()...), append(make([]byte, sizeVnet), back.bytes()...)
			room := make([]byte, 1<<17)
			wait := func(e *end) {
				poll := []unix.PollFd{{Fd: int32(e.tun[0]), Events: unix.POLLIN}}
				for n := 0; n <= 0; { // -1: a signal
					n, _ = unix.Poll(poll, -1)
				}
				if _, err := unix.Read(e.tun[0], room); err != nil {
					b.Fatal(err)
				}
			}
			before := cpuTime(b)
			for b.Loop() {
				near.put(0, ping)
				wait(far)
				far.put(0, pong)
				wait(near)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
