/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a tuple to its state: at its home first, then by the tuple table
 * (state/tuples.h). Looking up takes no lock: a slot is one word, and what it leads to is
 * compared.
 */
#ifndef WEIR_STATE_LOOKUP_H
#define WEIR_STATE_LOOKUP_H

#include "state/hint.h"

/* kept; the tuple table (state/tuples.h), which knows whose a tuple is: a bucket is a
 * cache line. A slot is tag << 32 | index << 1 | direction, 0: empty. */
struct bucket {
	__u64 slot[BUCKET_SLOTS];
	__u32 lock;    /* 1: somebody enters a tuple, or takes out a spilled one	*/
	__u32 spilled; /* tuples of this bucket in spilled_tuples			*/
};
_Static_assert(sizeof(struct bucket) == 64, "a bucket is one cache line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* a power of two, by the loader */
	__type(key, __u32);
	__type(value, struct bucket);
} tuples SEC(".maps");

/* kept; what does not fit into its bucket: tuple -> index << 1 | direction. Never
 * LRU: losing one half of a NAT pair strands the other. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* by the loader */
	__type(key, struct tuple);
	__type(value, __u32);
} spilled_tuples SEC(".maps");

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

/* Ticks since the last packet of direction d. */
static __always_inline __u32 state_age(const struct state *s, __u32 d)
{
	return shared.now - state_flow(s, d)->last;
}

/* Asks its own direction first: while that is fresh, the other's cache line is
 * not touched. A last packet in the future (two cores, one tick) is age 0. */
static __always_inline int state_expired(const struct state *s, __u32 d)
{
	__u32 timeout = s->phase < PHASE_COUNT ? shared.timeout[s->phase] : 0;

	return (__s32)state_age(s, d) >= (__s32)timeout && (__s32)state_age(s, !d) >= (__s32)timeout;
}

/* Marks a state dead; true if this call did it. The garbage collection does the rest. */
static __always_inline int state_kill(struct state *s, __u32 index)
{
	hint_withdraw(index);
	return __sync_val_compare_and_swap(&s->status, STATUS_LIVE, STATUS_DEAD) == STATUS_LIVE;
}

/* The state behind a number if it lives and holds the tuple; else NULL. */
static __always_inline struct state *lookup_verify(__u32 number, const struct tuple *t)
{
	struct state *s = state_get(STATE_INDEX(number));

	if (!s || s->status != STATUS_LIVE)
		return 0;
	if (!tuple_equal(&state_course(s, STATE_DIRECTION(number))->tuple, t))
		return 0;
	return s;
}

/* The number that a tuple is entered for, where the bucket's first slot of its
 * tag does not say. */
__noinline __u32 lookup_table(const struct tuple *t)
{
	struct bucket *b;
	__u64 hash;

	if (!t)
		return 0;
	hash = tuple_hash(t);
	b = bucket_get(hash);
	return b ? bucket_owner(b, t, hash) : 0;
}

/* The state at its home, or behind it, if it holds the tuple as its first. */
static __always_inline struct state *lookup_home(__u64 hash, const struct tuple *t, __u32 *number)
{
	__u32 home = state_home(hash);
	struct state *s;
	int i;

	for (i = 0; i < HOME_PROBES; i++) {
		*number = STATE_NUMBER(home + i, 0);
		s = lookup_verify(*number, t);
		if (s && s->entered)
			return s;
	}
	return 0;
}

/* The live state that holds the tuple, expired or not, and its number. */
static __always_inline struct state *lookup_state(const struct tuple *t, __u32 *number)
{
	__u64 hash = tuple_hash(t);
	struct bucket *b = bucket_get(hash);
	struct state *s = lookup_home(hash, t, number);

	if (s)
		return s;
	if (!b)
		return 0;
	*number = bucket_find(b, hash);
	s = lookup_verify(*number, t);
	if (s)
		return s;
	if (!*number && !*(volatile __u32 *)&b->spilled)
		return 0;
	*number = lookup_table(t);
	return *number ? lookup_verify(*number, t) : 0;
}

#endif
