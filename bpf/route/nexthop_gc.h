/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Next hops that nobody uses any more give their numbers back.
 *
 * States hold such numbers, and so do packets on their way. So it takes three walks over
 * the table, with a pause between them that is longer than any packet is on its way. The
 * first walk takes the next hop out of nexthop_index: no look-up finds the number any
 * more. Before the second walk the route generation changes: no state uses the number
 * without a new look-up. The third walk makes the number available.
 *
 * The states of a next hop that a rule has chosen cannot look up another one: its number
 * is all that they know of the choice. So it stays as long as a state has it. The walk over
 * the states marks such next hops as used (state/gc.h), and one that is found used between
 * the walks stays.
 *
 * During a reload two timers walk, one at a time: the other one skips its part.
 */
#ifndef WEIR_ROUTE_NEXTHOP_GC_H
#define WEIR_ROUTE_NEXTHOP_GC_H

#include "route/nexthop_index.h"

static __always_inline int nexthop_gc_move(struct nexthop *n, __u32 from, __u32 to)
{
	return __sync_val_compare_and_swap(&n->stage, from, to) == from;
}

static __always_inline void nexthop_gc_unlist(struct nexthop *n, __u32 number)
{
	struct nexthop_key key = {};
	__u32 *known;

	nexthop_key_of(&key, n);
	known = bpf_map_lookup_elem(&nexthop_index, &key);
	if (known && *known == number)
		bpf_map_delete_elem(&nexthop_index, &key);
	shared.gc_unlisted = 1;
}

static __always_inline void nexthop_gc_release(struct nexthop *n, __u32 number)
{
	n->flags = 0;
	n->ifindex = 0;
	n->gateway = (struct addr){};
	if (!bpf_map_push_elem(&nexthops_free, &number, 0))
		__sync_fetch_and_add(&shared.nexthops_unused, 1);
}

/* Returns the ticks after which a next hop counts as unused. A chosen one is marked once in
 * a pass over the states, and late fragments may use it without a state. */
static __always_inline __u32 nexthop_gc_idle(const struct nexthop *n)
{
	if (!(n->flags & NEXTHOP_CHOSEN))
		return NEXTHOP_IDLE;
	return NEXTHOP_IDLE + GC_REVISIT + 2 * (state_capacity / GC_SLICE) + shared.timeout_frag;
}

/* Whether a packet or a state has used a chosen next hop since it was unlisted. Then it is
 * listed again. If another number has its key by now, both stay. */
static __always_inline int nexthop_gc_recall(struct nexthop *n, __u32 number, __u32 stage)
{
	struct nexthop_key key = {};

	if (!(n->flags & NEXTHOP_CHOSEN) || shared.now - n->used >= nexthop_gc_idle(n))
		return 0;
	if (nexthop_gc_move(n, stage, NEXTHOP_LISTED)) {
		nexthop_key_of(&key, n);
		bpf_map_update_elem(&nexthop_index, &key, &number, BPF_NOEXIST);
	}
	return 1;
}

/* The cursor is in shared memory, like that of the states (state/gc.h). */
static long nexthop_gc_step(__u32 i, void *data)
{
	__u32 number = shared.gc_nexthop;
	struct nexthop *n;

	(void)i;
	(void)data;
	if (number < NEXTHOP_FIRST || number >= shared.nexthops_high + NEXTHOP_FIRST || number >= MAX_NEXTHOPS) {
		shared.gc_nexthop = 0;
		shared.gc_nexthop_at = shared.now;
		return 1;
	}
	shared.gc_nexthop = number + 1;
	n = &shared.nexthops[number & (MAX_NEXTHOPS - 1)];
	switch (n->stage) {
	case NEXTHOP_LISTED:
		if ((n->ifindex || n->flags & NEXTHOP_CHOSEN) && shared.now - n->used >= nexthop_gc_idle(n) &&
		    nexthop_gc_move(n, NEXTHOP_LISTED, NEXTHOP_UNLISTED))
			nexthop_gc_unlist(n, number);
		return 0;
	case NEXTHOP_UNLISTED:
		if (!nexthop_gc_recall(n, number, NEXTHOP_UNLISTED))
			nexthop_gc_move(n, NEXTHOP_UNLISTED, NEXTHOP_FORGOTTEN);
		return 0;
	case NEXTHOP_FORGOTTEN:
		if (!nexthop_gc_recall(n, number, NEXTHOP_FORGOTTEN) && nexthop_gc_move(n, NEXTHOP_FORGOTTEN, NEXTHOP_FREE))
			nexthop_gc_release(n, number);
		return 0;
	}
	return 0;
}

static __always_inline void nexthop_gc_walk(void)
{
	if (!shared.gc_nexthop) {
		if (shared.now - shared.gc_nexthop_at < NEXTHOP_WALK)
			return;
		if (shared.gc_unlisted) {
			shared.gc_unlisted = 0;
			__sync_fetch_and_add(&shared.route_generation, 1);
		}
		shared.gc_nexthop = NEXTHOP_FIRST;
	}
	bpf_loop(NEXTHOP_SLICE, nexthop_gc_step, 0, 0);
}

/* Two walks at once could set the cursor back, and a number would take two steps in one
 * walk. The holder of this lock always finishes: no program is killed while it runs. */
static __always_inline void nexthop_gc_run(void)
{
	if (__sync_val_compare_and_swap(&shared.gc_lock, 0, 1))
		return;
	nexthop_gc_walk();
	__sync_lock_test_and_set(&shared.gc_lock, 0);
}

#endif
