/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The programs behind the tail call, at ingress: one function for each slot.
 * XDP and TCX share them; the entry files give them their sections.
 */
#ifndef WEIR_PATH_INGRESS_H
#define WEIR_PATH_INGRESS_H

#include "path/miss.h"
#include "path/slow.h"
#include "packet/icmp_error.h"
#include "packet/fragment.h"
#include "path/fast.h"

/* Where the destination leads before any route is asked. */
static __always_inline enum reason miss_destination_class(const struct scratch *s)
{
	const struct packet *p = &s->packet;
	const struct addr *dst = &s->tuple.dst;

	if (addr_is_multicast(dst) || addr_is_limited_broadcast(dst))
		return REASON_UP_MULTICAST;
	if (p->family == 4 && addr_v4(dst) >> 28 == 0xf)
		return REASON_MARTIAN_DEST;
	if (p->flags & PACKET_GROUP || p->tuple.zone)
		return REASON_LOCAL;
	return UNDECIDED;
}

/* Sanity, implicit passes, rules in. UNDECIDED: the packet may enter. */
__noinline enum reason miss_rules_in(struct scratch *s)
{
	const struct interface *i;
	const struct packet *p;
	enum reason r, why = REASON_NO_RULE;

	if (!s)
		return REASON_INTERNAL;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return REASON_INTERFACE;
	evaluate_nothing(s);
	r = sanity_check(p, i);
	if (r != UNDECIDED)
		return r;
	if (implicit_passes(p, i, 1))
		return REASON_IMPLICIT;
	evaluate_start(&s->in, p, DIRECTION_IN, p->ifindex, 0);
	evaluate_start(&s->out, p, DIRECTION_OUT, 0, 0);
	s->skip_in = i->flags & INTERFACE_SKIP;
	s->skip_out = 0;
	r = evaluate_crossing(&s->in, p->flags & PACKET_OPTIONS, &why);
	s->why = why;
	return r;
}

/* Route and rules out. UNDECIDED: forwarded; a pass reason: goes to the box. */
__noinline enum reason miss_rules_out(hook_ctx *ctx, struct scratch *s)
{
	struct route_query q = {};
	const struct packet *p;
	const struct interface *o;
	enum reason r, why = REASON_NO_RULE;
	enum route route;

	if (!s)
		return REASON_INTERNAL;
	p = &s->packet;
	miss_destination(s);
	r = miss_destination_class(s);
	if (r != UNDECIDED)
		return r;
	q.src = p->tuple.src;
	q.dst = s->tuple.dst;
	q.sport = p->tuple.sport;
	q.dport = s->tuple.dport;
	q.ifindex = p->ifindex;
	q.proto = p->tuple.proto;
	q.family = p->family;
	s->generation = shared.route_generation;
	route = route_lookup(ctx, &q);
	if (route == ROUTE_LOCAL)
		return REASON_LOCAL;
	if (route == ROUTE_CLOSED)
		return REASON_INTERFACE;
	s->nexthop = q.number;
	s->no_nexthop = route == ROUTE_FULL ? REASON_UP_NEXTHOP : REASON_UP_NEIGHBOUR;
	s->out_ifindex = q.ifindex;
	evaluate_start(&s->out, p, DIRECTION_OUT, q.ifindex, s->in.tag);
	s->out.dst = s->tuple.dst;
	s->out.dport = s->tuple.dport;
	evaluate_share(&s->out, &s->in);
	o = interface_get(q.ifindex);
	s->skip_out = o && o->flags & INTERFACE_SKIP;
	r = evaluate_crossing(&s->out, p->flags & PACKET_OPTIONS, &why);
	if (r == UNDECIDED && why != REASON_SKIP)
		s->why = why;
	return r;
}

/* What passed the rules: with a state from now on, or alone. */
__noinline enum reason miss_state(hook_ctx *ctx, struct scratch *s, __u8 crossed)
{
	struct state *st;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	s->path = rule_path_index(s, crossed);
	if (s->state) { /* lives, but had not crossed here */
		st = state_get(STATE_INDEX(s->state));
		hint_withdraw(STATE_INDEX(s->state)); /* its rules may log from now on */
		if (st && s->in.flags & CROSSING_KEEP_STATE)
			create_widen(st, &s->in, state_crossing(STATE_DIRECTION(s->state), 1));
		s->state = 0;
	} else if (create_wanted(s)) {
		nat_source_follow(ctx, s);
		create_reply_tuple(s);
		r = create_state(s, create_flags(s, crossed, s->skip_in, s->skip_out),
				 s->packet.tuple.proto == IPPROTO_TCP ? tcp_option_wscale(ctx, s) : -1, 0);
		if (r != UNDECIDED)
			return r;
		create_count(s, crossed);
	}
	return s->packet.fragment == FRAGMENT_FIRST ? fragment_remember(s) : UNDECIDED;
}

/* A packet for the box that has no state. */
__noinline int miss_local(hook_ctx *ctx, struct scratch *s, enum reason why)
{
	const struct packet *p;
	const struct interface *i;
	struct headers h;
	struct state *st;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	s->out.flags = 0;
	s->nexthop = NEXTHOP_LOCAL;
	r = miss_state(ctx, s, STATE_IN);
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	count_path(s->path, p->length);
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (s->state) {
		st = state_get(STATE_INDEX(s->state));
		if (st)
			return handoff_local(ctx, &h, p, i, st, s->state, why);
	}
	return handoff_local(ctx, &h, p, i, 0, 0, why);
}

static __always_inline int miss_in(hook_ctx *ctx)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	if (s->evaluate)
		return slow_send(ctx, s, SLOW_RULES);
	r = miss_rules_in(s);
	if (r == REASON_IMPLICIT)
		hook_handoff(ctx, 0);
	if (r != UNDECIDED) {
		log_packet(ctx, s, r);
		return reject_or_drop(ctx, s, i, r, STATE_IN);
	}
	r = miss_rules_out(ctx, s);
	if (r != UNDECIDED && r <= REASON_LAST_PASS)
		return miss_local(ctx, s, r);
	if (r == UNDECIDED)
		r = miss_state(ctx, s, STATE_IN | STATE_OUT);
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return reject_or_drop(ctx, s, i, r, STATE_IN | STATE_OUT);
	return s->state ? slow_send(ctx, s, SLOW_NEW) : output_stateless(ctx, s, s->why);
}

/* A SYN in a state opens a new connection, is repeated, or answers; at egress
 * first fragments come here too. Returns UNDECIDED, why it is dropped, or REASON_LAST_PASS for "a miss". */
__noinline enum reason slow_track(hook_ctx *ctx, struct scratch *s)
{
	const struct packet *p;
	struct state *st;
	enum reason r;
	__u32 d;

	if (!s)
		return REASON_INTERNAL;
	p = &s->packet;
	d = STATE_DIRECTION(s->state);
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return REASON_INTERNAL;
	if (p->tuple.proto != IPPROTO_TCP) {
		track_other(st, d, p);
		track_count(st, d, p);
		return UNDECIDED;
	}
	if (track_opens(p) && track_is_over(st)) {
		state_kill(st, STATE_INDEX(s->state));
		s->state = 0;
		return REASON_LAST_PASS;
	}
	if (!(track_opens(p) && track_is_established(st))) {
		r = track_tcp(st, d, p, tcp_option_wscale(ctx, s));
		if (r != UNDECIDED)
			return r;
	}
	track_count(st, d, p);
	return UNDECIDED;
}

static __always_inline int slow_in(hook_ctx *ctx, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	enum reason r = UNDECIDED;
	struct state *st;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	if (!s->tracked)
		r = slow_track(ctx, s);
	if (r == UNDECIDED) {
		st = state_get(STATE_INDEX(s->state));
		s->evaluate = st && st->flags & (STATE_EVALUATE_IN | STATE_EVALUATE_OUT);
	}
	if (r == REASON_LAST_PASS || s->evaluate) {
		bpf_tail_call(ctx, tails, TAIL_MISS);
		r = REASON_INTERNAL;
	}
	return r == UNDECIDED ? slow_send(ctx, s, SLOW_STATE) : count_verdict(i, r, s->packet.length);
}

/* A later fragment of a packet that was passed without a state. */
__noinline int late_fragment_stateless(hook_ctx *ctx, struct scratch *s)
{
	const struct packet *p;
	const struct interface *i;
	struct route_query q = {};
	enum route route = ROUTE_LOCAL;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	s->tuple = p->tuple;
	q.src = p->tuple.src;
	q.dst = p->tuple.dst;
	q.ifindex = p->ifindex;
	q.proto = p->tuple.proto;
	q.family = p->family;
	if (miss_destination_class(s) == UNDECIDED)
		route = route_lookup(ctx, &q);
	if (route == ROUTE_CLOSED)
		return count_verdict(i, REASON_INTERFACE, p->length);
	if (route == ROUTE_LOCAL) {
		count_path(s->path, p->length);
		return handoff_pass(ctx, i, handoff_local_mark(p, &p->tuple.dst), REASON_LOCAL, p->length);
	}
	s->nexthop = q.number;
	s->no_nexthop = route == ROUTE_FULL ? REASON_UP_NEXTHOP : REASON_UP_NEIGHBOUR;
	return output_stateless(ctx, s, REASON_RULE);
}

static __always_inline int late_fragment_in(hook_ctx *ctx)
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
	r = fragment_follow(s);
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (!s->state)
		return late_fragment_stateless(ctx, s);
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	track_count(st, STATE_DIRECTION(s->state), &s->packet);
	return slow_send(ctx, s, SLOW_STATE);
}

/* Records of an ICMP error of a state as it stands, by the rules that log all. */
static __always_inline void icmp_error_log(hook_ctx *ctx, struct scratch *s, const struct state *st, __u8 direction,
				      __u32 ifindex)
{
	if (!(st->flags & STATE_LOG) || !record_wanted(RING_LOG))
		return;
	s->leaves = 0;
	log_side(ctx, s, state_crossing(STATE_DIRECTION(s->state), direction == DIRECTION_IN), direction, ifindex);
}

/* An error of a known connection, translated already, on its way. */
static __always_inline int icmp_error_send(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *i;
	const struct packet *p;
	struct state *st;
	struct headers h;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(s->state));
	if (!i || !st)
		return HOOK_DROP;
	s->path = st->path;
	r = slow_decide(ctx, s, SLOW_STATE);
	if (s->out_ifindex && !(p->flags & PACKET_GROUP))
		icmp_error_log(ctx, s, st, DIRECTION_OUT, s->out_ifindex);
	if (r == UNDECIDED)
		return output_stateless(ctx, s, REASON_STATE);
	if (r > REASON_LAST_PASS)
		return count_verdict(i, r, p->length);
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_path(s->path, p->length);
	if (r == REASON_LOCAL || r == REASON_UP_ROUTE)
		return handoff_local(ctx, &h, p, i, 0, 0, r);
	return handoff_forward(ctx, p, i, 0, 0, r);
}

static __always_inline int icmp_error_in(hook_ctx *ctx, void *tails)
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
	r = sanity_check(&s->packet, i);
	if (r == UNDECIDED)
		r = icmp_error_find(ctx, s, 1);
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (!s->state) {
		bpf_tail_call(ctx, tails, TAIL_MISS);
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	}
	st = state_get(STATE_INDEX(s->state));
	if (st && s->packet.flags & PACKET_OPTIONS && !(st->flags & STATE_OPTIONS))
		return count_verdict(i, REASON_OPTIONS, s->packet.length);
	if (st)
		icmp_error_log(ctx, s, st, DIRECTION_IN, s->packet.ifindex);
	if (!st || icmp_error_rewrite(ctx, s, st))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	return icmp_error_send(ctx, s);
}

#endif
