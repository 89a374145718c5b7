/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the box itself sends to a next hop that a rule has chosen: replies of its services to
 * what came in under reply-to, and packets of rules with route-to. The stack has taken a
 * route of its own, which does not matter. TCX egress only.
 */
#ifndef WEIR_PATH_GATEWAY_OUT_H
#define WEIR_PATH_GATEWAY_OUT_H

#include "path/fast.h"
#include "path/gateway.h"

/* Returns why a packet of the box cannot go to the next hop that a rule has chosen;
 * UNDECIDED: it can. */
static __always_inline enum reason egress_fault(hook_ctx *ctx, const struct packet *p, const struct nexthop *n)
{
	return n->mtu && fast_wire_length(ctx, p) > n->mtu ? REASON_GATEWAY_MTU : UNDECIDED;
}

/* Sends a finished packet of the box to a next hop that a rule has chosen, wherever the
 * stack has sent it: the last step. */
__noinline int egress_choose(hook_ctx *ctx, const struct packet *p, __u32 number, enum reason why)
{
	const struct nexthop *n = nexthop_get(number);
	const struct interface *i;
	struct headers h;
	int action;

	if (!p)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	if ((n->flags & (NEXTHOP_VALID | NEXTHOP_L3)) != NEXTHOP_VALID || i->flags & INTERFACE_L3) {
		action = gateway_send(ctx, p, number);
	} else {
		if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) || hook_frame(ctx, &h, n, 0, p->family))
			return count_verdict(i, REASON_INTERNAL, p->length);
		if (n->ifindex == p->ifindex)
			return count_verdict(i, why, p->length);
		action = hook_redirect(ctx, n->ifindex);
	}
	if (action < 0)
		return count_verdict(i, REASON_GATEWAY, p->length);
	count_reason(i, why, p->length);
	return action;
}

/* Prepares a packet of the box in a state whose next hop a rule has chosen. UNDECIDED: the
 * state's number is fresh. */
__noinline enum reason egress_ready(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	struct state *st = state_get(STATE_INDEX(number));
	const struct nexthop *n;
	struct course *c;
	enum route r;

	if (!st || !p)
		return REASON_INTERNAL;
	c = state_course(st, STATE_DIRECTION(number));
	if (c->nexthop < NEXTHOP_FIRST || nexthop_is_stale(nexthop_get(c->nexthop), c->nexthop_generation)) {
		r = gateway_refresh(ctx, p, c);
		if (r != ROUTE_FORWARD)
			return r == ROUTE_CLOSED ? REASON_INTERFACE : REASON_GATEWAY;
	}
	n = nexthop_get(c->nexthop);
	if (n->used != shared.now) /* all cores read this line */
		((struct nexthop *)n)->used = shared.now;
	return egress_fault(ctx, p, n);
}

/* Ends a packet of the box that cannot go to its next hop. */
static __always_inline int egress_refuse(hook_ctx *ctx, const struct packet *p, const struct interface *i, __u32 nexthop,
					 enum reason r)
{
	if (!reason_is_gateway(r))
		return count_verdict(i, r, p->length);
	return gateway_refuse(ctx, p, nexthop_get(nexthop)->mtu, r);
}

#endif
