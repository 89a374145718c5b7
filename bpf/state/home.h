/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Homes: the index at which a state is looked for first, by the hash of its first tuple.
 *
 * A page of memory holds 16 states. If few states lay all over the table, each would have a
 * page to itself, and a core knows the addresses of 1,500 to 3,000 pages only (its TLB). So
 * all homes are among the first HOMES_LEAST indices, and among HOMES_FACTOR times as many
 * when more than half of those are taken.
 *
 * If a quarter of them is taken within HOMES_LATELY ticks, far more may be about to come.
 * Then homes are all over the table at once.
 *
 * States do not move. Those from before a change are found by the tuple table, and have no
 * hints: they are one of HOMES_FACTOR states when half of the new homes are taken. The timer
 * goes back to HOMES_LEAST when there are no more states than an eighth of that. Then those
 * from before the growth are at home again.
 */
#ifndef WEIR_STATE_HOME_H
#define WEIR_STATE_HOME_H

#include "shared.h"

/* Returns how many homes there are for so many states, at most state_capacity. */
static __always_inline __u32 homes_for(__u32 count)
{
	__u32 homes = HOMES_LEAST;

	if (homes < 2 * count)
		homes *= HOMES_FACTOR;
	if (homes < 2 * count)
		homes *= HOMES_FACTOR;
	return homes < 2 * count || homes > state_capacity / 2 ? state_capacity : homes;
}

/* Gives states more homes when half are taken. */
static __always_inline void homes_grow(__u32 count)
{
	__u32 homes = *(volatile __u32 *)&shared.homes;
	__s32 lately = count - shared.states_lately;

	if (2 * count <= homes || homes >= state_capacity)
		return;
	*(volatile __u32 *)&shared.homes = lately > (__s32)(homes / 4) ? state_capacity : homes_for(count);
}

/* By the timer: sets them first, and takes them back when few states are left. */
static __always_inline void homes_fit(__u32 count)
{
	if (shared.now - shared.lately_at >= HOMES_LATELY) {
		shared.states_lately = count;
		shared.lately_at = shared.now;
	}
	if (count <= HOMES_LEAST / 8 || !shared.homes || shared.homes > state_capacity)
		shared.homes = homes_for(count);
	homes_grow(count);
}

/* Returns the home of a state, by the hash of its first tuple: 1 to shared.homes. */
static __always_inline __u32 state_home(__u64 hash)
{
	return 1 + (__u32)((hash >> 32) * *(volatile __u32 *)&shared.homes >> 32);
}

#endif
