/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Promises: four bytes for each place of a state. One says that the state which lies
 * there has a first tuple of this tag, that it forwards packets of direction 0 without
 * any other question, and to which next hop. By that alone the first look (path/prefetch.h)
 * sends a packet on.
 *
 * A promise is made by a packet of direction 0. It is withdrawn by the packet that
 * gives the state a short timeout, by whoever ends the state, and by the sweep as long
 * before the state expires as it may take to come by again. All of them are void when
 * a route moves, or timeouts are set anew.
 *
 * A tuple has the tag of another's promise once in 2^24 times, and is compared with up
 * to PROMISE_LOOKS of them. The second look finds out, and cannot but drop the packet; it
 * breaks the promise for as long as the state lives, so that it happens to no other.
 */
#ifndef WEIR_STATE_HINT_H
#define WEIR_STATE_HINT_H

#include "state/table.h"

#define PROMISE_TARGET (PROMISED - 1) /* the bits of a promise that index shared.promised */
#define PROMISE_TAG    (~(__u32)PROMISE_TARGET)
#define PROMISE_NONE   0
#define PROMISE_BROKEN PROMISED /* no next hop's: none has the target 0 */

/* The place where the state of a first packet's tuple lies if it is free: 1 to state_slots. */
static __always_inline __u32 state_home(__u64 hash)
{
	return 1 + (__u32)((hash >> 32) * state_slots >> 32);
}

/* A state is not promised in its last ticks: how many. */
static __always_inline __u32 promise_margin(void)
{
	__u32 pass = state_slots / SWEEP_SLICE;

	/* runs of the sweep take time, too */
	return SWEEP_REVISIT + pass + pass / 4 + TICKS_PER_SECOND;
}

/* The promise of the tuple with the hash, to the next hop of a number, which was found
 * under this generation of routes. */
static __always_inline __u32 promise_word(__u64 hash, __u16 nexthop, __u32 generation)
{
	__u32 tag = (__u32)hash ^ nexthop * 0x9e3779b1u ^ generation * 0x85ebca6bu;

	return (tag & PROMISE_TAG) | (nexthop & PROMISE_TARGET);
}

static __always_inline __u32 *promise_at(__u32 index)
{
	__u32 key = index / PROMISES;
	struct promises *p = bpf_map_lookup_elem(&promises, &key);

	return p ? &p->word[index % PROMISES] : 0;
}

/* A line that stays as it is is not written: other cores read it. */
static __always_inline void promise_write(__u32 index, __u32 word)
{
	__u32 *p = promise_at(index);

	if (p && *(volatile __u32 *)p != word)
		*(volatile __u32 *)p = word;
}

static __always_inline void promise_withdraw(__u32 index)
{
	promise_write(index, PROMISE_NONE);
}

/* The same, while the state lives. */
static __always_inline void promise_lapse(__u32 index)
{
	__u32 *p = promise_at(index);

	if (p && *(volatile __u32 *)p != PROMISE_BROKEN)
		promise_write(index, PROMISE_NONE);
}

/* Lets promises name the next hop; false if they name another that is in use. A promise
 * that named the other is void then: its tag has the other's number in it. */
static __always_inline int promise_target(__u16 nexthop)
{
	__u16 *at = &shared.promised[nexthop & PROMISE_TARGET], other = *(volatile __u16 *)at;
	const struct nexthop *n = &shared.nexthops[other & (MAX_NEXTHOPS - 1)];

	if (other == nexthop)
		return 1;
	if (!(nexthop & PROMISE_TARGET) || (other && shared.now - n->checked < 2 * NEXTHOP_FRESH))
		return 0;
	*(volatile __u16 *)at = nexthop;
	return 1;
}

/* Whether packets of direction 0 that come in need nothing but what a second look can do. */
static __always_inline int is_plain(const struct state *s)
{
	return (s->flags & (STATE_IN | STATE_JUDGE_IN | STATE_JUDGE_OUT | STATE_LOG)) == STATE_IN && s->entered;
}

/* Whether a state cannot expire before the sweep has withdrawn its promise. */
static __always_inline int is_lasting(const struct state *s)
{
	if (s->phase >= PHASE_TCP_CLOSING && s->phase <= PHASE_TCP_CLOSED)
		return 0;
	/* those that are set are in force a tick later */
	return s->phase < PHASE_COUNT && shared.timeout[s->phase] > promise_margin() &&
	       shared.timeout_set[s->phase] > promise_margin();
}

/* A packet of the state, of either direction, has changed what it may have: the next of
 * direction 0 may be looked at twice, or not any more. A global function: its callers'
 * stacks are full. */
__noinline int promise_renew(__u32 number)
{
	__u32 generation = *(volatile __u32 *)&shared.route_generation;
	__u32 index = STATE_INDEX(number), word = PROMISE_NONE, *p;
	const struct state *s = state_get(index);
	const struct course *c;

	if (!s)
		return 0;
	c = &s->forth;
	if (is_plain(s) && is_lasting(s)) {
		if (STATE_DIRECTION(number))
			return 0;
		if (c->nexthop >= NEXTHOP_FIRST && c->nexthop_generation == (__u16)generation &&
		    promise_target(c->nexthop))
			word = promise_word(tuple_hash(&c->tuple), c->nexthop, generation);
	}
	p = promise_at(index);
	if (p && *(volatile __u32 *)p != PROMISE_BROKEN)
		promise_write(index, word);
	return 0;
}

#endif
