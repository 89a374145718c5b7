/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sends a packet that passes without a state. */
#ifndef WEIR_PATH_STATELESS_H
#define WEIR_PATH_STATELESS_H

#include "path/fast.h"
#include "path/policy.h"
#include "route/nexthop.h"

/* Forwards a packet without a state; nothing is remembered. */
__noinline int stateless_forward(hook_ctx *ctx, struct scratch *s, enum reason why)
{
	const struct interface *i;
	struct packet *p;
	struct headers h;
	struct nexthop *n;
	enum reason r;
	int encap;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return HOOK_DROP;
	count_path(s->path, STATE_DIRECTION(s->state), p->length);
	if (!s->nexthop)
		return handoff_forward(ctx, p, i, 0, 0, s->no_nexthop);
	n = nexthop_get(s->nexthop);
	r = nexthop_probe(n) ? REASON_UP_PROBE : fast_obstacle(ctx, p, n);
	if (shared.policies)
		r = policy_obstacle(ctx, p, 0, n->ifindex, r);
	if (r != UNDECIDED && r != REASON_UP_POLICY && gateway_is_chosen(n) && !(p->flags & PACKET_GROUP))
		return gateway_stateless(ctx, s, p, s->nexthop, r);
	encap = r == UNDECIDED && encap_needed(p, n) && !(p->flags & PACKET_GROUP);
	if (encap && output_room(ctx, p, n)) {
		r = REASON_UP_DEVICE;
		if (gateway_is_chosen(n))
			return gateway_stateless(ctx, s, p, s->nexthop, r);
	}
	if (queues && r == UNDECIDED && queue_tree(n->ifindex, 0) && !(p->flags & PACKET_GROUP)) {
		r = queue_leaves(ctx, &h, p, 0, n->ifindex);
		if (r != UNDECIDED)
			return count_verdict(i, r, p->length);
	}
	if (encap && r == UNDECIDED)
		return output_encap(ctx, p, 0, n, why);
	/* not by the stack: an error translated to our address would be a martian to it */
	if (r == REASON_UP_DEVICE && !(p->flags & PACKET_GROUP) && !queue_waits(p))
		return handoff_redirect(ctx, p, i, 0, &s->out_mark);
	if (r != UNDECIDED || p->flags & PACKET_GROUP)
		return handoff_forward(ctx, p, i, 0, 0, r);
	if (handoff_onward(ctx, s, p, n))
		return count_verdict(i, REASON_MARK_TAKEN, p->length);
	rewrite_hop(&h, p);
	return fast_send(ctx, &h, p, i, n, why, PATH_COUNTED, 0);
}

#endif
