/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The tuple table, which knows the owner of each tuple: entering tuples.
 *
 * A core that enters a tuple locks the bucket and then looks, so no tuple is entered
 * twice. The garbage collection removes tuples (state/gc.h): from a slot without a lock,
 * but spilled tuples only under the lock.
 */
#ifndef WEIR_STATE_TUPLES_H
#define WEIR_STATE_TUPLES_H

#include "state/lookup.h"

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

/* Gives a locked bucket's tuple from the number `old' to another. */
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
	if (!entry) /* the garbage collection has just removed it */
		return bucket_add(b, t, hash, number);
	*(volatile __u32 *)entry = number;
	return UNDECIDED;
}

/* Whether the owner of a tuple is dead or has expired, and so gives the tuple up. */
static __always_inline int tuples_owner_is_gone(__u32 owner)
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

/* A tuple to be entered into the tuple table. */
struct tuples_entry {
	__u64 hash;   /* of the tuple */
	__u32 number; /* of the state that holds it already		*/
	__u32 owner;  /* result: number of a state that has it in the table */
	__u32 reason; /* result of the last try */
};

/*
 * Enters the tuple of e->number. UNDECIDED: done. REASON_TUPLE_TAKEN: a live state, e->owner,
 * has it; that may be the same state in the other direction. REASON_STATE_BUSY: another core
 * holds the bucket. This is a global function so that the verifier walks it once, and not for
 * each caller.
 */
__noinline int tuples_try(struct tuples_entry *e)
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
	hash = e->hash;
	st = state_get(STATE_INDEX(number));
	if (!st)
		return REASON_INTERNAL;
	t = &state_course(st, STATE_DIRECTION(number))->tuple;
	b = bucket_get(hash);
	if (!b)
		return REASON_INTERNAL;
	if (!bucket_lock(b))
		return REASON_STATE_BUSY;
	old = bucket_owner(b, t, hash);
	if (!old) {
		r = bucket_add(b, t, hash, number);
	} else if (STATE_INDEX(old) != STATE_INDEX(number) && tuples_owner_is_gone(old)) {
		r = bucket_replace(b, t, hash, old, number);
	} else {
		e->owner = old;
		r = REASON_TUPLE_TAKEN;
	}
	bucket_unlock(b);
	return r;
}

static long tuples_step(__u32 n, void *data)
{
	struct tuples_entry *e = data;

	(void)n;
	e->reason = tuples_try(e);
	return e->reason != REASON_STATE_BUSY;
}

/* Like tuples_try(), with retries while other cores hold the bucket. hash: of the tuple. */
static __always_inline enum reason tuples_enter(__u32 number, __u64 hash, __u32 *owner)
{
	struct tuples_entry e = { .hash = hash, .number = number };

	e.reason = tuples_try(&e);
	if (e.reason == REASON_STATE_BUSY)
		bpf_loop(TUPLES_TRIES, tuples_step, &e, 0);
	*owner = e.owner;
	return e.reason;
}

#endif
