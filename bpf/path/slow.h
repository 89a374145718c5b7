/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A packet of a live state that the fast path did not finish. Its next hop must be
 * looked up, or a side that keeps no state must evaluate its rules. Ingress only.
 */
#ifndef WEIR_PATH_SLOW_H
#define WEIR_PATH_SLOW_H

#include "observe/log.h"
#include "packet/fragment.h"
#include "packet/tcp_option.h"
#include "path/divert_packet.h"
#include "path/normal_packet.h"
#include "path/fast.h"
#include "path/stateless.h"
#include "path/reject.h"
#include "route/route.h"
#include "rules/evaluate.h"

/* Looks up again what a rule has chosen for this direction. */
static __always_inline enum route slow_choose(hook_ctx *ctx, struct scratch *s, struct course *c)
{
	enum route r = gateway_refresh(ctx, &s->packet, c);

	s->nexthop = c->nexthop;
	s->out_ifindex = r == ROUTE_LOST ? 0 : nexthop_get(c->nexthop)->ifindex;
	return r;
}

/*
 * Looks up the kernel's route for this direction, and keeps the result in the state.
 */
static __always_inline enum route slow_route(hook_ctx *ctx, struct scratch *s, struct state *st)
{
	struct route_query q;
	__u16 generation;
	enum route r;
	struct course *c;
	__u32 d;

	if (!s || !st)
		return ROUTE_LOCAL;
	generation = shared.route_generation; /* read before the look-up: routes may change meanwhile */
	d = STATE_DIRECTION(s->state);
	c = state_course(st, d);
	if (st->entered & KEPT_ROUTE(d))
		return slow_choose(ctx, s, c);
	state_leaving_tuple(&s->tuple, st, d);
	route_query_fill(&q, &s->packet, &s->tuple.dst, s->tuple.dport);
	q.mark = rule_mark_route(st, d, s->packet.mark);
	r = route_lookup(ctx, &q);
	s->nexthop = r == ROUTE_FORWARD ? q.number : 0;
	s->out_ifindex = r == ROUTE_LOCAL ? 0 : q.ifindex;
	s->elsewhere = r != ROUTE_LOCAL && r != ROUTE_CLOSED && !bound_fits(st, s->state, 0, q.ifindex);
	if (s->packet.mark)
		return r; /* found by a mark of this packet, which the next may not have */
	/* A packet that finds a changed route tells the others if there is no daemon. */
	if (c->nexthop >= NEXTHOP_FIRST && c->nexthop != s->nexthop &&
	    c->nexthop_generation == (__u16)shared.route_generation && daemon_is_dead())
		__sync_fetch_and_add(&shared.route_generation, 1);
	c->nexthop = s->elsewhere ? NEXTHOP_NONE : s->nexthop; /* the rules decide, for each packet */
	c->nexthop_generation = generation;
	return r;
}

/* Whether the rules may be needed before the packet leaves: where it leaves its state is
 * bound, and the route must be looked up. */
static __always_inline int slow_is_loose(const struct scratch *s, const struct state *st)
{
	__u32 d = STATE_DIRECTION(s->state);
	const struct course *c = d ? &st->back : &st->forth;

	if (!bound_is_side(st, bound_side(d, 0)) || c->nexthop == NEXTHOP_LOCAL || st->entered & KEPT_ROUTE(d))
		return 0;
	return c->nexthop == NEXTHOP_NONE || s->packet.mark || nexthop_is_stale(nexthop_get(c->nexthop), c->nexthop_generation);
}

/*
 * The rules have passed a packet that leaves where its state is not bound to. UNDECIDED:
 * it leaves by its state, which is bound to that interface, too, if they keep state.
 * REASON_LAST_PASS: the translations there and in the state differ, so the packet is one
 * without a state. Else the reason to drop: a reply has only one translation.
 */
static __always_inline enum reason slow_moves(struct scratch *s, struct state *st)
{
	__u32 d = STATE_DIRECTION(s->state);
	const struct tuple *other = d ? &st->forth.tuple : &st->back.tuple;
	const struct tuple *t = &s->packet.tuple;

	if (addr_equal(&other->dst, &t->src) && other->dport == t->sport &&
	    !(s->out.flags & (CROSSING_NAT | CROSSING_RDR))) {
		if (s->out.flags & CROSSING_KEEP_STATE)
			bound_add(st, STATE_INDEX(s->state), bound_side(d, 0), s->out.ifindex);
		return UNDECIDED;
	}
	if (d)
		return REASON_STATE_MISMATCH;
	s->replaces = s->state;
	return REASON_LAST_PASS;
}

/* Evaluates the rules of the sides that keep no state. UNDECIDED: the packet passes. */
__noinline enum reason slow_rules(hook_ctx *ctx, struct scratch *s)
{
	const struct rule_set *set = rule_set_get();
	enum reason r, why;
	__u8 in, out, crossed;
	struct state *st;
	__u32 d, options;

	if (!s || !set)
		return REASON_INTERNAL;
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return REASON_INTERNAL;
	d = STATE_DIRECTION(s->state);
	in = d ? STATE_EVALUATE_OUT : STATE_EVALUATE_IN;
	out = d ? STATE_EVALUATE_IN : STATE_EVALUATE_OUT;
	options = s->packet.flags & PACKET_OPTIONS;
	crossed = s->in.evaluated ? STATE_IN : 0; /* a bound state's packet that came elsewhere */
	if (st->flags & in) {
		evaluate_start(&s->in, &s->packet, DIRECTION_IN, s->packet.ifindex, evaluate_tag(s));
		r = evaluate_crossing(ctx, &s->in, set, options, &why);
		if (r != UNDECIDED) {
			reject_note(s, r, STATE_IN);
			return r;
		}
		crossed = STATE_IN;
	}
	if ((st->flags & out || s->elsewhere) && s->out_ifindex) {
		evaluate_start(&s->out, &s->packet, DIRECTION_OUT, s->out_ifindex, crossed ? s->in.tag : st->tag);
		state_leaving_tuple(&s->tuple, st, d);
		if (!s->elsewhere) /* there its source is not translated yet */
			s->out.src = s->tuple.src;
		s->out.dst = s->tuple.dst;
		s->out.dport = s->tuple.dport;
		s->out.received = s->packet.ifindex;
		s->out.mark = rule_mark_route(st, d, s->packet.mark);
		s->out.tos = scrub_tos_seen(&s->packet, scrub_join(scrub_by_in(s), state_scrub(st, s->state)));
		s->out.mark_keep = d ? 0 : st->flow_forth.mark_mask;
		if (d && !s->elsewhere)
			s->out.sport = s->tuple.sport;
		r = evaluate_crossing(ctx, &s->out, set, options, &why);
		if (r != UNDECIDED)
			reject_note(s, r, crossed | STATE_OUT);
		else if (s->elsewhere)
			r = slow_moves(s, st);
		return r;
	}
	return UNDECIDED;
}

/* Whether the kernel looks up no route for a packet's source. Translation can give an ICMP error such a one: the group that
 * its connection was for, before rdr sent that to its sender. */
static __always_inline int slow_is_unroutable(const struct packet *p)
{
	return p->family == 6 && (addr_is_multicast(&p->tuple.src) || addr_is_low6(&p->tuple.src, 1));
}

/*
 * Finds where the packet of s->state goes next. UNDECIDED: to the next hop in
 * s->nexthop. Else the reason under which it goes up or is dropped.
 */
__noinline enum reason slow_next(hook_ctx *ctx, struct scratch *s)
{
	struct state *st;
	enum route route;
	struct course *c;

	if (!s)
		return REASON_INTERNAL;
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return REASON_INTERNAL;
	c = state_course(st, STATE_DIRECTION(s->state));
	s->out_ifindex = 0;
	s->elsewhere = 0;
	s->nexthop = c->nexthop;
	if (c->nexthop == NEXTHOP_LOCAL)
		return REASON_LOCAL;
	if (c->nexthop != NEXTHOP_NONE && (!s->packet.mark || st->entered & KEPT_ROUTE(STATE_DIRECTION(s->state))) &&
	    !slow_is_unroutable(&s->packet) && !nexthop_is_stale(nexthop_get(c->nexthop), c->nexthop_generation)) {
		s->out_ifindex = nexthop_get(c->nexthop)->ifindex;
		return UNDECIDED;
	}
	route = slow_route(ctx, s, st);
	if (route == ROUTE_FORWARD)
		return UNDECIDED;
	if (route == ROUTE_CLOSED)
		return REASON_INTERFACE;
	if (route == ROUTE_LOST)
		return REASON_GATEWAY;
	return route == ROUTE_LOCAL ? REASON_UP_ROUTE : route_reason(route);
}

/* UNDECIDED: the next hop that slow_next() has found takes the packet. Else the reason
 * under which it goes up. */
static __always_inline enum reason slow_probe(const struct scratch *s)
{
	struct nexthop *n = nexthop_get(s->nexthop);

	if (n->used != shared.now) /* all cores read this line */
		n->used = shared.now;
	return nexthop_probe(n) ? REASON_UP_PROBE : UNDECIDED;
}

/* Writes records of a packet of a state, for the sides that have evaluated it now and
 * for the rules that log all. r: where it goes, from slow_decide(), or why it is
 * dropped. */
__noinline int slow_log(hook_ctx *ctx, struct scratch *s, enum reason r)
{
	const struct state *st;
	int dropped = reason_is_drop(r);
	__u32 d;

	if (!s)
		return 0;
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return 0;
	d = STATE_DIRECTION(s->state);
	if (!s->in.evaluated && (!dropped || s->out.evaluated)) {
		s->leaves = 0;
		log_side(ctx, s, state_crossing(d, 1), DIRECTION_IN, s->packet.ifindex);
	}
	log_evaluated(ctx, s, r);
	if (!s->out.evaluated && !dropped && s->out_ifindex && !(s->packet.flags & PACKET_GROUP)) {
		state_leaving_tuple(&s->tuple, st, d);
		s->leaves = 1;
		log_side(ctx, s, state_crossing(d, 0), DIRECTION_OUT, s->out_ifindex);
	}
	return 0;
}

/* Who calls the slow path. It is a constant in each program: the rules cost the verifier
 * much time, so programs that need none have none. */
enum slow_by {
	SLOW_NEW,   /* the rules with which the packet made its state */
	SLOW_STATE, /* its state alone				    */
	SLOW_RULES, /* its state, and the state's sides that keep none */
};

/* Returns where the packet goes, as slow_next() does, or why it is dropped. */
static __always_inline enum reason slow_decide(hook_ctx *ctx, struct scratch *s, enum slow_by by)
{
	enum reason r = slow_next(ctx, s), evaluated;

	if (states_bound && s->elsewhere && (by != SLOW_RULES || !s->out_ifindex))
		return REASON_STATE_MISMATCH; /* late fragments and ICMP errors meet no rules */
	if (by == SLOW_RULES && !reason_is_drop(r)) {
		evaluated = slow_rules(ctx, s);
		if (evaluated != UNDECIDED)
			return evaluated;
	}
	return r == UNDECIDED ? slow_probe(s) : r;
}

/* Returns why the packet is dropped after all; else r from slow_decide(). */
static __always_inline enum reason slow_drop_reason(struct scratch *s, const struct state *st, enum reason r,
						 enum slow_by by)
{
	const struct packet *p = &s->packet;
	enum reason remembered;

	if (reason_is_drop(r))
		return r;
	if (p->flags & PACKET_OPTIONS && !(st->flags & STATE_OPTIONS)) {
		count_path(st->path, STATE_DIRECTION(s->state), p->length);
		return REASON_OPTIONS;
	}
	/* Remember a first fragment only after it passed. */
	if (by != SLOW_NEW && p->fragment == FRAGMENT_FIRST) {
		remembered = fragment_remember(s);
		if (remembered != UNDECIDED)
			return remembered;
	}
	return r;
}

/* Whether a packet of a state is logged: by rules that log all, or by those that it has
 * met now. */
static __always_inline int slow_is_logged(const struct scratch *s, const struct state *st)
{
	return st->flags & (STATE_EVALUATE_IN | STATE_EVALUATE_OUT | STATE_LOG) ||
	       (states_bound && s->in.logs | s->out.logs);
}

/* Sends a packet of s->state that is already counted in the state. r: from slow_decide(). */
static __always_inline int slow_finish(hook_ctx *ctx, struct scratch *s, enum slow_by by, enum reason r)
{
	const struct interface *i;
	const struct packet *p;
	struct headers h;
	struct state *st;
	int action;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(s->state));
	if (!i || !st)
		return HOOK_DROP;
	r = slow_drop_reason(s, st, r, by);
	if (by != SLOW_NEW) { /* the first packet may be the only one of its state: no hint yet */
		if (shared.prefetch)
			hint_renew(s->state);
		if (slow_is_logged(s, st) && record_wanted(RING_LOG))
			slow_log(ctx, s, r);
	}
	if (by == SLOW_RULES && r == REASON_BLOCK)
		return reject(ctx, s, r);
	if (by == SLOW_RULES && reject_is_failure(r))
		return reject_or_drop(ctx, s, i, r, 0);
	if (r == REASON_GATEWAY)
		return reject_gateway(ctx, s, 0, r);
	if (reason_is_drop(r))
		return count_verdict(i, r, p->length);
	qos_set_evaluated(ctx, s, st, STATE_DIRECTION(s->state));
	action = divert_packet(ctx, s, st);
	if (action >= 0)
		return action;
	if (copy_send(ctx, &s->packet, st, s->state) || copy_send_now(ctx, s) || scrub_packet(ctx, s, st, s->state))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_path(st->path, STATE_DIRECTION(s->state), p->length);
	if (r == REASON_LOCAL && headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (r == REASON_LOCAL)
		return handoff_local(ctx, &h, p, i, st, s->state, r);
	if (r == REASON_UP_ROUTE)
		return handoff_no_route(ctx, p, i, st, s->state);
	if (shared.policies)
		r = policy_obstacle(ctx, p, s->state, s->out_ifindex, r);
	if (r != UNDECIDED && r != REASON_UP_POLICY && st->entered & KEPT_ROUTE(STATE_DIRECTION(s->state)) && !(p->flags & PACKET_GROUP))
		return gateway_end(ctx, gateway_state(ctx, p, s->state, s->nexthop, r));
	if (r != UNDECIDED)
		return handoff_forward(ctx, p, i, st, s->state, r);
	return gateway_end(ctx, fast_forward(ctx, p, i, st, s->state, nexthop_get(s->nexthop), s->why, PATH_COUNTED, FORWARD_SLOW));
}

static __always_inline int slow_send(hook_ctx *ctx, struct scratch *s, enum slow_by by)
{
	if (!s)
		return HOOK_DROP;
	if (by != SLOW_NEW)
		evaluate_nothing(s);
	return slow_finish(ctx, s, by, slow_decide(ctx, s, by));
}

/* A SYN in a state opens a new connection, is repeated, or replies. Packets of states with
 * STATE_LOG come here too, and at egress first fragments. Returns UNDECIDED, why the packet is dropped, or
 * REASON_LAST_PASS for "a miss". */
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
	r = limit_rate(st, d);
	if (r != UNDECIDED)
		return r;
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
		r = normal_check(ctx, s, st);
		if (r != UNDECIDED)
			return r;
		r = track_tcp(st, d, p, tcp_option_wscale(ctx, s));
		if (r != UNDECIDED) {
			s->then = track_is_answered(st, d, p) ? SLOW_ANSWER : SLOW_END;
			return r;
		}
		normal_follow(s, st);
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
	if (copy_is_later_in(s->state))
		return count_verdict(i, REASON_UP_COPY, s->packet.length);
	if (!s->tracked) {
		r = slow_track(ctx, s);
		if (r == UNDECIDED)
			r = queue_in(ctx, &s->packet, s->state);
	}
	if (r == UNDECIDED) {
		st = state_get(STATE_INDEX(s->state));
		if (st && state_changes_family(st)) {
			bpf_tail_call(ctx, tails, TAIL_FAMILY);
			return count_verdict(i, REASON_INTERNAL, s->packet.length);
		}
		s->then = st && (state_is_evaluated(st) || slow_is_loose(s, st)) ? SLOW_EVALUATE : SLOW_END;
	}
	if (r == REASON_LAST_PASS || s->then != SLOW_END) {
		bpf_tail_call(ctx, tails, TAIL_MISS);
		r = REASON_INTERNAL;
	}
	return r == UNDECIDED ? slow_send(ctx, s, SLOW_STATE) : count_verdict(i, r, s->packet.length);
}

#endif
