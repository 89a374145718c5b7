package dataplane

import (
	"encoding/binary"
	"math/bits"
)

// stateCapacity returns the room for states: a third more than the limit, so that each
// finds a free index near its home.
func stateCapacity(limit uint32) uint32 {
	const slack = 64
	return uint32(min(uint64(limit)+uint64(limit)/3+slack, maxStates))
}

// bucketCount returns the number of buckets of the tuple table, a power of two. A bucket
// has seven slots, and a full table has two to four tuples per bucket.
func bucketCount(limit uint32) uint32 {
	const least = 64
	return max(least, uint32(1)<<bits.Len32((limit-1)/2))
}

// spillSize returns how many tuples may spill because their bucket is full. A spilled
// tuple stays where it is. With four tuples per bucket that are replaced again and again,
// 6 of 100 spill (Erlang's loss formula, seven servers): an eighth of the limit. There is
// room for twice as many.
func spillSize(limit uint32) uint32 { return 1024 + limit/4 }

// hashKeys has HASH_KEYS (bpf/config.h) keys.
type hashKeys [10]uint32

// newHashKeys derives the keys of the tuple hash from a seed.
func newHashKeys(seed uint64) (keys hashKeys) {
	for i := range keys {
		keys[i] = draw(seed, uint64(i))
	}
	return keys
}

// prefetchSecret derives the word that a note in place of a frame's MACs begins with. Its
// first byte has the group bit set, which no station's address has.
func prefetchSecret(seed uint64) uint32 {
	secret := binary.NativeEndian.AppendUint32(nil, draw(seed, uint64(len(hashKeys{}))))
	secret[0] |= 1
	return binary.NativeEndian.Uint32(secret)
}

// poolSecret derives the number that the order of random pools begins with.
func poolSecret(seed uint64) uint64 {
	first := uint64(len(hashKeys{})) + 3
	return uint64(draw(seed, first))<<32 | uint64(draw(seed, first+1))
}

// noteSecret derives the secret that distinguishes weir's notes on an skb from data that
// others leave there.
func noteSecret(seed uint64) [2]uint32 {
	first := uint64(len(hashKeys{})) + 1
	return [2]uint32{draw(seed, first), draw(seed, first+1)}
}

// draw returns the i-th number of a seed (splitmix64, Steele et al., OOPSLA 2014).
func draw(seed, i uint64) uint32 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32(z >> 32)
}
