/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Touching the memory of a state before it is needed, so that loads overlap. */
#ifndef WEIR_STATE_TOUCH_H
#define WEIR_STATE_TOUCH_H

#include "state/lookup.h"

static __always_inline void touch_lines(const struct state *st)
{
	touch(st->flow_forth);
	touch(st->back);
	touch(st->flow_back);
}

static __always_inline void touch_bucket(__u64 hash)
{
	const struct bucket *b = bucket_get(hash);

	if (b)
		touch(b->lock);
}

/*
 * Touches what a state for the tuple will most likely be written into: its home, and the
 * bucket of the reply. Called right after the look-up has found nothing. The loads then
 * overlap with those of the look-up, and cost little, even if the packet is dropped.
 */
static __always_inline void touch_home(__u64 hash, const struct tuple *reply)
{
	const struct state *st = state_get(state_home(hash));

	touch_bucket(tuple_hash(reply));
	if (st)
		touch_lines(st);
}

#endif
