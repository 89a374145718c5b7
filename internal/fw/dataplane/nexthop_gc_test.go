package dataplane

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// An unused next hop gives its number to another one. No state that held the number
// follows it there.
func TestNextHopsAge(t *testing.T) {
	const macs = "02:77:65:00:09:%02x"
	h := newHarness(t, "pass", func(c *Config) { c.Frozen = false })
	s := h.dp.tables.shared
	setTimeouts(s, &h.dp.config.Options)
	for host := range 3 {
		addNeighbour(t, h.net.lan0, fmt.Sprintf("192.168.1.%d", 20+host), fmt.Sprintf(macs, host))
	}
	check(t, h.dp.startGC())
	send := func(host int, why string) {
		t.Helper()
		h.dp.Heartbeat()
		r := h.in(h.xdp, "wan", fmt.Sprintf("udp 198.51.100.9:53 > 192.168.1.%d:1", 20+host))
		if r.verdict != redirect || r.reason != why {
			t.Fatalf("to host %d: %s %s", host, r.verdict, r.reason)
		}
		if got, want := net.HardwareAddr(r.frame[:6]).String(), fmt.Sprintf(macs, host); got != want {
			t.Errorf("the packet for host %d goes to %s, want %s", host, got, want)
		}
	}
	send(0, "rule")
	send(1, "rule")
	first := s.NexthopsHigh
	s.Nexthops[nexthopFirst].Used -= 60 * 100
	atomic.StoreUint32(&s.GcLock, 1) // as if the other generation's timer were walking
	time.Sleep(700 * time.Millisecond)
	if stage := s.Nexthops[nexthopFirst].Stage; stage != 0 {
		t.Errorf("two timers walk at once: the first next hop is in stage %d", stage)
	}
	atomic.StoreUint32(&s.GcLock, 0)
	h.until("one number is unused", func() bool { send(1, "state"); return s.NexthopsUnused == 1 })
	send(2, "rule")
	if s.NexthopsHigh != first || s.NexthopsUnused != 0 {
		t.Errorf("the unused number was not taken: %d given, %d unused", s.NexthopsHigh, s.NexthopsUnused)
	}
	send(0, "state") // its number is host 2's now
	send(1, "state")
	send(2, "state")

	// Results of an old route generation are forgotten before its number comes round
	// again.
	h.dp.BumpRoutes()
	held := func() (n int) {
		for i := range h.dp.tables.states {
			if x := &h.dp.tables.states[i]; x.Status == statusLive && x.Forth.Nexthop >= nexthopFirst {
				x.CheckAt = s.Now
				n++
			}
		}
		return n
	}
	h.until("no state holds a number of the old generation", func() bool { return held() == 0 })

	// All numbers are in use: the stack forwards.
	high := s.NexthopsHigh
	s.NexthopsHigh = uint32(len(s.Nexthops))
	for host, want := range map[int]string{1: "forward state", 3: "up up-nexthop"} {
		addNeighbour(t, h.net.lan0, fmt.Sprintf("192.168.1.%d", 20+host), fmt.Sprintf(macs, host))
		r := h.in(h.xdp, "wan", fmt.Sprintf("udp 198.51.100.9:53 > 192.168.1.%d:1", 20+host))
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != want {
			t.Errorf("to host %d with no number left: %s, want %s", host, got, want)
		}
	}
	s.NexthopsHigh = high
}

// until waits for the kernel's timer to do something.
func (h *harness) until(what string, so func() bool) {
	h.tb.Helper()
	for end := time.Now().Add(15 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.tb.Fatalf("not so after a while: %s", what)
		}
	}
}
