/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the timer does with states (gc.bpf.c): it expires them, and releases those that
 * have ended. */
#ifndef WEIR_STATE_GC_H
#define WEIR_STATE_GC_H

#include "rules/table_counter.h"
#include "state/endpoint.h"
#include "state/export.h"
#include "state/limit.h"
#include "state/normal.h"
#include "state/pool_count.h"
#include "state/tuples.h"

/* The timer. */
struct gc_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gc_timer);
} gc_timers SEC(".maps");

#define CLOCK_MONOTONIC_KERNEL 1

static __always_inline void gc_clock(void)
{
	shared.now = bpf_ktime_get_ns() / TICK_NS;
}

/*
 * pf's adaptive timeouts: from adaptive.start states on they shrink, to 0 at
 * adaptive.end. The timeouts that packets compare with are computed here, once per tick.
 */
static __always_inline void gc_timeouts(void)
{
	__u32 part, i;

	shared.states = shared.states_made - shared.states_released;
	part = limit_part(shared.states, shared.adaptive_start, shared.adaptive_end);
	shared.timeout_part = part;
	homes_fit(shared.states);
	for (i = 0; i < PHASE_COUNT; i++)
		shared.timeout[i] = (__u64)shared.timeout_set[i] * part / 1024;
	shared.timeout_frag = shared.timeout_frag_set;
}

/* Without a daemon nobody hears of changed routes, so every state looks its route up
 * again once a second. */
static __always_inline void gc_bump_routes(void)
{
	if (daemon_is_dead() && shared.now - shared.bumped >= TICKS_PER_SECOND) {
		shared.bumped = shared.now;
		__sync_fetch_and_add(&shared.route_generation, 1);
	}
}

/* Returns how many states this run looks at. */
static __always_inline __u32 gc_count(void)
{
	if (shared.states_made == shared.states_released)
		return 0;
	return state_capacity < GC_SLICE ? state_capacity : GC_SLICE;
}

/* Under pressure timeouts shrink from tick to tick, so every state is looked at. */
static __always_inline int gc_is_under_pressure(void)
{
	return shared.adaptive_end && shared.states > shared.adaptive_start;
}

/* Removes a number's spilled tuple from the table. 0: it may still be there. */
static __always_inline int gc_release_spilled(struct bucket *b, struct tuple *t, __u32 number)
{
	__u32 *entry;
	int gone = 1;

	if (!bucket_lock(b))
		return 0;
	entry = bpf_map_lookup_elem(&spilled_tuples, t);
	if (entry && *(volatile __u32 *)entry == number) {
		gone = !bpf_map_delete_elem(&spilled_tuples, t);
		if (gone)
			__sync_fetch_and_add(&b->spilled, -1);
	}
	bucket_unlock(b);
	return gone;
}

/* Removes a tuple from the table if it is this number's. 0: it may still be there,
 * because another core holds the bucket. */
static __noinline int gc_release_tuple(struct tuple *t, __u32 number)
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
		__u64 slot = bucket_slot(hash, number);

		if (__sync_val_compare_and_swap(&b->slot[i], slot, 0) == slot)
			return 1;
	}
	return b->spilled ? gc_release_spilled(b, t, number) : 1;
}

/* Adds a state's packets to the entries of the tables that the rule of one side names.
 * way: that of direction 0 there. */
static __always_inline void gc_count_side(const struct state *st, __u32 rule, __u32 way)
{
	const struct tuple *t = &st->forth.tuple, *back = &st->back.tuple;
	struct table_amount n = {.packets = st->flow_forth.packets, .bytes = st->flow_forth.bytes, .way = way};

	table_count(rule, &t->src, &back->dst, &t->dst, &back->src, &n);
	n.packets = st->flow_back.packets;
	n.bytes = st->flow_back.bytes;
	n.way ^= TABLE_OUT;
	table_count(rule, &t->src, &back->dst, &t->dst, &back->src, &n);
}

/* A side that keeps no state has counted each packet when it was evaluated. */
static __always_inline void gc_count_tables(const struct state *st)
{
	if (st->rule_in && !(st->flags & STATE_EVALUATE_IN))
		gc_count_side(st, st->rule_in, TABLE_PASS);
	if (st->rule_out && !(st->flags & STATE_EVALUATE_OUT))
		gc_count_side(st, st->rule_out, TABLE_PASS | TABLE_OUT);
}

static __always_inline void gc_release(struct state *st, __u32 index)
{
	hint_withdraw(index); /* a packet may have made it when the state had just ended */
	if (!gc_release_tuple(&st->forth.tuple, STATE_NUMBER(index, 0)) ||
	    !gc_release_tuple(&st->back.tuple, STATE_NUMBER(index, 1))) {
		__sync_lock_test_and_set(&st->status, STATUS_DYING); /* the next pass tries again */
		return;
	}
	if (shared.table_rules)
		gc_count_tables(st);
	if (*state_limits(st))
		limit_release(st, index);
	if (endpoint_is_counted(st))
		endpoint_release(st);
	if (pool_is_counted(st))
		pool_count_release(st, index);
	if (normal_is(st))
		bpf_map_delete_elem(&normals, &index);
	export_state(st);
	alloc_free(st);
}

/* Returns the ticks until a live state expires; <= 0: it has expired. */
static __always_inline __s32 gc_time_left(const struct state *st)
{
	__u32 a = state_age(st, 0), b = state_age(st, 1);
	__u32 timeout = *state_limits(st) ? limit_timeout(st) : st->phase < PHASE_COUNT ? shared.timeout[st->phase] : 0;

	return (__s32)(timeout - ((__s32)a < (__s32)b ? a : b));
}

/* Forgets a next hop that was found under an earlier generation. Its number is not used
 * again. Otherwise it could seem valid when the 16 bits of generations wrap round. */
static __always_inline void gc_forget_nexthop(struct course *c)
{
	if (c->nexthop >= NEXTHOP_FIRST && c->nexthop_generation != (__u16)shared.route_generation)
		c->nexthop = NEXTHOP_NONE;
}

/* A rule has chosen where packets of this direction go: the next hop stays. */
static __always_inline void gc_keep_nexthop(__u32 number)
{
	struct nexthop *n = nexthop_get(number);

	if (n->used != shared.now)
		n->used = shared.now;
}

/* Keeps or forgets the next hop of a direction. */
static __always_inline void gc_nexthop(struct state *st, __u32 d)
{
	struct course *c = state_course(st, d);

	if (state_is_diverted(st, d))
		return;
	if (st->entered & KEPT_ROUTE(d))
		gc_keep_nexthop(c->nexthop);
	else
		gc_forget_nexthop(c);
}

/* Likewise where copies go. */
static __always_inline void gc_keep_copies(const struct state *st, __u32 index)
{
	const struct extra *extra;

	if (!(st->flags & STATE_LOG) || !((st->flow_forth.flags | st->flow_back.flags) & FLOW_COPIED))
		return;
	extra = extra_get(index);
	if (!extra)
		return;
	if (st->flow_forth.flags & FLOW_COPIED)
		gc_keep_nexthop(extra->copy[0]);
	if (st->flow_back.flags & FLOW_COPIED)
		gc_keep_nexthop(extra->copy[1]);
}

/* The loop's cursor is in shared memory: on the stack the verifier would walk every
 * value of it. */
static long gc_step(__u32 n, void *data)
{
	struct state *st;
	__u32 index;
	__s32 left;

	(void)n;
	(void)data;
	index = shared.gc_state >= state_capacity ? 1 : shared.gc_state + 1;
	shared.gc_state = index;
	st = state_get(index);
	if (!st)
		return 1;
	switch (st->status) {
	case STATUS_LIVE:
		if (!gc_is_under_pressure() && (__s32)(shared.now - st->check_at) < 0)
			return 0;
		left = gc_time_left(st);
		if (left <= 0) {
			state_kill(st, index);
			return 0;
		}
		if ((__u32)left <= hint_margin())
			hint_withdraw_live(index);
		gc_nexthop(st, 0);
		gc_nexthop(st, 1);
		gc_keep_copies(st, index);
		st->check_at = shared.now + (left < GC_REVISIT ? left : GC_REVISIT);
		return 0;
	case STATUS_DEAD:
		st->check_at = shared.now + DEAD_GRACE;
		__sync_val_compare_and_swap(&st->status, STATUS_DEAD, STATUS_DYING);
		return 0;
	case STATUS_DYING:
		/* During a reload two generations collect garbage: one of them gets it. */
		if ((__s32)(shared.now - st->check_at) >= 0 &&
		    __sync_val_compare_and_swap(&st->status, STATUS_DYING, STATUS_LEAVING) == STATUS_DYING)
			gc_release(st, index);
		return 0;
	}
	return 0;
}

#endif
