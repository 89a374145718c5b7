/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The ways out: a redirect, a redirect with tags, or up to the stack. */
#ifndef WEIR_PATH_OUTPUT_H
#define WEIR_PATH_OUTPUT_H

#include "observe/count.h"
#include "packet/rewrite.h"
#include "path/handoff.h"
#include "path/scratch.h"
#include "route/nexthop.h"

/* Onto the wire. The frame is whole but for its MACs. */
static __always_inline int output_send(hook_ctx *ctx, struct headers *h, const struct packet *p,
		       const struct interface *i, const struct nexthop *n, enum reason why)
{
	if (hook_frame(ctx, h, n, i->flags & INTERFACE_L3, p->family))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(ctx, n->ifindex);
}

/* Makes room for what stands in front of the packet at its next hop, and writes it. */
static __always_inline int output_front(hook_ctx *ctx, const struct packet *p, const struct nexthop *n)
{
	if (hook_grow(ctx, sizeof(struct ethhdr) + n->encap.length - p->l3_offset))
		return -1;
	return encap_write(hook_data(ctx), hook_data_end(ctx), n, p->family, p->length);
}

/*
 * The end of the way of a packet of encap_needed(). number: of its state, 0: none.
 * Apart from output(), so that plain frames do not pay for it. Returns < 0, and nothing
 * is changed, if the driver has no room for the encapsulation.
 */
__noinline int output_encap(hook_ctx *ctx, const struct packet *p, __u32 number, const struct nexthop *n,
			    enum reason why)
{
	const struct interface *i;
	const struct state *s = 0;
	struct headers h;
	__u32 l3;

	if (!p || !n)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (number)
		s = state_get(STATE_INDEX(number));
	if (!i || (number && !s))
		return HOOK_DROP;
	l3 = sizeof(struct ethhdr) + n->encap.length;
	if (hook_grow(ctx, l3 - p->l3_offset))
		return -1;
	if (headers_at(&h, hook_data(ctx), hook_data_end(ctx), l3, p->l4_offset - p->l3_offset + l3))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (!s)
		rewrite_ttl(&h, p);
	else if (rewrite_packet(ctx, &h, p, s, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (encap_write(hook_data(ctx), hook_data_end(ctx), n, p->family, p->length))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(ctx, n->encap.device);
}

/* A packet of a live state cannot be redirected: up to the stack it goes. */
static __always_inline int output_up(hook_ctx *ctx, const struct packet *p,
			     const struct interface *i, const struct state *s, __u32 number,
			     enum reason why)
{
	if (why == REASON_UP_OPTIONS && !(s->flags & STATE_OPTIONS))
		return count_verdict(i, REASON_OPTIONS, p->length);
	if (why != REASON_UP_DEVICE || p->flags & PACKET_GROUP)
		return handoff_forward(ctx, p, i, s, number, why);
	return handoff_redirect(ctx, p, i, number);
}

/* A packet of a live state to a known next hop: the end of the hit path. */
static __always_inline int output(hook_ctx *ctx, struct headers *h, const struct packet *p,
			  const struct interface *i, const struct state *s, __u32 number,
			  const struct nexthop *n, enum reason why)
{
	enum reason r = nexthop_obstacle(ctx, p, n);
	int action;

	if (r == UNDECIDED && encap_needed(p, n) && !(p->flags & PACKET_GROUP)) {
		action = output_encap(ctx, p, number, n, why);
		if (action >= 0)
			return action;
		r = REASON_UP_DEVICE;
	}
	if (r != UNDECIDED || p->flags & PACKET_GROUP)
		return output_up(ctx, p, i, s, number, r);
	if (rewrite_packet(ctx, h, p, s, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	hook_set_mark(ctx, MARK_LEAVES);
	return output_send(ctx, h, p, i, n, why);
}

/* What a packet without a state leaves as, if nothing is to be remembered. */
__noinline int output_stateless(hook_ctx *ctx, struct scratch *s, enum reason why)
{
	const struct interface *i;
	const struct packet *p;
	struct headers h;
	struct nexthop *n;
	enum reason r;
	int action;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return HOOK_DROP;
	count_path(s->path, p->length);
	if (!s->nexthop)
		return handoff_forward(ctx, p, i, 0, 0, s->no_nexthop);
	n = nexthop_get(s->nexthop);
	r = nexthop_probe(n) ? REASON_UP_PROBE : nexthop_obstacle(ctx, p, n);
	if (r == UNDECIDED && encap_needed(p, n) && !(p->flags & PACKET_GROUP)) {
		action = output_encap(ctx, p, 0, n, why);
		if (action >= 0)
			return action;
		r = REASON_UP_DEVICE;
	}
	/* not by the stack, which takes an error that is translated to our address for a martian */
	if (r == REASON_UP_DEVICE && !(p->flags & PACKET_GROUP))
		return handoff_redirect(ctx, p, i, 0);
	if (r != UNDECIDED || p->flags & PACKET_GROUP)
		return handoff_forward(ctx, p, i, 0, 0, r);
	rewrite_ttl(&h, p);
	if (hook_frame(ctx, &h, n, i->flags & INTERFACE_L3, p->family))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(ctx, n->ifindex);
}

#endif
