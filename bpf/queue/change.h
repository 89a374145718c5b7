/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Other rates for a class, under traffic. The loader asks for one class at a time. The timer
 * does not run meanwhile, and serves the time that has passed in its next run. When the timer
 * looks at a counter again it fits the backlog to the new depth (queue_refit).
 */
#ifndef WEIR_QUEUE_CHANGE_H
#define WEIR_QUEUE_CHANGE_H

#include <linux/errno.h>

#include "queue/queue.h"

/* What a class becomes. */
struct queue_change {
	__u32 class;
	__u32 weight;
	__u64 depth;
	__u64 ceiling;
	struct queue_rate min;
	struct queue_rate max;
};

/* Returns the ratio of two numbers in 1/65536: at least 1, and less than 2^32. */
static __always_inline __u64 queue_ratio(__u64 now, __u64 before)
{
	__u64 ratio = (now << 16) / (before ? : 1);

	return ratio < 1 ? 1 : ratio >> 32 ? ~0u : ratio;
}

/* Changes a class. -EBUSY: the timer is at work; try again. */
static __always_inline int queue_change_class(const struct queue_change *to)
{
	struct queue_class *c = queue_class_get(to->class);

	if (!c || !to->class)
		return -ENOENT;
	if (__sync_lock_test_and_set(&queue_data.clock.lock, 1))
		return -EBUSY;
	if (to->depth != c->depth || to->ceiling != c->ceiling) {
		c->level = (c->level >> 8) * queue_ratio(to->ceiling, c->ceiling) >> 8;
		c->refit = queue_ratio(to->depth, c->depth);
		c->changes++;
	}
	c->weight = to->weight;
	c->depth = to->depth;
	c->ceiling = to->ceiling;
	c->min = to->min;
	c->max = to->max;
	__sync_lock_test_and_set(&queue_data.clock.lock, 0);
	return 0;
}

#endif
