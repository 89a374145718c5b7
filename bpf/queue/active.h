/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The counters that the timer looks at: first those with backlog, then the others; and the new
 * ones that packets announce. */
#ifndef WEIR_QUEUE_ACTIVE_H
#define WEIR_QUEUE_ACTIVE_H

#include "queue/judge.h"

/* Whether the present part of the run has taken long enough, at its step n. */
static __always_inline int queue_is_over(const struct queue_clock *clock, __u32 n)
{
	return !(n & 15) && n && bpf_ktime_get_ns() > clock->stop;
}

/* Puts a counter at a place. */
static __always_inline void queue_put(__u32 place, __u32 index)
{
	__u32 *at = bpf_map_lookup_elem(&queue_active, &place);
	struct queue_counter *q = queue_counter_get(index);

	if (at)
		*at = index;
	if (q)
		q->place = place;
}

static __always_inline __u32 queue_at(__u32 place)
{
	const __u32 *at = bpf_map_lookup_elem(&queue_active, &place);

	return at ? *at : 0;
}

/* Makes a counter of the list one of the busy. */
static __always_inline void queue_rouse(struct queue_clock *clock, __u32 index, __u32 place)
{
	__u32 other = queue_at(clock->busy);

	queue_put(place, other);
	queue_put(clock->busy, index);
	clock->busy++;
}

/* Makes a busy counter one of the others. */
static __always_inline void queue_calm(struct queue_clock *clock, __u32 index, __u32 place)
{
	__u32 other = queue_at(--clock->busy);

	queue_put(place, other);
	queue_put(clock->busy, index);
}

/* Takes a counter that is not busy out of the list. */
static __always_inline void queue_leave(struct queue_clock *clock, __u32 place)
{
	queue_put(place, queue_at(--clock->active));
}

/* Reads what the visit after the next one needs, so that it does not wait for memory. */
static __always_inline void queue_touch(__u32 place, __u32 end)
{
	const struct queue_counter *q;

	if (place >= end)
		return;
	q = queue_counter_get(queue_at(place));
	if (q) {
		asm volatile("" ::"r"(*(const volatile __u64 *)&q->sent));
		asm volatile("" ::"r"(*(const volatile __u64 *)&q->seen));
	}
}

/* One step of the walk over the busy counters. */
static long queue_busy_step(__u32 n, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_counter *q;
	__u32 place, index;
	enum queue_found found;

	(void)data;
	if (!clock->busy || queue_is_over(clock, n))
		return 1;
	if (clock->cursor >= clock->busy)
		clock->cursor = 0;
	place = clock->cursor;
	queue_touch(place + 4, clock->busy);
	index = queue_at(place);
	q = queue_counter_get(index);
	if (!q)
		return 1;
	found = queue_visit(q, &queue_data.run);
	if (found == QUEUE_BUSY) {
		clock->cursor = place + 1;
		return 0;
	}
	queue_calm(clock, index, place); /* another one is at the place now */
	if (found == QUEUE_ENDED)
		queue_leave(clock, clock->busy);
	return 0;
}

/* One step of the walk over the others. */
static long queue_quiet_step(__u32 n, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_counter *q;
	__u32 place, index;
	enum queue_found found;

	(void)data;
	if (clock->busy >= clock->active || queue_is_over(clock, n))
		return 1;
	if (clock->quiet < clock->busy || clock->quiet >= clock->active)
		clock->quiet = clock->busy;
	place = clock->quiet;
	queue_touch(place + 4, clock->active);
	index = queue_at(place);
	q = queue_counter_get(index);
	if (!q)
		return 1;
	found = queue_visit(q, &queue_data.run);
	if (found == QUEUE_ENDED) {
		queue_leave(clock, place);
		return 0;
	}
	clock->quiet = place + 1;
	if (found == QUEUE_BUSY)
		queue_rouse(clock, index, place);
	return 0;
}

/* Takes one counter from the list of a core: a new one, or one that has lost packets while it
 * was not busy. The cursor is in shared memory: the verifier would walk every value of one on
 * the stack. */
static long queue_take_one(__u32 n, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	__u32 taken = clock->taken, next;
	struct queue_counter *q;

	(void)data;
	if (!taken || queue_is_over(clock, n))
		return 1;
	taken--;
	q = queue_counter_get(taken);
	if (!q) {
		clock->taken = 0;
		return 1;
	}
	/* Who takes the counter after its key was read finds next 0, and announces it again. */
	next = __sync_lock_test_and_set(&q->next, 0);
	clock->taken = next == QUEUE_END ? 0 : next;
	if (!*(volatile __u64 *)&q->key)
		return 0;
	if (!q->at)
		queue_put(clock->active++, taken);
	else if (q->place < clock->busy)
		return 0;
	queue_rouse(clock, taken, q->place);
	return 0;
}

/* Takes over the list of a core: in each run another one is the first. */
static long queue_take_step(__u32 n, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	__u32 cpu = (clock->tick + n) % queue_cpus;
	struct queue_head *h = &queue_data.heads[cpu & (QUEUE_CPUS - 1)];

	(void)data;
	if (!clock->taken) { /* else some are left of the last run */
		if (!h->first)
			return 0;
		clock->taken = __sync_lock_test_and_set(&h->first, 0);
	}
	bpf_loop(QUEUE_NEW, queue_take_one, 0, 0);
	return bpf_ktime_get_ns() > clock->stop;
}

#endif
