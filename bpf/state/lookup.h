/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a tuple to its state: first at its home, then by the tuple table
 * (state/tuples.h). Looking up takes no lock: a slot is one word, and the tuple that it
 * leads to is compared.
 */
#ifndef WEIR_STATE_LOOKUP_H
#define WEIR_STATE_LOOKUP_H

#include "state/hint.h"

/* kept; the tuple table (state/tuples.h), which knows the owner of each tuple. A bucket
 * is a cache line. A slot is tag << 32 | index << 1 | direction, 0: empty. */
struct bucket {
	__u64 slot[BUCKET_SLOTS];
	__u32 lock;    /* 1: a core enters a tuple, or removes a spilled one */
	__u32 spilled; /* number of this bucket's tuples in spilled_tuples */
};
_Static_assert(sizeof(struct bucket) == 64, "a bucket is one cache line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* a power of two, by the loader */
	__type(key, __u32);
	__type(value, struct bucket);
} tuples SEC(".maps");

/* kept; tuples that do not fit into their bucket: tuple -> index << 1 | direction. Never
 * LRU: losing one half of a NAT pair breaks the connection. */
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

/* Returns the upper half of a slot; never 0. */
static __always_inline __u32 bucket_tag(__u64 hash)
{
	return hash >> 32 | 1;
}

static __always_inline __u64 bucket_slot(__u64 hash, __u32 number)
{
	return (__u64)bucket_tag(hash) << 32 | number;
}

/* Returns the number in the first slot with the hash's tag; 0: none. Two tuples in one
 * bucket have the same tag once in 2^31 times. */
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

/* Returns the number that the tuple is entered for, whatever its state; 0: none. Without
 * the bucket's lock it may be out of date. */
static __always_inline __u32 bucket_owner(const struct bucket *b, const struct tuple *t, __u64 hash)
{
	__u32 *entry, number;
	int i;

	for (i = 0; i < BUCKET_SLOTS; i++) {
		__u64 slot = *(const volatile __u64 *)&b->slot[i];

		if (slot >> 32 == bucket_tag(hash) && state_has_tuple(slot, t))
			return slot;
	}
	if (!*(const volatile __u32 *)&b->spilled)
		return 0;
	entry = bpf_map_lookup_elem(&spilled_tuples, t);
	if (!entry)
		return 0;
	number = *(volatile __u32 *)entry;
	return state_has_tuple(number, t) ? number : 0; /* the entry may belong to another by now */
}

/* Ticks since the last packet of direction d. */
static __always_inline __u32 state_age(const struct state *s, __u32 d)
{
	return shared.now - state_flow(s, d)->last;
}

/* Returns the timeout of a state whose rules may have their own (state/limit.h). */
__u32 limit_timeout(const struct state *st);

/* Whether a state has expired. It reads its own direction first: while that is fresh,
 * the other's cache line is not touched. A last packet in the future (two cores, one
 * tick) has age 0. A rule's own timeouts can only let a state live longer here: if they
 * are shorter, the garbage collection ends it, as in pf. */
static __always_inline int state_expired(const struct state *s, __u32 d)
{
	__u32 timeout = s->phase < PHASE_COUNT ? shared.timeout[s->phase] : 0;

	if ((__s32)state_age(s, d) < (__s32)timeout || (__s32)state_age(s, !d) < (__s32)timeout)
		return 0;
	if (!*state_limits(s))
		return 1;
	timeout = limit_timeout(s);
	return (__s32)state_age(s, d) >= (__s32)timeout && (__s32)state_age(s, !d) >= (__s32)timeout;
}

/* Marks a state dead; true if this call did it. The garbage collection does the rest. */
static __always_inline int state_kill(struct state *s, __u32 index)
{
	hint_withdraw(index);
	return __sync_val_compare_and_swap(&s->status, STATUS_LIVE, STATUS_DEAD) == STATUS_LIVE;
}

/* Returns the state of a number if it is live and holds the tuple; else NULL. */
static __always_inline struct state *lookup_verify(__u32 number, const struct tuple *t)
{
	struct state *s = state_get(STATE_INDEX(number));

	if (!s || s->status != STATUS_LIVE)
		return 0;
	if (!tuple_equal(&state_course(s, STATE_DIRECTION(number))->tuple, t))
		return 0;
	return s;
}

/* Returns the number that a tuple is entered for, if the bucket's first slot of its tag
 * does not say. */
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

/* Returns the state at the tuple's home, or behind it, if it holds the tuple as its
 * first. */
static __always_inline struct state *lookup_home(__u64 hash, const struct tuple *t, __u32 *number)
{
	__u32 home = state_home(hash);
	struct state *s;
	int i;

	for (i = 0; i < HOME_PROBES; i++) {
		*number = STATE_NUMBER(home + i, 0);
		s = lookup_verify(*number, t);
		if (s && s->entered & KEPT_ENTERED)
			return s;
	}
	return 0;
}

/* Returns the live state that holds the tuple with this hash, expired or not, and its number. */
static __always_inline struct state *lookup_hashed(const struct tuple *t, __u64 hash, __u32 *number)
{
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

static __always_inline struct state *lookup_state(const struct tuple *t, __u32 *number)
{
	return lookup_hashed(t, tuple_hash(t), number);
}

#endif
