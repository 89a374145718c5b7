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
 * missed nothing. So a run ends each of its parts in time: it takes over new counters, looks at counters, and gives time
 * to trees (queue/shares.h). The next one goes on where it stopped.
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

/* Returns the nanoseconds that a run at a time serves. Of two timers, one may have read its clock before the other has served
 * a later time: it brings nothing. */
static __always_inline __u64 queue_passed(struct queue_clock *clock, __u64 now)
{
	__u64 passed = now - clock->last;

	if (!clock->last) {
		clock->last = now - QUEUE_TICK_NS;
		return QUEUE_TICK_NS;
	}
	if ((__s64)passed < 0) {
		if (clock->last - now > QUEUE_MOST_NS)
			clock->last = now; /* else it would wait for long */
		return 0;
	}
	if (passed > QUEUE_TICK_NS + QUEUE_LATE_NS)
		clock->late++;
	if (passed <= QUEUE_MOST_NS)
		return passed;
	clock->lost += passed - QUEUE_MOST_NS;
	clock->last = now - QUEUE_MOST_NS;
	return QUEUE_MOST_NS;
}

/* Serves all queues up to a time, in nanoseconds of the monotonic clock. */
static __always_inline void queue_drain(__u64 now)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_run *r = &queue_data.run;
	__u64 began = bpf_ktime_get_ns();

	if (__sync_lock_test_and_set(&clock->lock, 1))
		return; /* during a load two timers run */
	r->us = queue_passed(clock, now) / 1000;
	if (r->us) {
		*(volatile __u64 *)&clock->last += r->us * 1000;
		r->ms = clock->ms = clock->last / 1000000;
		r->total += r->us;
		r->tick = ++clock->tick;
		clock->stop = began + QUEUE_TAKE_NS;
		bpf_loop(queue_cpus, queue_take_step, 0, 0);
		clock->stop = began + QUEUE_WALK_NS;
		bpf_loop(clock->busy, queue_busy_step, 0, 0);
		bpf_loop(queue_least(clock->active - clock->busy, QUEUE_SLICE), queue_quiet_step, 0, 0);
		clock->stop = bpf_ktime_get_ns() + QUEUE_TREES_NS;
		r->start = 0;
		bpf_loop(QUEUE_TREE_STEPS, queue_tree_step, 0, 0);
		bpf_loop(QUEUE_TRIP_TURN, queue_trip_step, 0, 0);
	}
	__sync_lock_test_and_set(&clock->lock, 0);
}

/* A run of the timer. now: as for queue_drain(); 0: the present. Returns the nanoseconds that it has taken. */
static __always_inline __u64 queue_turn(__u64 now)
{
	struct queue_clock *clock = &queue_data.clock;
	__u64 began = bpf_ktime_get_ns(), took;

	queue_drain(now ? : began);
	took = bpf_ktime_get_ns() - began;
	clock->spent += took;
	if (took > clock->longest)
		clock->longest = took;
	return took;
}

#endif
