package dataplane

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// release is tuple_release() of bpf/tuples.h, where nobody else is at the bucket.
func (t *tables) release(tuple *xdpTuple, number uint32, seed uint64) error {
	b, tag := t.bucket(tuple, seed)
	for i := range b.Slot {
		if atomic.CompareAndSwapUint64(&b.Slot[i], tag|uint64(number), 0) {
			return nil
		}
	}
	var owner uint32
	if b.Spilled == 0 || t.maps[mapSpilled].Lookup(tuple, &owner) != nil || owner != number {
		return nil
	}
	b.Spilled--
	return t.maps[mapSpilled].Delete(tuple)
}

// crowd returns the source ports of connections whose first tuples share a bucket.
func (h *harness) crowd(n int) (ports []int) {
	t := h.dp.tables
	var first *xdpBucket
	for port := 1000; len(ports) < n; port++ {
		tuple := xdpTuple{
			Src: rawAddr(netip.MustParseAddr("192.168.1.10")), Dst: rawAddr(netip.MustParseAddr("198.51.100.9")),
			Sport: fromWire(uint16(port)), Dport: fromWire(53), Proto: unix.IPPROTO_UDP,
		}
		b, _ := t.bucket(&tuple, h.dp.ledger.HashSeed)
		if first == nil {
			first = b
		}
		if b == first {
			ports = append(ports, port)
		}
	}
	return ports
}

func (h *harness) killAll() {
	for i := range h.dp.tables.states {
		atomic.CompareAndSwapUint32(&h.dp.tables.states[i].Status, statusLive, statusDead)
	}
}

// awake lets the clock run, from startSweep on.
func awake(c *Config) { c.Frozen = false }

// What does not fit into a bucket is found all the same, and leaves with its state.
func TestCrowdedBucket(t *testing.T) {
	h := newHarness(t, "set limit states 200\npass", awake)
	setTimeouts(h.dp.tables.shared, &h.dp.config.Options)
	h.dp.tables.shared.Timeout = h.dp.tables.shared.TimeoutSet
	ports := h.crowd(20)
	for _, want := range []string{"rule", "state"} {
		for _, port := range ports {
			if r := h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", port)); r.reason != want {
				t.Errorf("port %d: %s, want %s", port, r.reason, want)
			}
			if r := h.in(h.xdp, "wan", fmt.Sprintf("udp 198.51.100.9:53 > 192.168.1.10:%d", port)); r.reason != "state" {
				t.Errorf("answer to port %d: %s, want state", port, r.reason)
			}
		}
	}
	h.checkTuples(len(ports))
	spilled := uint32(0)
	for i := range h.dp.tables.buckets {
		spilled += h.dp.tables.buckets[i].Spilled
	}
	if want := uint32(len(ports) - len(xdpBucket{}.Slot)); spilled < want {
		t.Errorf("%d tuples spilled, want %d or more", spilled, want)
	}
	h.killAll()
	check(t, h.dp.startSweep())
	h.waitEmpty()
	for i := range h.dp.tables.buckets {
		if b := &h.dp.tables.buckets[i]; b.Spilled != 0 || b.Version&bucketLocked != 0 {
			t.Errorf("bucket %d: %d spilled, version %d", i, b.Spilled, b.Version)
		}
	}
}

// Nobody waits for long for a bucket that another core does not let go: a new
// connection is dropped, a known one passes, and the sweep tries again.
func TestLockedBucket(t *testing.T) {
	h := newHarness(t, "set limit states 200\npass", awake)
	setTimeouts(h.dp.tables.shared, &h.dp.config.Options)
	h.dp.tables.shared.Timeout = h.dp.tables.shared.TimeoutSet
	ports := h.crowd(12)
	packet := func(i int) string { return fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", ports[i]) }
	for i := range 11 {
		h.in(h.xdp, "lan", packet(i))
	}
	var tuple xdpTuple
	for i := range h.dp.View().live() {
		tuple = h.dp.tables.states[i].Forth.Tuple
	}
	b, _ := h.dp.tables.bucket(&tuple, h.dp.ledger.HashSeed)
	b.Version |= bucketLocked
	if r := h.in(h.xdp, "lan", packet(11)); r.verdict != drop || r.reason != "state-busy" {
		t.Errorf("a new connection: %s %s", r.verdict, r.reason)
	}
	if r := h.in(h.xdp, "lan", packet(0)); r.reason != "state" {
		t.Errorf("a known connection: %s %s", r.verdict, r.reason)
	}
	h.killAll()
	check(t, h.dp.startSweep())
	time.Sleep(500 * time.Millisecond)
	if s := h.dp.tables.shared; s.StatesMade == s.StatesReleased {
		t.Error("states whose tuples may still be entered were released")
	}
	atomic.AddUint32(&b.Version, 1)
	h.waitEmpty()
}
