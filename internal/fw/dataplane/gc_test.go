package dataplane

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/state"
)

// The kernel releases expired states with their tuples and indexes, so the table can be
// filled again and again.
func TestGCReleases(t *testing.T) {
	const limit = 200
	h := newHarness(t, "set limit states 200\n"+masquerade+"pass", func(c *Config) { c.Frozen = false })
	check(t, h.dp.startGC())
	h.waitClock()
	h.keepAlive()
	for round := range 4 {
		h.liveFor(60) // none expires while the table is filled, however long that takes
		for i := range limit {
			r := h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", 1000+i))
			if r.verdict != redirect || r.reason != "rule" {
				t.Fatalf("round %d, connection %d: %s %s", round, i, r.verdict, r.reason)
			}
		}
		if r := h.in(h.xdp, "lan", "udp 192.168.1.10:1 > 198.51.100.9:53"); r.reason != "state-limit" {
			t.Errorf("round %d: one more than the limit: %s %s", round, r.verdict, r.reason)
		}
		h.liveFor(1)
		h.waitEmpty()
	}
}

// liveFor sets how long a state lives that has had one packet of UDP.
func (h *harness) liveFor(seconds uint32) {
	o := h.dp.config.Options
	o.Timeouts[state.UDPFirst] = seconds * state.TicksPerSecond
	setTimeouts(h.dp.tables.shared, &o)
}

// waitClock waits until the garbage collection has moved the clock to the present. A heartbeat
// before that is old at once if the programs took long to load: the daemon seems dead.
func (h *harness) waitClock() {
	h.tb.Helper()
	now := &h.dp.tables.shared.Now
	before := atomic.LoadUint32(now)
	for until := time.Now().Add(5 * time.Second); atomic.LoadUint32(now) == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			h.tb.Fatal("the garbage collection does not run")
		}
	}
}

// keepAlive has the daemon be alive until the test ends, however long a packet takes.
func (h *harness) keepAlive() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		beat := time.NewTicker(10 * time.Millisecond)
		defer beat.Stop()
		for {
			h.dp.Heartbeat()
			select {
			case <-stop:
				return
			case <-beat.C:
			}
		}
	}()
	h.tb.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// waitEmpty waits until the garbage collection has released every state.
func (h *harness) waitEmpty() {
	h.tb.Helper()
	s := h.dp.tables.shared
	for until := time.Now().Add(5 * time.Second); s.StatesMade != s.StatesReleased; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			h.tb.Fatalf("%d states made, %d released", s.StatesMade, s.StatesReleased)
		}
	}
	for number := range h.dp.tables.entered(h.tb) {
		h.tb.Fatalf("a tuple of state %d is left", number>>1)
	}
}

// Arming a timer is tried again if the kernel has no memory for it. Other errors, and a
// lasting lack of memory, are reported.
func TestTimerIsRearmed(t *testing.T) { synctest.Test(t, testArmedAgain) }

func testArmedAgain(t *testing.T) {
	const noMemory, busy = -int32(unix.ENOMEM), -int32(unix.EBUSY)
	for _, test := range []struct {
		results  []int32 // the last one repeats
		attempts int
		err      error
	}{
		{[]int32{0}, 1, nil},
		{[]int32{noMemory, noMemory, 0}, 3, nil},
		{[]int32{noMemory, busy}, 2, unix.EBUSY},
		{[]int32{noMemory}, armAttempts, unix.ENOMEM},
	} {
		attempts := 0
		err := armed(func() (uint32, error) {
			attempts++
			return uint32(test.results[min(attempts, len(test.results))-1]), nil
		})
		if attempts != test.attempts || !errors.Is(err, test.err) {
			t.Errorf("%d: %d attempts, %v; want %d, %v", test.results, attempts, err, test.attempts, test.err)
		}
	}
	refused := errors.New("refused")
	if err := armed(func() (uint32, error) { return 0, refused }); !errors.Is(err, refused) {
		t.Errorf("a program that does not run: %v", err)
	}
}
