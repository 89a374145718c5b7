/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The marks that a state keeps: the bits that the rules of the in crossing have set, and
 * those of the out crossing. The first steer: packets of direction 0 are routed by them,
 * replies are not.
 */
#ifndef WEIR_STATE_RULE_MARK_H
#define WEIR_STATE_RULE_MARK_H

#include "rules/crossing.h"
#include "state/state.h"

/* Returns a mark with all bits that rules have set for the connection. */
static __always_inline __u32 rule_mark_all(const struct state *st, __u32 mark)
{
	__u32 mask;

	if (!(st->flags & STATE_MARK))
		return mark;
	mask = st->flow_forth.mark_mask | st->flow_back.mark_mask;
	return (mark & ~mask) | (st->flow_forth.mark & mask);
}

/* Returns a mark with the bits that packets of direction d are routed by. */
static __always_inline __u32 rule_mark_route(const struct state *st, __u32 d, __u32 mark)
{
	__u32 mask;

	if (d || !(st->flags & STATE_MARK))
		return mark;
	mask = st->flow_forth.mark_mask;
	return (mark & ~mask) | (st->flow_forth.mark & mask);
}

/* Keeps what the rules of both crossings have set. */
static __always_inline void rule_mark_fill(struct state *st, const struct crossing *in, const struct crossing *out)
{
	st->flow_forth.mark_mask = in->mark_mask;
	st->flow_back.mark_mask = out->mark_mask;
	st->flow_forth.mark = (in->mark & in->mark_mask) | (out->mark & out->mark_mask);
	if (in->mark_mask | out->mark_mask)
		st->flags |= STATE_MARK;
}

#endif
