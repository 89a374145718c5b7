/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the timer does with the queues, every QUEUE_TICK_NS: it counts what each connection
 * has sent since the last run, drains the counters by what the last run has given them, and
 * gives the time that has passed to the classes. No packet does any of this, so only one core
 * at a time writes these fields.
 *
 * Three levels share by virtual amounts, as in generalised processor sharing (Parekh and
 * Gallager 1993): class.virtual grows by what each of its hosts with backlog gets, and
 * host.virtual by what each of its counters gets. A counter that is looked at later has
 * missed nothing. So one run looks at QUEUE_SLICE counters at most.
 *
 * A new connection may send more than its share for a while, so that TCP finds its rate. But
 * who has sent much more than its share in a window (queue_burst) gets a full queue, by
 * bytes that nobody sent (magic), and from then on its share alone (BC-PQP: Tahir et al.,
 * SIGCOMM 2024, doi 10.1145/3651890.3672267).
 */
#ifndef WEIR_QUEUE_DRAIN_H
#define WEIR_QUEUE_DRAIN_H

#include "queue/active.h"
#include "queue/shares.h"
#include "queue/trip.h"

static long queue_trip_step(__u32 n, void *data)
{
	(void)data;
	queue_trip_turn(queue_data.clock.tick * QUEUE_TRIP_TURN + n, queue_data.clock.ms);
	return 0;
}

/* Serves all queues up to a time, in nanoseconds of the monotonic clock. */
static __always_inline void queue_drain(__u64 now)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_run *r = &queue_data.run;
	__u64 passed;

	if (__sync_lock_test_and_set(&clock->lock, 1))
		return; /* during a load two timers run */
	clock->stop = bpf_ktime_get_ns() + QUEUE_WALK_NS;
	passed = now - clock->last;
	if (!clock->last || passed > QUEUE_MOST_NS) {
		if (clock->last)
			clock->lost += passed - QUEUE_MOST_NS;
		passed = clock->last ? QUEUE_MOST_NS : QUEUE_TICK_NS;
		clock->last = now - passed;
	}
	if (passed > QUEUE_TICK_NS + QUEUE_LATE_NS)
		clock->late++;
	r->us = passed / 1000;
	if (r->us) {
		*(volatile __u64 *)&clock->last += r->us * 1000;
		r->ms = clock->ms = clock->last / 1000000;
		r->tick = ++clock->tick;
		bpf_loop(queue_cpus, queue_take_step, 0, 0);
		bpf_loop(clock->busy, queue_busy_step, 0, 0);
		bpf_loop(queue_least(clock->active - clock->busy, QUEUE_SLICE), queue_quiet_step, 0, 0);
		bpf_loop(QUEUE_SHAPERS - 1, queue_tree_step, 0, 0);
		bpf_loop(QUEUE_TRIP_TURN, queue_trip_step, 0, 0);
	}
	__sync_lock_test_and_set(&clock->lock, 0);
}

#endif
