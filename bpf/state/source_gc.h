/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sources without states end when their time is over. */
#ifndef WEIR_STATE_SOURCE_GC_H
#define WEIR_STATE_SOURCE_GC_H

#include "state/limit.h"

/* Whether a source without states may go. One that is over waits for the daemon. */
static __always_inline int source_gc_is_due(const struct source *s)
{
	__s32 past = shared.now - s->expires;

	return past >= (s->over == SOURCE_OVER_NEW || limiter_unlists(s) ? SOURCE_OVER : 0);
}

/* Takes a source without states out of the map. Only one timer does, and no packet joins
 * the source from then on. */
static __always_inline void source_gc_remove(struct source *s)
{
	struct source_key key = s->key;
	struct limit *l;

	if (__sync_val_compare_and_swap(&s->states, 0, SOURCE_GONE))
		return;
	bpf_map_delete_elem(&source_index, &key);
	if (key.limit & SOURCE_OF_LIMITER) {
		limiter_forget(key.limit & 0xff);
	} else {
		l = limit_get(key.limit & LIMITS_MASK);
		if (l)
			__sync_fetch_and_add(&l->nodes, -1);
	}
	s->expires = shared.now + DEAD_GRACE;
	__sync_lock_test_and_set(&s->stage, SOURCE_GOING);
}

/* The cursor is in shared memory, like that of the states (state/gc.h). During a reload two
 * timers look at the sources. */
static long source_gc_step(__u32 n, void *data)
{
	__u32 index = shared.gc_source >= source_capacity ? 1 : shared.gc_source + 1;
	struct source *s;

	(void)n;
	(void)data;
	shared.gc_source = index;
	s = source_get(index);
	if (!s)
		return 1;
	if (s->stage == SOURCE_LIVE) {
		if (!s->states && source_gc_is_due(s))
			source_gc_remove(s);
	} else if (s->stage == SOURCE_GOING && (__s32)(shared.now - s->expires) >= 0 &&
		   __sync_val_compare_and_swap(&s->stage, SOURCE_GOING, SOURCE_FREE) == SOURCE_GOING) {
		__sync_fetch_and_add(source_count(&s->key), -1);
	}
	return 0;
}

static __always_inline void source_gc_run(void)
{
	if (shared.sources | shared.limiter_sources)
		bpf_loop(source_capacity < SOURCE_SLICE ? source_capacity : SOURCE_SLICE, source_gc_step, 0, 0);
}

#endif
