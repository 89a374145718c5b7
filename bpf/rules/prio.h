/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The priority that a packet has when rules ask for it with prio (pf.conf(5)): that of the
 * tag with which it came in, or what the box's own socket asks for. Where it leaves, what the
 * rules have set where it came in. It is looked up for each crossing, and only if a rule asks.
 */
#ifndef WEIR_RULES_PRIO_H
#define WEIR_RULES_PRIO_H

#include "path/qos.h"
#include "path/scratch.h"
#include "rules/crossing.h"
#include "state/bound.h"

#define PRIO_DEFAULT 3 /* of a packet that has none; as in pf */
#define PRIO_MAX     7

/* Returns the priority of a tag. In IEEE 802.1Q, 1 (background) is below 0 (best effort); as in
 * pf they change places. */
static __always_inline __u32 prio_of_tag(__u16 tci)
{
	__u32 n = tci >> 13;

	return n <= 1 ? !n : n;
}

/* Returns the priority that a packet had when it came to the box, or that the box's socket gave
 * it. */
static __always_inline __u32 prio_came(hook_ctx *ctx, const struct packet *p)
{
	__u32 n;
	__u16 tci;

	if (p->flags & PACKET_EGRESS) {
		n = hook_priority(ctx);
		return n && n <= PRIO_MAX ? n : PRIO_DEFAULT;
	}
	return hook_tag(ctx, p, &tci) ? prio_of_tag(tci) : PRIO_DEFAULT;
}

/* Returns the two priorities that rules have set where the packet came in: those that it has met
 * now, or those of the state that let it in. 0: none. */
static __always_inline __u32 prio_set_in(const struct scratch *s)
{
	const struct state *st;
	__u32 d;

	if (s->in.evaluated)
		return s->in.prio;
	if (!s->state)
		return 0;
	st = state_get(STATE_INDEX(s->state));
	d = STATE_DIRECTION(s->state);
	if (!st || !(st->qos & 1 << d) || !(st->flags & state_crossing(d, 1)) || !bound_fits(st, s->state, 1, s->packet.ifindex))
		return 0;
	return d ? st->flow_back.prio : st->flow_forth.prio;
}

/* Looks up the priority of the packet in the scratch, for one crossing. */
__noinline int prio_find(hook_ctx *ctx, struct crossing *cr)
{
	struct scratch *s = scratch_get();
	__u32 set = 0;

	if (!cr || !s)
		return 0;
	if (cr->direction == DIRECTION_OUT && !(s->packet.flags & PACKET_EGRESS))
		set = prio_set_in(s);
	if (set)
		set = (qos_is_urgent(ctx, &s->packet) ? set >> PRIO_ACK_SHIFT : set) & PRIO_MASK;
	cr->prio_now = set ? set - 1 : prio_came(ctx, &s->packet);
	return 0;
}

#endif
