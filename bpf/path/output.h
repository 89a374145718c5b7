/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The ways out: a redirect, a redirect with a tag, or up to the stack. */
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
	return hook_redirect(n->ifindex);
}

/*
 * Towards a VLAN device, which XDP cannot reach: its parent can be, by a frame
 * with the tag in it. number: of the packet's state, 0: none. Apart from output(),
 * so that frames without a tag do not pay for it. Returns < 0, and nothing is
 * changed, if the frame has no room for a tag.
 */
__noinline int output_tagged(hook_ctx *ctx, const struct packet *p, __u32 number,
			      const struct nexthop *n, enum reason why)
{
	const struct interface *i;
	const struct tuple *other;
	const struct state *s = 0;
	struct headers h;

	if (!p || !n)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (number)
		s = state_get(STATE_INDEX(number));
	if (!i || (number && !s))
		return HOOK_DROP;
	if (hook_tag_room(ctx))
		return -1;
	/* the tag's room is in front of what has been parsed */
	if (headers_reload(&h, p, hook_data(ctx) + TAG_LENGTH, hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (s && s->flags & STATE_NAT) {
		other = STATE_DIRECTION(number) ? &s->forth.tuple : &s->back.tuple;
		if (rewrite_translate_to(ctx, &h, p, &other->dst, &other->src, other->dport, other->sport))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	rewrite_ttl(&h, p);
	if (hook_frame_tagged(ctx, n))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(n->parent);
}

/* Whether output_tagged() takes a packet that this hook cannot redirect. */
static __always_inline int output_wants_tag(const struct packet *p, const struct nexthop *n, enum reason obstacle)
{
	return HOOK_IS_XDP && obstacle == REASON_UP_DEVICE && n->flags & NEXTHOP_TAGGED &&
	       !(p->flags & PACKET_GROUP);
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
	return handoff_pass(ctx, i, MARK_MAGIC | MARK_REDIRECT | STATE_INDEX(number) |
				       (STATE_DIRECTION(number) ? MARK_REPLY : 0), why, p->length);
}

/* A packet of a live state to a known next hop: the end of the hit path. */
static __always_inline int output(hook_ctx *ctx, struct headers *h, const struct packet *p,
			  const struct interface *i, const struct state *s, __u32 number,
			  const struct nexthop *n, enum reason why)
{
	enum reason r = nexthop_obstacle(ctx, p, n);
	int action;

	if (output_wants_tag(p, n, r)) {
		action = output_tagged(ctx, p, number, n, why);
		if (action >= 0)
			return action;
		if (headers_reload(h, p, hook_data(ctx), hook_data_end(ctx)))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	if (r != UNDECIDED || p->flags & PACKET_GROUP)
		return output_up(ctx, p, i, s, number, r);
	if (rewrite_packet(ctx, h, p, s, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
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
	if (output_wants_tag(p, n, r)) {
		action = output_tagged(ctx, p, 0, n, why);
		if (action >= 0)
			return action;
		if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	/* not by the stack, which takes an error that is translated to our address for a martian */
	if (r == REASON_UP_DEVICE && !(p->flags & PACKET_GROUP))
		return handoff_pass(ctx, i, MARK_MAGIC | MARK_REDIRECT, r, p->length);
	if (r != UNDECIDED || p->flags & PACKET_GROUP)
		return handoff_forward(ctx, p, i, 0, 0, r);
	rewrite_ttl(&h, p);
	if (hook_frame(ctx, &h, n, i->flags & INTERFACE_L3, p->family))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(n->ifindex);
}

#endif
