/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Late fragments: they follow their first fragment. */
#ifndef WEIR_PATH_LATE_FRAGMENT_H
#define WEIR_PATH_LATE_FRAGMENT_H

#include "packet/fragment.h"
#include "path/early_fragment.h"
#include "path/slow.h"
#include "route/route.h"

/* Passes up a later fragment for the box of a packet without a state. A function of its own, to save
 * stack. */
__noinline int late_fragment_local(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *i;
	const struct packet *p;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	if (p->scrub && scrub_up(ctx, p))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_path(s->path, 0, p->length);
	return handoff_pass(ctx, p, i, mark_set(p->mark, handoff_local_mark(p, &p->tuple.dst)), REASON_LOCAL);
}

/* Sends a later fragment of a packet that was passed without a state. */
__noinline int late_fragment_stateless(hook_ctx *ctx, struct scratch *s)
{
	const struct packet *p;
	const struct interface *i;
	struct route_query q = {};
	struct course c = {};
	enum route route = ROUTE_LOCAL;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	scrub_set(&s->packet, p->scrub);
	s->chosen = s->nexthop != 0;
	r = queue_in(ctx, p, 0);
	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	if (s->nexthop) { /* a rule has chosen it */
		c.nexthop = s->nexthop;
		route = gateway_refresh(ctx, p, &c);
		q.number = c.nexthop;
	} else {
		route_query_fill(&q, p, &p->tuple.dst, 0);
		if (route_class(p, &p->tuple.dst) == UNDECIDED)
			route = route_lookup(ctx, &q);
	}
	if (route == ROUTE_LOST)
		return count_verdict(i, REASON_GATEWAY, p->length);
	if (route == ROUTE_CLOSED)
		return count_verdict(i, REASON_INTERFACE, p->length);
	if (route == ROUTE_LOCAL)
		return late_fragment_local(ctx, s);
	s->nexthop = q.number;
	s->no_nexthop = route_reason(route);
	return stateless_forward(ctx, s, REASON_RULE);
}

static __always_inline int late_fragment_in(hook_ctx *ctx, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	struct state *st;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	s->alone = 0;
	if (HOOK_IS_XDP && copies) /* its state may have copies sent */
		return count_verdict(i, REASON_UP_COPY, s->packet.length);
	r = fragment_follow(s);
	if (r == REASON_FRAGMENT_HELD && !early_fragment_hold(ctx, s))
		r = REASON_FRAGMENT_ORPHAN;
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (!s->state)
		return late_fragment_stateless(ctx, s);
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	track_count(st, STATE_DIRECTION(s->state), &s->packet);
	r = queue_in(ctx, &s->packet, s->state);
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (state_changes_family(st)) {
		bpf_tail_call(ctx, tails, TAIL_FAMILY);
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	}
	return slow_send(ctx, s, SLOW_STATE);
}

#endif
