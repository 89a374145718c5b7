/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The tuple table, which knows whose a tuple is: buckets of one cache line, and
 * a hash map for what does not fit into them.
 *
 * Finding takes no lock: a slot is one word, and what it leads to is compared.
 * Entering locks the bucket and then looks, so no tuple is entered twice. Taking
 * out of a slot takes no lock either; what has spilled changes under it only.
 */
#ifndef WEIR_STATE_TABLE_H
#define WEIR_STATE_TABLE_H

#include "maps.h"

#define STATE_NUMBER(index, direction) ((index) << 1 | (direction))
#define STATE_INDEX(number)	       ((number) >> 1)
#define STATE_DIRECTION(number)	       ((number) & 1)

/*
 * NH (RFC 4418, section 5.2.2) and a mixing bijection: two different tuples have
 * the same hash once in 2^32 keys, whatever they are, so nobody outside can aim
 * at one bucket. The products are independent of each other: the CPU overlaps
 * them.
 */
static __always_inline __u64 tuple_hash(const struct tuple *t)
{
	const word64 *w = (const word64 *)t;
	__u64 h = 0;
	int i;

	for (i = 0; i < HASH_KEYS / 2; i++)
		h += (__u64)((__u32)w[i] + hash_keys[2 * i]) * ((__u32)(w[i] >> 32) + hash_keys[2 * i + 1]);
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ULL;
	h ^= h >> 29;
	return h;
}
_Static_assert(sizeof(struct tuple) == HASH_KEYS * 4, "a key for each word of a tuple");

/* Reads a line of memory that is needed soon: those that are read in a row are waited
 * for once. */
#define touch(field) asm volatile("" ::"r"(*(const volatile __u32 *)&(field)))

static __always_inline struct state *state_get(__u32 index)
{
	return bpf_map_lookup_elem(&states, &index);
}

static __always_inline struct bucket *bucket_get(__u64 hash)
{
	__u32 key = hash & bucket_mask;

	return bpf_map_lookup_elem(&tuples, &key);
}

/* The upper half of a slot; never 0. */
static __always_inline __u32 bucket_tag(__u64 hash)
{
	return hash >> 32 | 1;
}

static __always_inline __u64 bucket_slot(__u64 hash, __u32 number)
{
	return (__u64)bucket_tag(hash) << 32 | number;
}

/* The number in the first slot with the hash's tag; 0: none. Two tuples of one
 * tag in one bucket are one in 2^31. */
static __always_inline __u32 bucket_find(const struct bucket *b, __u64 hash)
{
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		__u64 slot = *(const volatile __u64 *)&b->slot[i];

		if (slot >> 32 == bucket_tag(hash))
			return slot;
	}
	return 0;
}

/* Whether the tuple is that of the number. */
static __always_inline int state_holds(__u32 number, const struct tuple *t)
{
	struct state *s = state_get(STATE_INDEX(number));

	return s && tuple_equal(&state_course(s, STATE_DIRECTION(number))->tuple, t);
}

/* The number that the tuple is entered for, whatever its state; 0: none. Without
 * the bucket's lock it may be out of date. */
static __always_inline __u32 bucket_owner(const struct bucket *b, const struct tuple *t, __u64 hash)
{
	__u32 *entry, number;
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		__u64 slot = *(const volatile __u64 *)&b->slot[i];

		if (slot >> 32 == bucket_tag(hash) && state_holds(slot, t))
			return slot;
	}
	if (!*(const volatile __u32 *)&b->spilled)
		return 0;
	entry = bpf_map_lookup_elem(&spilled_tuples, t);
	if (!entry)
		return 0;
	number = *(volatile __u32 *)entry;
	return state_holds(number, t) ? number : 0; /* the entry may be another's by now */
}

static __always_inline int bucket_lock(struct bucket *b)
{
	return !__sync_val_compare_and_swap(&b->lock, 0, 1);
}

static __always_inline void bucket_unlock(struct bucket *b)
{
	__sync_lock_test_and_set(&b->lock, 0);
}

/* Writes a tuple that is not in the table into a locked bucket. */
static __always_inline enum reason bucket_add(struct bucket *b, struct tuple *t, __u64 hash, __u32 number)
{
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		if (!*(volatile __u64 *)&b->slot[i]) {
			*(volatile __u64 *)&b->slot[i] = bucket_slot(hash, number);
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
		__u64 slot = bucket_slot(hash, old);

		if (__sync_val_compare_and_swap(&b->slot[i], slot, bucket_slot(hash, number)) == slot)
			return UNDECIDED;
	}
	entry = b->spilled ? bpf_map_lookup_elem(&spilled_tuples, t) : 0;
	if (!entry) /* the sweep has just taken it out */
		return bucket_add(b, t, hash, number);
	*(volatile __u32 *)entry = number;
	return UNDECIDED;
}

#endif
