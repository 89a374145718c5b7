/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * State limiters and source limiters of OpenBSD's pf: limits that several rules share.
 * A rule asks them when all else of it matches (rules/visit.h); if one refuses, the rule
 * does not match, or the packet is dropped. The state counts when it is made. It holds the
 * ids of its limiters (limited), and counts until the garbage collection releases it.
 *
 * The id is the number of a limiter: as in pf, one that other rules define again goes on.
 */
#ifndef WEIR_STATE_LIMITER_H
#define WEIR_STATE_LIMITER_H

#include "observe/reason.h"
#include "state/limiter_map.h"
#include "state/limit_map.h"
#include "state/source.h"

enum limiter_answer {
	LIMITER_ADMITS,
	LIMITER_REFUSES,
	LIMITER_MISSING, /* there is none: the rule never matches */
};

static __always_inline void limiter_count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

/* Asks a state limiter whether it has room for a state. */
__noinline int limiter_admits(__u32 id)
{
	struct limiter *l = limiter_get(id & 0xff);

	if (!l || !l->limit)
		return LIMITER_MISSING;
	if (*(volatile __u32 *)&l->states >= l->limit) {
		limiter_count(&l->full);
		return LIMITER_REFUSES;
	}
	if (!limiter_has_token(l, &l->emptied)) {
		limiter_count(&l->fast);
		return LIMITER_REFUSES;
	}
	return LIMITER_ADMITS;
}

/* Clears all but the first bits of an address. */
static __always_inline void limiter_mask(struct addr *a, __u32 bits)
{
	__u32 i, left;

	for (i = 0; i < 4; i++) {
		left = bits > i * 32 ? bits - i * 32 : 0;
		if (left < 32)
			a->word[i] &= left ? bpf_htonl(~0U << (32 - left)) : 0;
	}
}

/* Fills in the key of an address's source of a source limiter. */
static __always_inline void limiter_key(struct source_key *key, __u32 id, const struct addr *a, __u32 zone)
{
	struct limiter *l = limiter_get(LIMITER_SOURCES + (id & 0xff));

	key->addr = *a;
	key->zone = zone;
	key->limit = SOURCE_OF_LIMITER | (id & 0xff);
	if (l)
		limiter_mask(&key->addr, addr_is4(a) ? l->bits4 : l->bits6);
}

/* Asks a source limiter whether it has room for a state of an address. key: room for that of
 * the source. */
static __always_inline int limiter_admits_source(__u32 id, const struct addr *a, __u32 zone, struct source_key *key)
{
	struct limiter *l = limiter_get(LIMITER_SOURCES + (id & 0xff));
	struct source *s;

	if (!l || !l->limit)
		return LIMITER_MISSING;
	limiter_key(key, id, a, zone);
	s = source_find(key);
	if (!s) {
		if (*(volatile __u32 *)&l->nodes < l->entries)
			return LIMITER_ADMITS;
		limiter_count(&l->crowded);
		return LIMITER_REFUSES;
	}
	if ((*(volatile __u32 *)&s->states & ~SOURCE_GONE) >= l->limit) {
		limiter_count(&l->full);
		return LIMITER_REFUSES;
	}
	if (!limiter_has_token(l, &s->rate)) {
		limiter_count(&l->fast);
		return LIMITER_REFUSES;
	}
	return LIMITER_ADMITS;
}

/* Counts a state under a state limiter. forced: even if it has no room. Returns UNDECIDED, or
 * why the state may not be made: another one has been faster. */
static __always_inline enum reason limiter_join(__u32 id, __u32 forced)
{
	struct limiter *l = limiter_get(id & 0xff);

	if (!l)
		return REASON_INTERNAL;
	if (__sync_fetch_and_add(&l->states, 1) >= l->limit && !forced) {
		limiter_count(&l->full);
	} else if (!forced && l->token && !limiter_take_token(l, &l->emptied)) {
		limiter_count(&l->fast);
	} else {
		if (!forced)
			limiter_count(&l->admitted);
		return UNDECIDED;
	}
	__sync_fetch_and_add(&l->states, -1);
	return REASON_STATE_LIMITER;
}

/* Takes a state back from a state limiter; unmade: with its token. */
static __always_inline void limiter_leave(__u32 id, __u32 unmade)
{
	struct limiter *l = limiter_get(id & 0xff);

	if (!l)
		return;
	__sync_fetch_and_add(&l->states, -1);
	if (unmade)
		__sync_fetch_and_add(&l->emptied, -l->token);
}

/* Makes a source with one state, if the limiter may have one more. Its bucket is full, but for
 * this state's token. */
static __always_inline enum reason limiter_make_source(const struct source_key *key, struct limiter *l, __u32 forced)
{
	enum reason r;

	if (__sync_fetch_and_add(&l->nodes, 1) >= l->entries && !forced) {
		limiter_count(&l->crowded);
		r = REASON_SOURCE_LIMITER;
	} else {
		r = source_make(key, limiter_now() - l->bucket + (forced ? 0 : l->token));
	}
	if (r != UNDECIDED)
		__sync_fetch_and_add(&l->nodes, -1);
	return r;
}

/* Counts a state of a source that is known. */
static __always_inline enum reason limiter_join_known(struct source *s, struct limiter *l, __u32 forced)
{
	__u32 states = __sync_fetch_and_add(&s->states, 1);
	enum reason r = UNDECIDED;

	if (states & SOURCE_GONE) {
		r = REASON_STATE_BUSY;
	} else if (!forced && states >= l->limit) {
		limiter_count(&l->full);
		r = REASON_SOURCE_LIMITER;
	} else if (!forced && l->token && !limiter_take_token(l, &s->rate)) {
		limiter_count(&l->fast);
		r = REASON_SOURCE_LIMITER;
	}
	if (r != UNDECIDED) {
		__sync_fetch_and_add(&s->states, -1);
		return r;
	}
	if (l->above && states + 1 > l->above && !s->over) {
		s->over = SOURCE_OVER_NEW;
		__sync_fetch_and_add(&shared.overloads, 1);
	}
	return UNDECIDED;
}

/* Counts a state under a source limiter, by the key of its source. Returns UNDECIDED;
 * REASON_STATE_BUSY: another core makes or removes the source right now; else why the state
 * may not be made. */
__noinline enum reason limiter_join_source(const struct source_key *key, __u32 forced)
{
	struct limiter *l;
	struct source *s;
	enum reason r;

	if (!key)
		return REASON_INTERNAL;
	l = limiter_get(LIMITER_SOURCES + (key->limit & 0xff));
	if (!l)
		return REASON_INTERNAL;
	s = source_find(key);
	r = s ? limiter_join_known(s, l, forced) : limiter_make_source(key, l, forced);
	if (r != UNDECIDED)
		return r;
	__sync_fetch_and_add(&l->states, 1);
	if (!forced)
		limiter_count(&l->admitted);
	return UNDECIDED;
}

/* Takes a state back from a source limiter; unmade: with its token. */
static __always_inline void limiter_leave_source(const struct source_key *key, __u32 unmade)
{
	struct limiter *l = limiter_get(LIMITER_SOURCES + (key->limit & 0xff));
	struct source *s = source_find(key);
	__u32 left;

	if (!l || !s)
		return;
	s->expires = shared.now + l->keep;
	if (unmade)
		__sync_fetch_and_add(&s->rate, -l->token);
	left = __sync_fetch_and_add(&s->states, -1) - 1;
	__sync_fetch_and_add(&l->states, -1);
	if (s->over == SOURCE_OVER_LISTED && left < l->below)
		__sync_fetch_and_add(&shared.overloads, 1);
}

/* Whether the daemon is still to take a source out of its table. */
static __always_inline int limiter_unlists(const struct source *s)
{
	const struct limiter *l;

	if (s->over != SOURCE_OVER_LISTED)
		return 0;
	l = limiter_get(LIMITER_SOURCES + (s->key.limit & 0xff));
	return l && l->below;
}

/* A source of a limiter is gone. */
static __always_inline void limiter_forget(__u32 id)
{
	struct limiter *l = limiter_get(LIMITER_SOURCES + (id & 0xff));

	if (l)
		__sync_fetch_and_add(&l->nodes, -1);
}

#endif
