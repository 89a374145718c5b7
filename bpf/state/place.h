/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A new state's places: a slot among the states, and its tuples' in the tuple table. */
#ifndef WEIR_STATE_PLACE_H
#define WEIR_STATE_PLACE_H

#include "state/lookup.h"

static __always_inline __u32 alloc_random(__u32 x)
{
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

/* Counts a state more, unless set limit states is reached. */
static __always_inline int alloc_count(void)
{
	__u32 made = __sync_fetch_and_add(&shared.states_made, 1) + 1;

	/* others may have made and released some since: then it is below 0 */
	if ((__s32)(made - shared.states_released) <= (__s32)max_states)
		return 1;
	__sync_fetch_and_add(&shared.states_made, -1);
	return 0;
}

/* The search for a free slot. */
struct alloc {
	__u32 index; /* of the slot that was tried last */
	__u32 random;
	__u32 taken;
};

static __always_inline int alloc_try(struct alloc *p)
{
	struct state *st = state_get(p->index);

	p->taken = st && __sync_val_compare_and_swap(&st->status, STATUS_FREE, STATUS_NEW) == STATUS_FREE;
	return p->taken;
}

/* Next to the home, where a promise is still found (but not beyond the table's end), and
 * then anywhere. */
static long alloc_step(__u32 n, void *data)
{
	struct alloc *p = data;

	if (n < HINT_PROBES - 1) {
		p->index = p->index >= state_capacity ? 1 : p->index + 1;
	} else {
		p->random = alloc_random(p->random);
		p->index = 1 + (__u32)((__u64)p->random * state_capacity >> 32);
	}
	return alloc_try(p);
}

/* A free slot for a state whose first tuple has the hash, NEW from now on; 0: none. */
static __always_inline __u32 alloc_take(__u64 hash, __u32 random)
{
	struct alloc p = { .index = state_home(hash), .random = random | 1 };

	/* mostly the home is free: without a call */
	if (!alloc_try(&p))
		bpf_loop(ALLOC_TRIES - 1, alloc_step, &p, 0);
	return p.taken ? p.index : 0;
}

/* Gives a slot back whose tuples are not, or no longer, in the table. */
static __always_inline void alloc_return(struct state *st)
{
	__sync_lock_test_and_set(&st->status, STATUS_FREE);
	__sync_fetch_and_add(&shared.states_released, 1);
}

/* The owner of a tuple we want: gives way if it is dead or has expired. */
static __always_inline int table_owner_yields(__u32 owner)
{
	struct state *s = state_get(STATE_INDEX(owner));
	__u32 status;

	if (!s)
		return 0;
	status = *(volatile __u32 *)&s->status;
	if (status == STATUS_NEW)
		return 0;
	if (status == STATUS_LIVE) {
		if (!state_expired(s, STATE_DIRECTION(owner)))
			return 0;
		state_kill(s, STATE_INDEX(owner));
	}
	return 1;
}

/* A tuple that is entered into the tuple table. */
struct table_entry {
	__u32 number; /* of the state that holds it already		*/
	__u32 owner;  /* answered: number of a state that has it in the table */
	__u32 reason; /* of the last try				*/
};

/*
 * Enters the tuple of e->number. UNDECIDED: done. REASON_TUPLE_TAKEN: a live
 * state owns it, e->owner. REASON_STATE_BUSY: somebody else is at the bucket. A
 * global function: the verifier walks it once, not for each of its callers.
 */
__noinline int table_try(struct table_entry *e)
{
	__u32 number, old;
	struct bucket *b;
	struct state *st;
	struct tuple *t;
	enum reason r;
	__u64 hash;

	if (!e)
		return REASON_INTERNAL;
	number = e->number;
	st = state_get(STATE_INDEX(number));
	if (!st)
		return REASON_INTERNAL;
	t = &state_course(st, STATE_DIRECTION(number))->tuple;
	hash = tuple_hash(t);
	b = bucket_get(hash);
	if (!b)
		return REASON_INTERNAL;
	if (!bucket_lock(b))
		return REASON_STATE_BUSY;
	old = bucket_owner(b, t, hash);
	if (!old) {
		r = bucket_add(b, t, hash, number);
	} else if (table_owner_yields(old)) {
		r = bucket_replace(b, t, hash, old, number);
	} else {
		e->owner = old;
		r = REASON_TUPLE_TAKEN;
	}
	bucket_unlock(b);
	return r;
}

static long table_step(__u32 n, void *data)
{
	struct table_entry *e = data;

	(void)n;
	e->reason = table_try(e);
	return e->reason != REASON_STATE_BUSY;
}

/* table_try(), again while others are at the bucket. */
static __always_inline enum reason table_enter(__u32 number, __u32 *owner)
{
	struct table_entry e = { .number = number };

	e.reason = table_try(&e);
	if (e.reason == REASON_STATE_BUSY)
		bpf_loop(TABLE_TRIES, table_step, &e, 0);
	*owner = e.owner;
	return e.reason;
}

#endif
