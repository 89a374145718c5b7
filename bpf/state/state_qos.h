/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The priorities and queues that a state keeps, for each direction. A packet has the
 * values of the crossing where it leaves. If the rules set none there, it has those of
 * the crossing where it came in. A side that keeps no state evaluates them for each
 * packet; nothing of them is kept.
 */
#ifndef WEIR_STATE_STATE_QOS_H
#define WEIR_STATE_STATE_QOS_H

#include "rules/crossing.h"
#include "state/state.h"

static __always_inline void state_qos_set(struct state *st, __u32 d, __u8 prio, __u16 queue)
{
	state_flow(st, d)->prio = prio;
	if (d)
		st->queue_back = queue;
	else
		st->queue_forth = queue;
	if (prio || queue)
		st->qos |= 1 << (d & 1);
}

/* Fills a new state; in and out are 0 for crossings without values to keep. */
static __always_inline void state_qos_fill(struct state *st, const struct crossing *in, const struct crossing *out)
{
	__u8 in_prio = in ? in->prio : 0, out_prio = out ? out->prio : 0;
	__u16 in_queue = in ? in->queue : 0, out_queue = out ? out->queue : 0;

	st->qos = 0;
	state_qos_set(st, 0, out_prio ? : in_prio, out_queue ? : in_queue);
	state_qos_set(st, 1, in_prio ? : out_prio, in_queue ? : out_queue);
}

/* A live state now also crosses at the side STATE_IN or STATE_OUT of direction 0.
 * Packets of one direction leave there, packets of the other come in. */
static __always_inline void state_qos_add_side(struct state *st, const struct crossing *cr, __u8 side)
{
	__u32 d = side == STATE_IN;

	if (!cr->prio && !cr->queue)
		return;
	state_qos_set(st, d, cr->prio ? : state_flow(st, d)->prio, cr->queue ? : state_queue(st, d));
	state_qos_set(st, !d, state_flow(st, !d)->prio ? : cr->prio, state_queue(st, !d) ? : cr->queue);
}

#endif
