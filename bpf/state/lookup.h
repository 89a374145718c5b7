/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a tuple to its state: at its home first, then by the tuple table. A state
 * number is index << 1 | direction.
 */
#ifndef WEIR_STATE_LOOKUP_H
#define WEIR_STATE_LOOKUP_H

#include "state/hint.h"

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

/* Marks a state dead; true if this call did it. The sweep does the rest. */
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

/* The crossing that a packet of this direction makes at this hook. */
static __always_inline __u8 state_crossing(__u32 direction, int in)
{
	if (in)
		return direction ? STATE_OUT : STATE_IN;
	return direction ? STATE_IN : STATE_OUT;
}

/* The packet as it will leave, in the order of its own direction. */
static __always_inline void state_leaving(struct tuple *t, const struct state *st, __u32 d)
{
	tuple_reverse(t, d ? &st->forth.tuple : &st->back.tuple);
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
