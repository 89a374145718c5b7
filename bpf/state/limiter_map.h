/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Limiters: limits that several rules share (state/limiter.h). */
#ifndef WEIR_STATE_LIMITER_MAP_H
#define WEIR_STATE_LIMITER_MAP_H

#include <bpf/bpf_helpers.h>

#include "config.h"
#include "shared.h"

/*
 * The bucket of a rate is pf's: it holds the time since it was empty, at most a whole span.
 * A state takes a token out of it, a span divided by the number of states.
 */
struct limiter {
	/* by the daemon */
	char name[16];
	__u32 limit;   /* states, for a source limiter of one source; 0: the rules define no such limiter */
	__u32 entries; /* sources */
	__u64 token;   /* nanoseconds; 0: no rate */
	__u64 bucket;  /* nanoseconds in a full one */
	__u32 above;   /* a source with more states gets into a table ... */
	__u32 below;   /* ... until it has fewer; both 0: none */
	__u32 keep;    /* ticks that a source is kept without states */
	__u8 bits4;    /* of an IPv4-mapped address that tell sources apart: 96 to 128 */
	__u8 bits6;
	__u8 pad0[10];
	/* by packets */
	__u64 emptied; /* when the bucket was empty, in nanoseconds */
	__u32 states;
	__u32 nodes;	 /* sources */
	__u64 admitted;	 /* states */
	__u64 full;	 /* refused: as many states as limit */
	__u64 fast;	 /* refused: the bucket was empty */
	__u64 crowded;	 /* refused: as many sources as entries */
	__u64 pad1[2];
};
_Static_assert(sizeof(struct limiter) == 128, "what packets write is in a line of its own");
_Static_assert(__builtin_offsetof(struct limiter, emptied) == 64, "likewise");

/* Source limiters begin here: ids are 1 to 255. */
#define LIMITER_SOURCES (MAX_LIMITERS / 2)

/* kept; state limiters by id, and then source limiters. mmapped by the daemon and by reading
 * commands. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_LIMITERS);
	__type(key, __u32);
	__type(value, struct limiter);
} limiters SEC(".maps");

/* The limiters that count a state. */
struct limited {
	__u32 limiters; /* as in limit_entry.limiters */
	__u32 pad0;
};

/* kept; by the state's index, with LIMITS_LIMITERS. mmapped by the daemon and by reading
 * commands. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* state_capacity + 1, by the loader */
	__type(key, __u32);
	__type(value, struct limited);
} limited SEC(".maps");

static __always_inline struct limited *limited_get(__u32 index)
{
	return bpf_map_lookup_elem(&limited, &index);
}

static __always_inline struct limiter *limiter_get(__u32 number)
{
	return bpf_map_lookup_elem(&limiters, &number);
}

static __always_inline __u64 limiter_now(void)
{
	return shared.now * TICK_NS;
}

/* Whether a bucket has a token. */
static __always_inline int limiter_has_token(const struct limiter *l, const __u64 *emptied)
{
	return !l->token || limiter_now() - *(const volatile __u64 *)emptied >= l->token;
}

/* Takes a token out of a bucket. 0: there is none, or so many cores take some that there soon
 * is none. */
static __always_inline int limiter_take_token(const struct limiter *l, __u64 *emptied)
{
	__u64 now = limiter_now(), old, has;
	__u32 i;

	for (i = 0; i < RATE_TRIES; i++) {
		old = *(volatile __u64 *)emptied;
		has = now - old;
		if (has > l->bucket)
			has = l->bucket;
		if (has < l->token)
			return 0;
		if (__sync_val_compare_and_swap(emptied, old, now - has + l->token) == old)
			return 1;
	}
	return 0;
}

#endif
