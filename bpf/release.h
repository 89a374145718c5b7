/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The end of a state: its tuples leave the table, its slot is free again. */
#ifndef WEIR_RELEASE_H
#define WEIR_RELEASE_H

#include "lookup.h"

/* Takes a tuple out of the table if it is still this number's. */
static __noinline int tuple_release(struct tuple *t, __u32 number)
{
	__u32 *entry;

	if (!t)
		return 0;
	entry = bpf_map_lookup_elem(&tuples, t);
	if (!entry || __sync_val_compare_and_swap(entry, number, TOMBSTONE) != number)
		return 0;
	bpf_map_delete_elem(&tuples, t);
	return 0;
}

/* Gives a slot back whose tuples are not, or no longer, in the table. */
static __always_inline void slot_return(struct state *st, __u32 index)
{
	__sync_lock_test_and_set(&st->status, STATUS_FREE);
	__sync_fetch_and_add(&shared.states_released, 1);
	bpf_map_push_elem(&free_states, &index, 0);
}

#endif
