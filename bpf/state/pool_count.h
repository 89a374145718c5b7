/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The states at each address of a pool with least-states. A state counts at each address that
 * pools with least-states have given to its crossings, from the moment when it is made until
 * the garbage collection releases it. It has a list of them, so that rules, pools and
 * interfaces may change meanwhile. docs/packet-path.md, 6.
 *
 * Cost when no rule says least-states: one test for each state that ends.
 */
#ifndef WEIR_STATE_POOL_COUNT_H
#define WEIR_STATE_POOL_COUNT_H

#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

#include "rules/pool_load.h"
#include "state/state.h"

/* What a state counts at: nat, rdr and next hop of the in crossing, then those of the out
 * crossing. An entry with states 0 is not used. */
#define POOL_USES 6
struct pool_use {
	struct pool_choice of[POOL_USES];
};

/* kept; by the state's index, with FLOW_POOLED. An entry takes memory only while it is there. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* by the loader */
	__type(key, __u32);
	__type(value, struct pool_use);
} pool_uses SEC(".maps");

/* How often a state tries to count at an address whose entry another core removes. */
#define POOL_TRIES 8

/* Tries to count a state at an address. 0: done, 1: another core makes or removes the entry right now,
 * < 0: there is no room. */
__noinline int pool_join_once(const struct pool_choice *key)
{
	struct pool_load one = {.states = 1}, *known;
	long error;

	if (!key)
		return -1;
	known = bpf_map_lookup_elem(&pool_loads, key);
	if (!known) {
		error = bpf_map_update_elem(&pool_loads, key, &one, BPF_NOEXIST);
		return !error ? 0 : error == -EEXIST ? 1 : -1;
	}
	/* the memory of an entry that goes may be that of another address by now */
	if (!(__sync_fetch_and_add(&known->states, 1) & POOL_LOAD_GONE) && bpf_map_lookup_elem(&pool_loads, key) == known)
		return 0;
	__sync_fetch_and_add(&known->states, -1);
	return 1;
}

/* Counts a state at an address. 0: it does now. */
static __always_inline int pool_join(const struct pool_choice *key)
{
	int rc = 1, i;

	for (i = 0; i < POOL_TRIES && rc > 0; i++)
		rc = pool_join_once(key);
	return rc;
}

/* Takes a state back. The entry goes with the last one. */
static __always_inline void pool_leave(const struct pool_choice *key)
{
	struct pool_load *known = bpf_map_lookup_elem(&pool_loads, key);

	if (known && __sync_fetch_and_add(&known->states, -1) == 1 &&
	    !__sync_val_compare_and_swap(&known->states, 0, POOL_LOAD_GONE))
		bpf_map_delete_elem(&pool_loads, key);
}

/* Takes a state back from all that it counts at. */
__noinline int pool_count_leave(struct pool_use *use)
{
	__u32 i;

	if (!use)
		return 0;
	for (i = 0; i < POOL_USES; i++)
		if (use->of[i].states)
			pool_leave(&use->of[i]);
	return 0;
}

/* Counts a NEW state at the addresses of a list. What cannot be counted leaves the list. If there
 * is no room for the list, it counts at none. */
__noinline int pool_count_enter(struct state *st, __u32 index, struct pool_use *use)
{
	__u32 i, counted = 0;

	if (!st || !use)
		return 0;
	for (i = 0; i < POOL_USES; i++) {
		if (!use->of[i].states)
			continue;
		if (pool_join(&use->of[i]))
			use->of[i].states = 0;
		else
			counted = 1;
	}
	if (!counted)
		return 0;
	if (bpf_map_update_elem(&pool_uses, &index, use, BPF_ANY))
		pool_count_leave(use);
	else
		st->flow_forth.flags |= FLOW_POOLED;
	return 0;
}

/* Takes a state that ends back from what it counts at. */
__noinline int pool_count_release(struct state *st, __u32 index)
{
	struct pool_use *use;

	if (!st)
		return 0;
	use = bpf_map_lookup_elem(&pool_uses, &index);
	if (!use)
		return 0;
	pool_count_leave(use);
	bpf_map_delete_elem(&pool_uses, &index);
	st->flow_forth.flags &= ~FLOW_POOLED;
	return 0;
}

static __always_inline int pool_is_counted(const struct state *st)
{
	return st->flow_forth.flags & FLOW_POOLED;
}

#endif
