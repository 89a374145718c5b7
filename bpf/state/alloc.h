/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Room for a new state: its home if that is free, else another index. */
#ifndef WEIR_STATE_ALLOC_H
#define WEIR_STATE_ALLOC_H

#include "state/lookup.h"

static __always_inline __u32 alloc_random(__u32 x)
{
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

/* Counts one more state, unless set limit states is reached. */
static __always_inline int alloc_count(void)
{
	__u32 made = __sync_fetch_and_add(&shared.states_made, 1) + 1;
	__s32 used = made - shared.states_released;

	/* others may have made and released some since: then it is negative */
	if (used <= (__s32)shared.limit) {
		if (used > 0)
			homes_grow(used);
		return 1;
	}
	__sync_fetch_and_add(&shared.states_made, -1);
	return 0;
}

/* The search for a free state. */
struct alloc {
	__u32 index; /* the last one tried */
	__u32 random;
	__u32 taken;
};

static __always_inline int alloc_try(struct alloc *p)
{
	struct state *st = state_get(p->index);

	p->taken = st && __sync_val_compare_and_swap(&st->status, STATUS_FREE, STATUS_NEW) == STATUS_FREE;
	return p->taken;
}

/* Tries the indices next to the home, where a hint is still found (but not beyond the
 * table's end), and then any home. */
static long alloc_step(__u32 n, void *data)
{
	struct alloc *p = data;

	if (n < HINT_PROBES - 1) {
		p->index = p->index >= state_capacity ? 1 : p->index + 1;
	} else {
		p->random = alloc_random(p->random);
		p->index = 1 + (__u32)((__u64)p->random * *(volatile __u32 *)&shared.homes >> 32);
	}
	return alloc_try(p);
}

/* Takes a free index for a state whose first tuple has the hash; the state is NEW from
 * now on. 0: there is none. */
static __always_inline __u32 alloc_take(__u64 hash, __u32 random)
{
	struct alloc p = { .index = state_home(hash), .random = random | 1 };

	/* mostly the home is free, and no call is needed */
	if (!alloc_try(&p))
		bpf_loop(ALLOC_TRIES - 1, alloc_step, &p, 0);
	return p.taken ? p.index : 0;
}

/* Gives back a state whose tuples are not, or no longer, in the table. */
static __always_inline void alloc_free(struct state *st)
{
	__sync_lock_test_and_set(&st->status, STATUS_FREE);
	__sync_fetch_and_add(&shared.states_released, 1);
}

#endif
