/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sources: what is remembered of an address that opens states by rules with source-track.
 * A source is one cache line in an array. A hash map leads from its address to its index.
 *
 * Life: FREE -> NEW (one core fills it) -> LIVE, when the hash map leads to it -> GONE (by
 * the timer, if it has no states and its time is over) -> FREE, DEAD_GRACE ticks later: by
 * then no packet on any core has a pointer to it.
 *
 * A state counts from before it is made until the garbage collection releases it, so the
 * counts are exact. The bit SOURCE_GONE in the count of states keeps new states out of a
 * source that goes.
 */
#ifndef WEIR_STATE_SOURCE_H
#define WEIR_STATE_SOURCE_H

#include <linux/errno.h>

#include "state/alloc.h"

enum source_stage {
	SOURCE_FREE,
	SOURCE_NEW,
	SOURCE_LIVE,
	SOURCE_GOING,
};

struct source_key {
	struct addr addr;
	__u32 zone;  /* as in a tuple */
	__u32 limit; /* number of the rule's limits; 0: of all rules with source-track global; or
		      * SOURCE_OF_LIMITER and the id of a source limiter, and addr is masked */
};

#define SOURCE_OF_LIMITER 0x10000u
_Static_assert(MAX_LIMITS <= SOURCE_OF_LIMITER, "limits and limiters are told apart");

struct source {
	struct source_key key;
	__u32 states;	   /* and SOURCE_GONE */
	__u32 connections; /* those of the states whose handshake is complete */
	__u64 rate;	   /* second of the last one << 32 | the threshold's count, in thousandths; of a
			    * limiter's source its bucket (state/limiter_map.h) */
	__u32 stage;	   /* enum source_stage */
	__u32 expires;	   /* tick from which on it may go without states; SOURCE_GOING: when it is free */
	__u32 over;	   /* SOURCE_OVER_*: too many connections or, of a limiter's, states; 0: not */
	__u32 created;	   /* tick */
	__u32 pad0[2];
};
_Static_assert(sizeof(struct source) == 64, "a source is one cache line");

#define SOURCE_GONE 0x80000000u

/* The daemon has not yet put it into its table. Only the daemon writes another value. */
#define SOURCE_OVER_NEW	   1
/* A limiter's source is in the table. */
#define SOURCE_OVER_LISTED 2

/* kept; index 0 unused. mmapped for reading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* source_capacity + 1, by the loader */
	__type(key, __u32);
	__type(value, struct source);
} sources SEC(".maps");

/* kept; the index of each source */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* source_capacity, by the loader */
	__type(key, struct source_key);
	__type(value, __u32);
} source_index SEC(".maps");

static __always_inline struct source *source_get(__u32 index)
{
	return bpf_map_lookup_elem(&sources, &index);
}

static __always_inline struct source *source_find(const struct source_key *key)
{
	const __u32 *index = bpf_map_lookup_elem(&source_index, key);

	return index ? source_get(*index) : 0;
}

/* The search for a free source. */
struct source_search {
	__u32 index;
	__u32 random;
	__u32 taken;
};

static long source_take_step(__u32 n, void *data)
{
	struct source_search *p = data;
	struct source *s;

	(void)n;
	p->random = alloc_random(p->random);
	p->index = 1 + (__u32)((__u64)p->random * source_capacity >> 32);
	s = source_get(p->index);
	p->taken = s && __sync_val_compare_and_swap(&s->stage, SOURCE_FREE, SOURCE_NEW) == SOURCE_FREE;
	return p->taken;
}

/* Returns what counts the sources of a key's kind. */
static __always_inline __u32 *source_count(const struct source_key *key)
{
	return key->limit & SOURCE_OF_LIMITER ? &shared.limiter_sources : &shared.sources;
}

/* Takes a free source, which is NEW from now on, and returns its index. 0: there is none. The
 * entries of limiters bound the number of their sources. */
static __always_inline __u32 source_take(const struct source_key *key)
{
	struct source_search p = { .random = bpf_get_prandom_u32() | 1 };

	if (__sync_fetch_and_add(source_count(key), 1) < shared.source_limit || key->limit & SOURCE_OF_LIMITER) {
		bpf_loop(ALLOC_TRIES, source_take_step, &p, 0);
		if (p.taken)
			return p.index;
	}
	__sync_fetch_and_add(source_count(key), -1);
	return 0;
}

static __always_inline void source_free(struct source *s, const struct source_key *key)
{
	__sync_lock_test_and_set(&s->stage, SOURCE_FREE);
	__sync_fetch_and_add(source_count(key), -1);
}

/* Makes a source with one state, and with a rate or bucket. UNDECIDED; REASON_STATE_BUSY: another core has just made
 * it; REASON_SRC_NODES: there is no room. */
__noinline enum reason source_make(const struct source_key *key, __u64 rate)
{
	struct source *s;
	__u32 index;
	long error;

	if (!key)
		return REASON_INTERNAL;
	index = source_take(key);
	s = source_get(index);
	if (!index || !s)
		return REASON_SRC_NODES;
	s->key = *key;
	s->states = 1;
	s->connections = 0;
	s->rate = rate;
	s->over = 0;
	s->expires = shared.now;
	s->created = shared.now;
	error = bpf_map_update_elem(&source_index, key, &index, BPF_NOEXIST);
	if (error) {
		source_free(s, key);
		return error == -EEXIST ? REASON_STATE_BUSY : REASON_SRC_NODES;
	}
	__sync_lock_test_and_set(&s->stage, SOURCE_LIVE);
	return UNDECIDED;
}

#endif
