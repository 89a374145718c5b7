package dataplane

import (
	"fmt"
	"testing"
)

// TestRecent: packets of connections that a core has seen lately take one pass, until
// another connection takes their place.
func TestRecent(t *testing.T) {
	h := newHarness(t, "pass")
	h.prefetch(true)
	oneCPU(t, 0)
	send := func(port int) int {
		t.Helper()
		before := h.twice
		if r := h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", port)); r.verdict != redirect {
			t.Fatalf("port %d: %s %s", port, r.verdict, r.reason)
		}
		return h.twice - before
	}
	const first, connections = 1000, 900
	for range 2 { // the second packet makes the hint
		for port := first; port < first+connections; port++ {
			send(port)
		}
	}
	queuedBefore, sparedBefore := prefetchCounts(h)
	if queuedBefore != uint64(h.twice) || sparedBefore != 0 {
		t.Errorf("%d packets were queued and %d spared, want %d and 0", queuedBefore, sparedBefore, h.twice)
	}
	h.warm = true
	h.cool()
	hinted := 0
	for port := first; port < first+connections; port++ {
		hinted += send(port)
		if send(port) != 0 {
			t.Fatalf("port %d: a connection that was seen just now takes two passes", port)
		}
	}
	// The chance that no other has taken a place of 1,024 is 0.42.
	twice := 0
	for port := first; port < first+connections; port++ {
		twice += send(port)
	}
	queued, spared := prefetchCounts(h)
	// A connection without a hint counts as neither, if it was not seen lately.
	most := uint64(2*connections - twice)
	if queued != uint64(h.twice) || spared > most || spared < most-uint64(connections-hinted) {
		t.Errorf("%d packets were queued and %d spared, want %d and about %d", queued, spared, h.twice, most)
	}
	if twice < connections/2 || twice > connections*2/3 {
		t.Errorf("%d of %d connections that were seen %d packets ago take two passes", twice, connections, 2*connections)
	}
}

func prefetchCounts(h *harness) (queued, spared uint64) {
	h.tb.Helper()
	queued, spared, err := h.dp.PrefetchCounts()
	check(h.tb, err)
	return queued, spared
}

// TestSpared: only packets of known connections count as spared. Others that come again and again have no state to
// fetch.
func TestSpared(t *testing.T) {
	h := newHarness(t, "pass\nblock in proto udp to port 9")
	h.prefetch(true)
	h.warm = true // what was seen stays seen
	oneCPU(t, 0)
	send := func(port int) string {
		return h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.10:4000 > 198.51.100.9:%d", port)).reason
	}
	for range 10 {
		if got := send(9); got != "block" {
			t.Fatalf("what is blocked is %s", got)
		}
	}
	if _, spared := prefetchCounts(h); spared != 0 {
		t.Errorf("%d packets that were blocked count as spared", spared)
	}
	for range 10 {
		send(53)
	}
	for range 10 {
		send(9)
	}
	queued, spared := prefetchCounts(h)
	// The first makes the state; none of the others is the first of its tuple, and all are of one.
	if queued != 0 || spared != 9 {
		t.Errorf("%d packets were queued and %d spared, want 0 and 9", queued, spared)
	}
}
