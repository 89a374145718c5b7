package dataplane

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"weir/internal/bpfload"
)

// Of bpf/config.h and bpf/maps.h.
const (
	enterTries   = 1 << 16 // more than ENTER_TRIES: no packet waits here
	bucketLocked = 1
)

var errBusy = errors.New("others keep a bucket of the tuple table")

// bucketCount returns the number of buckets of the tuple table, a power of two: a
// bucket has seven slots and a state needs two, so a full table fills them by 2/7
// to 4/7, and one tuple in fifty spills at most.
func bucketCount(limit uint32) uint32 {
	const least = 64
	return max(least, uint32(1)<<bits.Len32((limit-1)/2))
}

// spillSize returns how many tuples may find no slot in their bucket, three times
// as many as do when the table is full.
func spillSize(limit uint32) uint32 { return 1024 + limit/8 }

// slotTries is SLOT_TRIES of bpf/config.h.
const slotTries = 64

// stateSlots returns the number of places for states: a third more than there may
// be, so that each finds a free one near its home.
func stateSlots(limit uint32) uint32 {
	return uint32(min(uint64(limit)+uint64(limit)/3+slotTries, maxStates))
}

// hash is tuple_hash() of bpf/tuples.h.
func (t *xdpTuple) hash(seed uint64) uint64 {
	w := (*[unsafe.Sizeof(*t) / 8]uint64)(unsafe.Pointer(t))
	h := (w[0] ^ seed) * 0x9e3779b97f4a7c15
	h ^= (w[1] + seed) * 0xc2b2ae3d27d4eb4f
	h += (w[2] ^ seed>>7) * 0x165667b19e3779f9
	h ^= (w[3] + seed>>13) * 0x27d4eb2f165667c5
	h += (w[4] ^ seed>>21) * 0x85ebca77c2b2ae63
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 29
	return h
}

// home is state_home() of bpf/lookup.h: where a state with this first tuple lies
// if the place is free.
func (t *xdpTuple) home(seed uint64, slots uint32) uint32 {
	return 1 + uint32(t.hash(seed)>>32*uint64(slots)>>32)
}

// holds reports whether the tuple is that of the number.
func (t *tables) holds(number uint32, tuple *xdpTuple) bool {
	return *t.tupleOf(number) == *tuple
}

func (t *tables) tupleOf(number uint32) *xdpTuple {
	s := &t.states[number>>1]
	if number&1 != 0 {
		return &s.Back.Tuple
	}
	return &s.Forth.Tuple
}

// bucket returns the tuple's bucket, and the tag its slot has there.
func (t *tables) bucket(tuple *xdpTuple, seed uint64) (b *xdpBucket, tag uint64) {
	hash := tuple.hash(seed)
	return &t.buckets[hash&uint64(len(t.buckets)-1)], hash >> 32 << 32
}

// owner is tuple_owner() of bpf/tuples.h.
func (t *tables) owner(tuple *xdpTuple, seed uint64) uint32 {
	b, tag := t.bucket(tuple, seed)
	for i := range b.Slot {
		slot := atomic.LoadUint64(&b.Slot[i])
		if slot != 0 && slot>>32<<32 == tag && t.holds(uint32(slot), tuple) {
			return uint32(slot)
		}
	}
	var number uint32
	if atomic.LoadUint32(&b.Spilled) == 0 || t.maps[mapSpilled].Lookup(tuple, &number) != nil {
		return 0
	}
	return number
}

// enter is tuple_enter() of bpf/create.h, but that an owner never yields: the
// error wraps bpfload.ErrHasKey then.
func (t *tables) enter(tuple *xdpTuple, number uint32, seed uint64) error {
	b, tag := t.bucket(tuple, seed)
	for range enterTries {
		version := atomic.LoadUint32(&b.Version)
		if t.owner(tuple, seed) != 0 {
			return fmt.Errorf("enter a tuple: %w", bpfload.ErrHasKey)
		}
		if version&bucketLocked != 0 || !atomic.CompareAndSwapUint32(&b.Version, version, version|bucketLocked) {
			runtime.Gosched()
			continue
		}
		err := t.add(b, tuple, tag|uint64(number))
		atomic.StoreUint32(&b.Version, version+bucketLocked+1)
		return err
	}
	return errBusy
}

// add is bucket_add() of bpf/tuples.h.
func (t *tables) add(b *xdpBucket, tuple *xdpTuple, slot uint64) error {
	for i := range b.Slot {
		if atomic.LoadUint64(&b.Slot[i]) == 0 {
			atomic.StoreUint64(&b.Slot[i], slot)
			return nil
		}
	}
	if err := t.maps[mapSpilled].Update(tuple, uint32(slot), bpfload.OnlyNew); err != nil {
		return fmt.Errorf("enter a tuple: %w", err)
	}
	atomic.AddUint32(&b.Spilled, 1)
	return nil
}

// entered yields what stands in the tuple table.
func (t *tables) entered() iter.Seq2[xdpTuple, uint32] {
	return func(yield func(xdpTuple, uint32) bool) {
		for i := range t.buckets {
			for j := range t.buckets[i].Slot {
				number := uint32(atomic.LoadUint64(&t.buckets[i].Slot[j]))
				if number != 0 && !yield(*t.tupleOf(number), number) {
					return
				}
			}
		}
		var tuple xdpTuple
		var number uint32
		for all := t.maps[mapSpilled].Iterate(); all.Next(&tuple, &number); {
			if !yield(tuple, number) {
				return
			}
		}
	}
}
