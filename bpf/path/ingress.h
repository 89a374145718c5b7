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
static __always_inline enum reason destination_class(const struct scratch *s)
{
	const struct packet *p = &s->packet;
	const struct addr *dst = &s->tuple.dst;

	if (addr_is_multicast(dst) || is_limited_broadcast(dst))
		return REASON_UP_MULTICAST;
	if (p->family == 4 && addr_v4(dst) >> 28 == 0xf)
		return REASON_MARTIAN_DEST;
	if (p->flags & PACKET_GROUP || p->tuple.zone)
		return REASON_LOCAL;
	return UNDECIDED;
}

/* Sanity, implicit passes, rules in. UNDECIDED: the packet may enter. */
__noinline enum reason admit_in(struct scratch *s)
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
	judge_none(s);
	r = sanity(p, i);
	if (r != UNDECIDED)
		return r;
	if (is_implicit(p, i, 1))
		return REASON_IMPLICIT;
	judge_ask(&s->in, p, DIRECTION_IN, p->ifindex, 0);
	judge_ask(&s->out, p, DIRECTION_OUT, 0, 0);
	s->skip_in = i->flags & INTERFACE_SKIP;
	s->skip_out = 0;
	r = crossing(&s->in, p->flags & PACKET_OPTIONS, &why);
	s->why = why;
	return r;
}

/* Route and rules out. UNDECIDED: forwarded; a pass reason: goes to the box. */
__noinline enum reason admit_out(hook_ctx *ctx, struct scratch *s)
{
	struct route_query q = {};
	const struct packet *p;
	const struct interface *o;
	enum reason r, why = REASON_NO_RULE;
	enum route route;

	if (!s)
		return REASON_INTERNAL;
	p = &s->packet;
	redirect_destination(s);
	r = destination_class(s);
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
	judge_ask(&s->out, p, DIRECTION_OUT, q.ifindex, s->in.tag);
	s->out.dst = s->tuple.dst;
	s->out.dport = s->tuple.dport;
	judge_share(&s->out, &s->in);
	o = interface_get(q.ifindex);
	s->skip_out = o && o->flags & INTERFACE_SKIP;
	r = crossing(&s->out, p->flags & PACKET_OPTIONS, &why);
	if (r == UNDECIDED && why != REASON_SKIP)
		s->why = why;
	return r;
}

/* What passed the rules: with a state from now on, or alone. */
__noinline enum reason admit_state(hook_ctx *ctx, struct scratch *s, __u8 crossed)
{
	struct state *st;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	s->path = path_index(s, crossed);
	if (s->state) { /* lives, but had not crossed here */
		st = state_get(STATE_INDEX(s->state));
		promise_withdraw(STATE_INDEX(s->state)); /* its rules may log from now on */
		if (st && s->in.flags & JUDGE_KEEP_STATE)
			state_widen(st, &s->in, crossing_needed(STATE_DIRECTION(s->state), 1));
		s->state = 0;
	} else if (wants_state(s)) {
		source_follow(ctx, s);
		reply_tuple(s);
		r = state_create(s, state_flags(s, crossed, s->skip_in, s->skip_out),
				 s->packet.tuple.proto == IPPROTO_TCP ? tcp_wscale(ctx, s) : -1, 0);
		if (r != UNDECIDED)
			return r;
		count_made(s, crossed);
	}
	return s->packet.fragment == FRAGMENT_FIRST ? fragment_remember(s) : UNDECIDED;
}

/* A packet for the box that has no state. */
__noinline int admit_local(hook_ctx *ctx, struct scratch *s, enum reason why)
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
	r = admit_state(ctx, s, STATE_IN);
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return finish(i, r, p->length);
	count_path(s->path, p->length);
	if (packet_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return finish(i, REASON_INTERNAL, p->length);
	if (s->state) {
		st = state_get(STATE_INDEX(s->state));
		if (st)
			return hand_local(ctx, &h, p, i, st, s->state, why);
	}
	return hand_local(ctx, &h, p, i, 0, 0, why);
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
	if (s->carried)
		return carry(ctx, s, CARRY_JUDGE);
	r = admit_in(s);
	if (r == REASON_IMPLICIT)
		hook_hand_up(ctx, 0);
	if (r != UNDECIDED) {
		log_packet(ctx, s, r);
		return refuse(ctx, s, i, r, STATE_IN);
	}
	r = admit_out(ctx, s);
	if (r != UNDECIDED && r <= REASON_LAST_PASS)
		return admit_local(ctx, s, r);
	if (r == UNDECIDED)
		r = admit_state(ctx, s, STATE_IN | STATE_OUT);
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return refuse(ctx, s, i, r, STATE_IN | STATE_OUT);
	return s->state ? carry(ctx, s, CARRY_NEW) : forward_alone(ctx, s, s->why);
}

/* A SYN in a state opens a new connection, is repeated, or answers; at egress
 * first fragments come here too. Returns UNDECIDED, why it is dropped, or REASON_LAST_PASS for "a miss". */
__noinline enum reason turn_track(hook_ctx *ctx, struct scratch *s)
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
	if (tcp_opens(p) && tcp_over(st)) {
		state_kill(st, STATE_INDEX(s->state));
		s->state = 0;
		return REASON_LAST_PASS;
	}
	if (!(tcp_opens(p) && tcp_established(st))) {
		r = track_tcp(st, d, p, tcp_wscale(ctx, s));
		if (r != UNDECIDED)
			return r;
	}
	track_count(st, d, p);
	return UNDECIDED;
}

static __always_inline int turn_in(hook_ctx *ctx, void *slots)
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
		r = turn_track(ctx, s);
	if (r == UNDECIDED) {
		st = state_get(STATE_INDEX(s->state));
		s->carried = st && st->flags & (STATE_JUDGE_IN | STATE_JUDGE_OUT);
	}
	if (r == REASON_LAST_PASS || s->carried) {
		bpf_tail_call(ctx, slots, SLOT_MISS);
		r = REASON_INTERNAL;
	}
	return r == UNDECIDED ? carry(ctx, s, CARRY_STATE) : finish(i, r, s->packet.length);
}

/* A later fragment of a packet that was passed without a state. */
__noinline int fragment_alone(hook_ctx *ctx, struct scratch *s)
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
	if (destination_class(s) == UNDECIDED)
		route = route_lookup(ctx, &q);
	if (route == ROUTE_CLOSED)
		return finish(i, REASON_INTERFACE, p->length);
	if (route == ROUTE_LOCAL) {
		count_path(s->path, p->length);
		return pass_up(ctx, i, local_mark(p, &p->tuple.dst), REASON_LOCAL, p->length);
	}
	s->nexthop = q.number;
	s->no_nexthop = route == ROUTE_FULL ? REASON_UP_NEXTHOP : REASON_UP_NEIGHBOUR;
	return forward_alone(ctx, s, REASON_RULE);
}

static __always_inline int fragment_in(hook_ctx *ctx)
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
		return finish(i, r, s->packet.length);
	if (!s->state)
		return fragment_alone(ctx, s);
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return finish(i, REASON_INTERNAL, s->packet.length);
	track_count(st, STATE_DIRECTION(s->state), &s->packet);
	return carry(ctx, s, CARRY_STATE);
}

/* Records of an ICMP error of a state as it stands, by the rules that log all. */
static __always_inline void log_error(hook_ctx *ctx, struct scratch *s, const struct state *st, __u8 direction,
				      __u32 ifindex)
{
	if (!(st->flags & STATE_LOG) || !is_recording(RING_LOG))
		return;
	s->leaves = 0;
	log_side(ctx, s, crossing_needed(STATE_DIRECTION(s->state), direction == DIRECTION_IN), direction, ifindex);
}

/* An error of a known connection, translated already, on its way. */
static __always_inline int error_carry(hook_ctx *ctx, struct scratch *s)
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
	r = carry_decide(ctx, s, CARRY_STATE);
	if (s->out_ifindex && !(p->flags & PACKET_GROUP))
		log_error(ctx, s, st, DIRECTION_OUT, s->out_ifindex);
	if (r == UNDECIDED)
		return forward_alone(ctx, s, REASON_STATE);
	if (r > REASON_LAST_PASS)
		return finish(i, r, p->length);
	if (packet_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return finish(i, REASON_INTERNAL, p->length);
	count_path(s->path, p->length);
	if (r == REASON_LOCAL || r == REASON_UP_ROUTE)
		return hand_local(ctx, &h, p, i, 0, 0, r);
	return hand_up(ctx, p, i, 0, 0, r);
}

static __always_inline int error_in(hook_ctx *ctx, void *slots)
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
	r = sanity(&s->packet, i);
	if (r == UNDECIDED)
		r = error_find(ctx, s, 1);
	if (r != UNDECIDED)
		return finish(i, r, s->packet.length);
	if (!s->state) {
		bpf_tail_call(ctx, slots, SLOT_MISS);
		return finish(i, REASON_INTERNAL, s->packet.length);
	}
	st = state_get(STATE_INDEX(s->state));
	if (st && s->packet.flags & PACKET_OPTIONS && !(st->flags & STATE_OPTIONS))
		return finish(i, REASON_OPTIONS, s->packet.length);
	if (st)
		log_error(ctx, s, st, DIRECTION_IN, s->packet.ifindex);
	if (!st || error_rewrite(ctx, s, st))
		return finish(i, REASON_INTERNAL, s->packet.length);
	return error_carry(ctx, s);
}

#endif
