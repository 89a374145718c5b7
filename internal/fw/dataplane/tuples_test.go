package dataplane

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hash is tuple_hash() of bpf/packet/tuple.h.
func (t *xdpTuple) hash(keys hashKeys) (h uint64) {
	for i, w := range *(*[unsafe.Sizeof(*t) / 8]uint64)(unsafe.Pointer(t)) {
		h += uint64(uint32(w)+keys[2*i]) * uint64(uint32(w>>32)+keys[2*i+1])
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>29
}

// bucket returns the tuple's bucket, and the tag its slot has there.
func (t *tables) bucket(tuple *xdpTuple, seed uint64) (b *xdpBucket, tag uint64) {
	hash := tuple.hash(newHashKeys(seed))
	return &t.buckets[hash&uint64(len(t.buckets)-1)], (hash>>32 | 1) << 32
}

// owner is bucket_owner() of bpf/state/lookup.h.
func (t *tables) owner(tuple *xdpTuple, seed uint64) uint32 {
	b, tag := t.bucket(tuple, seed)
	for _, slot := range b.Slot {
		if slot>>32<<32 == tag && *t.tupleOf(uint32(slot)) == *tuple {
			return uint32(slot)
		}
	}
	var number uint32
	if b.Spilled == 0 || t.maps[mapSpilled].Lookup(tuple, &number) != nil {
		return 0
	}
	return number
}

func (t *tables) tupleOf(number uint32) *xdpTuple {
	s := &t.states[number>>1]
	if number&1 != 0 {
		return &s.Back.Tuple
	}
	return &s.Forth.Tuple
}

// entered returns the contents of the tuple table.
func (t *tables) entered(tb testing.TB) map[uint32]xdpTuple {
	tb.Helper()
	all := make(map[uint32]xdpTuple)
	for i := range t.buckets {
		for _, slot := range t.buckets[i].Slot {
			if slot != 0 {
				all[uint32(slot)] = *t.tupleOf(uint32(slot))
			}
		}
	}
	var tuple xdpTuple
	var number uint32
	entries := t.maps[mapSpilled].Iterate()
	for entries.Next(&tuple, &number) {
		all[number] = tuple
	}
	check(tb, entries.Err())
	return all
}

// Similar tuples have different hashes: hosts of two networks that all talk to each
// other, consecutive ports, prefixes of one provider.
func TestHashCollisions(t *testing.T) {
	for name, vary := range map[string]func(*xdpTuple, byte, byte){
		"hosts": func(t *xdpTuple, a, b byte) {
			t.Src = rawAddr(netip.AddrFrom4([4]byte{10, 0, 0, a}))
			t.Dst = rawAddr(netip.AddrFrom4([4]byte{10, 0, 1, b}))
		},
		"host and port": func(t *xdpTuple, a, b byte) {
			t.Src = rawAddr(netip.AddrFrom4([4]byte{10, 0, 0, a}))
			t.Sport = fromWire(uint16(b))
		},
		"ports": func(t *xdpTuple, a, b byte) { t.Sport, t.Dport = fromWire(uint16(a)), fromWire(uint16(b)) },
		"prefix and host": func(t *xdpTuple, a, b byte) {
			t.Src = rawAddr(netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 7: a, 15: b}))
		},
	} {
		for seed := range uint64(3) {
			keys, seen := newHashKeys(seed), make(map[uint64]bool)
			for i := range 1 << 16 {
				tuple := xdpTuple{Proto: unix.IPPROTO_UDP, Sport: fromWire(123), Dport: fromWire(123)}
				vary(&tuple, byte(i), byte(i>>8))
				seen[tuple.hash(keys)] = true
			}
			if lost := 1<<16 - len(seen); lost > 4 { // of 2^31 pairs
				t.Errorf("%s, seed %d: %d of 65536 tuples share a hash with another", name, seed, lost)
			}
		}
	}
}

// release is gc_release_tuple() of bpf/state/gc.h, where nobody else is at the bucket.
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

// awake lets the clock run, from startGC on.
func awake(c *Config) { c.Frozen = false }

// A tuple that does not fit into its bucket is still found, and is removed with its
// state.
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
				t.Errorf("reply to port %d: %s, want state", port, r.reason)
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
	check(t, h.dp.startGC())
	h.waitEmpty()
	for i := range h.dp.tables.buckets {
		if b := &h.dp.tables.buckets[i]; b.Spilled != 0 || b.Lock != 0 {
			t.Errorf("bucket %d: %d spilled, lock %d", i, b.Spilled, b.Lock)
		}
	}
}

// Nobody waits long for a bucket that another core keeps locked. A new connection is
// dropped, a known one passes, and the garbage collection tries again.
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
	b.Lock = 1
	if r := h.in(h.xdp, "lan", packet(11)); r.verdict != drop || r.reason != "state-busy" {
		t.Errorf("a new connection: %s %s", r.verdict, r.reason)
	}
	if r := h.in(h.xdp, "lan", packet(0)); r.reason != "state" {
		t.Errorf("a known connection: %s %s", r.verdict, r.reason)
	}
	h.killAll()
	check(t, h.dp.startGC())
	time.Sleep(500 * time.Millisecond)
	if s := h.dp.tables.shared; s.StatesMade == s.StatesReleased {
		t.Error("states whose tuples may still be entered were released")
	}
	atomic.StoreUint32(&b.Lock, 0)
	h.waitEmpty()
}
