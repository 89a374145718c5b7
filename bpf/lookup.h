/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a tuple to its state: the bucket cache first, then the tuple table,
 * which is the authority. A state number is index << 1 | direction.
 */
#ifndef WEIR_LOOKUP_H
#define WEIR_LOOKUP_H

#include "maps.h"

#define STATE_NUMBER(index, direction) ((index) << 1 | (direction))
#define STATE_INDEX(number)	       ((number) >> 1)
#define STATE_DIRECTION(number)	       ((number) & 1)
/* Stands in the tuple table while the sweep removes an entry. */
#define TOMBSTONE 0xffffffffu

/*
 * Multilinear hashing: each pair of words is keyed and multiplied, the products
 * are independent of each other, so the CPU overlaps them. Keyed by hash_seed,
 * so that nobody outside can aim at one bucket.
 */
static __always_inline __u64 tuple_hash(const struct tuple *t)
{
	const word64 *w = (const word64 *)t;
	__u64 s = hash_seed, h;

	h = (w[0] ^ s) * 0x9e3779b97f4a7c15ULL;
	h ^= (w[1] + s) * 0xc2b2ae3d27d4eb4fULL;
	h += (w[2] ^ (s >> 7)) * 0x165667b19e3779f9ULL;
	h ^= (w[3] + (s >> 13)) * 0x27d4eb2f165667c5ULL;
	h += (w[4] ^ (s >> 21)) * 0x85ebca77c2b2ae63ULL;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ULL;
	h ^= h >> 29;
	return h;
}

static __always_inline struct state *state_get(__u32 index)
{
	return bpf_map_lookup_elem(&states, &index);
}

static __always_inline struct course *state_course(struct state *s, __u32 direction)
{
	return direction ? &s->back : &s->forth;
}

/* Ticks since the last packet of direction d. */
static __always_inline __u32 flow_age(const struct state *s, __u32 d)
{
	return shared.now - s->flow[d & 1].last;
}

/* Asks its own direction first: while that is fresh, the other's cache line is
 * not touched. A last packet in the future (two cores, one tick) is age 0. */
static __always_inline int state_expired(const struct state *s, __u32 d)
{
	__u32 timeout = s->phase < PHASE_COUNT ? shared.timeout[s->phase] : 0;

	return (__s32)flow_age(s, d) >= (__s32)timeout && (__s32)flow_age(s, !d) >= (__s32)timeout;
}

/* Marks a state dead; true if this call did it. The sweep does the rest. */
static __always_inline int state_kill(struct state *s)
{
	return __sync_val_compare_and_swap(&s->status, STATUS_LIVE, STATUS_DEAD) == STATUS_LIVE;
}

/* The state behind a number if it lives and holds the tuple; else NULL. */
static __always_inline struct state *state_verify(__u32 number, const struct tuple *t)
{
	struct state *s = state_get(STATE_INDEX(number));

	if (!s || s->status != STATUS_LIVE)
		return 0;
	if (!tuple_equal(&state_course(s, STATE_DIRECTION(number))->tuple, t))
		return 0;
	return s;
}

/* One 64-bit store, so that a slot never pairs a tag with another's number. */
static __always_inline void cache_fill(struct bucket *b, __u32 tag, __u32 number)
{
	__u64 slot = (__u64)tag << 32 | number;
	int i, victim = tag & (CACHE_WAYS - 1);

	for (i = 0; i < CACHE_WAYS; i++) {
		if (!b->slot[i] || (__u32)(b->slot[i] >> 32) == tag) {
			victim = i;
			break;
		}
	}
	*(volatile __u64 *)&b->slot[victim & (CACHE_WAYS - 1)] = slot;
}

static __always_inline __u32 cache_bucket(__u64 hash)
{
	return hash & cache_mask;
}

static __always_inline __u32 cache_tag(__u64 hash)
{
	return hash >> 32;
}

/* The tuple table, which knows. Fills the cache. Its lines are cold: the hit
 * path comes here once per direction and eviction. */
static __noinline __u32 tuple_find(const struct tuple *t, struct bucket *b, __u32 tag)
{
	__u32 *number = bpf_map_lookup_elem(&tuples, t);
	__u32 n = number ? *(volatile __u32 *)number : 0;

	if (!n || n == TOMBSTONE)
		return 0;
	if (b)
		cache_fill(b, tag, n);
	return n;
}

/* The number whose tag stands in the bucket; 0: none. Two tuples of one tag in
 * one bucket are one in 2^32: the second is found in the table. */
static __always_inline __u32 cache_find(const struct bucket *b, __u32 tag)
{
	int i;

	for (i = 0; i < CACHE_WAYS; i++) {
		__u64 slot = *(const volatile __u64 *)&b->slot[i];

		if ((__u32)(slot >> 32) == tag)
			return slot;
	}
	return 0;
}

/* The live state that holds the tuple, expired or not, and its number. */
static __always_inline struct state *state_lookup(const struct tuple *t, __u32 *number)
{
	__u64 hash = tuple_hash(t);
	__u32 key = cache_bucket(hash), tag = cache_tag(hash);
	struct bucket *b = bpf_map_lookup_elem(&cache, &key);
	struct state *s;

	if (!b)
		return 0;
	*number = cache_find(b, tag);
	s = state_verify(*number, t);
	if (s)
		return s;
	*number = tuple_find(t, b, tag);
	return *number ? state_verify(*number, t) : 0;
}

#endif
