/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The tuple table, which knows whose a tuple is: buckets of one cache line, and
 * a hash map for what does not fit into them.
 *
 * Finding reads without a lock: a slot is one word, and what it leads to is
 * compared. Entering scans the bucket, then locks it at the version it had
 * before the scan: if anybody has entered something since, it is not locked and
 * the scan is done again. So no tuple is entered twice. Taking out needs no lock
 * but for what has spilled.
 */
#ifndef WEIR_TUPLES_H
#define WEIR_TUPLES_H

#include "maps.h"

#define STATE_NUMBER(index, direction) ((index) << 1 | (direction))
#define STATE_INDEX(number)	       ((number) >> 1)
#define STATE_DIRECTION(number)	       ((number) & 1)

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

static __always_inline struct bucket *bucket_get(__u64 hash)
{
	__u32 key = hash & bucket_mask;

	return bpf_map_lookup_elem(&tuples, &key);
}

static __always_inline __u32 slot_tag(__u64 slot)
{
	return slot >> 32;
}

static __always_inline __u64 slot_of_number(__u64 hash, __u32 number)
{
	return hash >> 32 << 32 | number;
}

/* The number in the first slot with the hash's tag; 0: none. Two tuples of one
 * tag in one bucket are one in 2^32. */
static __always_inline __u32 bucket_find(const struct bucket *b, __u64 hash)
{
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		__u64 slot = *(const volatile __u64 *)&b->slot[i];

		if (slot_tag(slot) == slot_tag(hash))
			return slot;
	}
	return 0;
}

/* Whether the tuple is that of the number, which stands in the table. */
static __always_inline int number_holds(__u32 number, const struct tuple *t)
{
	struct state *s = state_get(STATE_INDEX(number));

	return s && tuple_equal(&state_course(s, STATE_DIRECTION(number))->tuple, t);
}

/* The number that the tuple is entered for, whatever its state; 0: none. */
static __always_inline __u32 tuple_owner(const struct bucket *b, const struct tuple *t, __u64 hash)
{
	__u32 *number;
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		__u64 slot = *(const volatile __u64 *)&b->slot[i];

		if (slot && slot_tag(slot) == slot_tag(hash) && number_holds(slot, t))
			return slot;
	}
	if (!*(const volatile __u32 *)&b->spilled)
		return 0;
	number = bpf_map_lookup_elem(&spilled_tuples, t);
	return number ? *(volatile __u32 *)number : 0;
}

static __always_inline __u32 bucket_version(const struct bucket *b)
{
	return *(const volatile __u32 *)&b->version;
}

/* Locks the bucket if nothing has been entered since it had this version. */
static __always_inline int bucket_lock(struct bucket *b, __u32 version)
{
	return !(version & BUCKET_LOCKED) &&
	       __sync_val_compare_and_swap(&b->version, version, version | BUCKET_LOCKED) == version;
}

static __always_inline void bucket_unlock(struct bucket *b, __u32 version)
{
	__sync_lock_test_and_set(&b->version, version + BUCKET_LOCKED + 1);
}

/* Writes a tuple that is not in the table into a locked bucket. */
static __always_inline enum reason bucket_add(struct bucket *b, struct tuple *t, __u64 hash, __u32 number)
{
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		if (!*(volatile __u64 *)&b->slot[i]) {
			__sync_lock_test_and_set(&b->slot[i], slot_of_number(hash, number));
			return UNDECIDED;
		}
	}
	if (bpf_map_update_elem(&spilled_tuples, t, &number, BPF_NOEXIST))
		return REASON_TUPLE_ERROR;
	__sync_fetch_and_add(&b->spilled, 1);
	return UNDECIDED;
}

/* Gives a locked bucket's tuple of the number `old' to another. */
static __always_inline enum reason bucket_replace(struct bucket *b, struct tuple *t, __u64 hash, __u32 old,
						  __u32 number)
{
	__u32 *entry;
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		__u64 slot = slot_of_number(hash, old);

		if (__sync_val_compare_and_swap(&b->slot[i], slot, slot_of_number(hash, number)) == slot)
			return UNDECIDED;
	}
	entry = b->spilled ? bpf_map_lookup_elem(&spilled_tuples, t) : 0;
	if (!entry) /* the sweep has just taken it out */
		return bucket_add(b, t, hash, number);
	*(volatile __u32 *)entry = number;
	return UNDECIDED;
}

/* Takes a number's spilled tuple out of the table. 0: somebody is at the bucket. */
static __always_inline int spilled_release(struct bucket *b, struct tuple *t, __u32 number)
{
	__u32 version = bucket_version(b), *entry;

	if (!bucket_lock(b, version))
		return 0;
	entry = bpf_map_lookup_elem(&spilled_tuples, t);
	if (entry && *(volatile __u32 *)entry == number && !bpf_map_delete_elem(&spilled_tuples, t))
		__sync_fetch_and_add(&b->spilled, -1);
	bucket_unlock(b, version);
	return 1;
}

/* Takes a tuple out of the table if it is this number's. 0: somebody is at the
 * bucket, so it may still be there. */
static __noinline int tuple_release(struct tuple *t, __u32 number)
{
	struct bucket *b;
	__u64 hash;
	int i;

	if (!t)
		return 1;
	hash = tuple_hash(t);
	b = bucket_get(hash);
	if (!b)
		return 1;
	for (i = 0; i < BUCKET_SLOTS; i++) {
		__u64 slot = slot_of_number(hash, number);

		if (__sync_val_compare_and_swap(&b->slot[i], slot, 0) == slot)
			return 1;
	}
	return b->spilled ? spilled_release(b, t, number) : 1;
}

#endif
