/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Round-trip times of TCP connections, for each class: how long after a segment with data its
 * acknowledgement comes back. One segment at a time of some connections is followed. Each
 * connection has a slot by its state's index. Several share one; the first has it.
 *
 *   idle    nothing is followed                    ──▶ due: the timer, in turn
 *   due     the next segment with data is noted    ──▶ armed
 *   armed   the next new segment is followed       ──▶ under way
 *   under way  until it is acknowledged: a sample; or until anything before its end is sent
 *              again: none (Karn and Partridge 1987)
 *
 * A segment is new if it begins where everything that its sender had sent ended. So it takes
 * two to begin.
 *
 * Packets look at one byte (queue_data.on). The time is that of the timer: whole milliseconds.
 */
#ifndef WEIR_QUEUE_TRIP_H
#define WEIR_QUEUE_TRIP_H

#include "queue/queue.h"

/* Returns the bucket of a time: one for each millisecond below 16, then 16 for each doubling. */
static __always_inline __u32 queue_rtt_bucket(__u32 ms)
{
	__u32 e;

	if (ms > 16383)
		ms = 16383;
	if (ms < 16)
		return ms;
	e = queue_highest(ms);
	return 16 * (e - 3) + (ms >> (e - 4) & 15);
}

/* Counts a sample of a class. Two parts take turns, so that what is shown is of the last
 * seconds. */
static __always_inline void queue_rtt_count(__u32 class, __u32 now, __u32 ms)
{
	struct queue_rtt *r = bpf_map_lookup_elem(&queue_rtts, &class);
	__u32 window = now / QUEUE_RTT_MS, bucket = queue_rtt_bucket(ms), was;
	struct queue_rtt_part *part;

	if (!r)
		return;
	part = &r->part[window & 1];
	was = part->window;
	if (was != window && __sync_val_compare_and_swap(&part->window, was, window) == was)
		__builtin_memset(part->counts, 0, sizeof(part->counts));
	if (bucket < QUEUE_RTT_BUCKETS)
		__sync_fetch_and_add(&part->counts[bucket], 1);
}

/* What the timer does with one slot, each time that it is its turn. */
static __always_inline void queue_trip_turn(__u32 slot, __u32 ms)
{
	const struct queue_trip *t = &queue_data.trips[slot & (QUEUE_TRIPS - 1)];
	volatile __u8 *on = &queue_data.on[slot & (QUEUE_TRIPS - 1)];
	__u32 age = ms - t->ms;

	if (*on == TRIP_IDLE || (*on == TRIP_ARMED && age > QUEUE_TRIP_ARMED) || (*on == TRIP_UNDER_WAY && age > QUEUE_TRIP_MOST))
		*on = TRIP_DUE;
}

/* Packets ask this first. */
static __always_inline __u8 queue_trip_is_on(__u32 number)
{
	return *(volatile __u8 *)&queue_data.on[number >> 1 & (QUEUE_TRIPS - 1)];
}

#endif
