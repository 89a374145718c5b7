/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * TCX egress. What the box itself sends meets its rules here. What the stack forwards
 * for weir is completed. What it forwards on its own is dropped.
 */
#ifndef WEIR_PATH_EGRESS_H
#define WEIR_PATH_EGRESS_H

#include "observe/log.h"
#include "path/gateway_out.h"
#include "path/miss.h"

/* Translates a packet that the box sends in a state, on both sides of the state. */
static __always_inline int egress_translate(hook_ctx *ctx, const struct packet *p, const struct state *st,
					   __u32 number)
{
	const struct tuple *other = STATE_DIRECTION(number) ? &st->forth.tuple : &st->back.tuple;
	struct headers h;

	if (!(st->flags & STATE_NAT))
		return 0;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	return rewrite_translate_to(ctx, &h, p, &other->dst, &other->src, other->dport, other->sport);
}

/* Returns the interface that a packet of the box leaves by. */
static __always_inline __u32 egress_leaves(const struct packet *p, const struct state *st, __u32 number)
{
	__u32 d = STATE_DIRECTION(number);

	return st->entered & KEPT_ROUTE(d) ? nexthop_get(state_course((struct state *)st, d)->nexthop)->ifindex : p->ifindex;
}

/* Sends a packet of the box in a state: the last step. met: it has met the rules, and has their priority. */
static __always_inline int egress_send(hook_ctx *ctx, struct packet *p, const struct interface *i,
				 const struct state *st, __u32 number, int met, enum reason why)
{
	int chosen = st->entered & KEPT_ROUTE(STATE_DIRECTION(number));
	__u32 ifindex = egress_leaves(p, st, number);
	enum reason r;

	if (chosen) {
		r = egress_ready(ctx, p, number);
		if (r != UNDECIDED)
			return egress_refuse(ctx, p, i, state_course((struct state *)st, STATE_DIRECTION(number))->nexthop, r);
	}
	if (queues) {
		r = queue_out(ctx, p, number, ifindex);
		if (r != UNDECIDED)
			return count_verdict(i, r, p->length);
		if (queue_tree(ifindex, 0))
			queue_trip_leaves(p, number, queue_tree(ifindex, 0));
	}
	count_path(st->path, STATE_DIRECTION(number), p->length);
	if (!met)
		qos_set_state(ctx, p, st, STATE_DIRECTION(number));
	queue_again(ctx, ifindex);
	if (st->flags & STATE_MARK)
		hook_set_mark(ctx, rule_mark_all(st, p->mark));
	if ((p->scrub && scrub_out(ctx, p)) || egress_translate(ctx, p, st, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (chosen)
		return egress_choose(ctx, p, state_course((struct state *)st, STATE_DIRECTION(number))->nexthop, why);
	return count_verdict(i, why, p->length);
}

/* The same for a packet without a state. nexthop: that a rule has chosen; 0: none has. */
static __always_inline int egress_stateless(hook_ctx *ctx, struct packet *p, const struct interface *i,
					    const struct scratch *s, __u32 nexthop, enum reason why)
{
	enum reason r = nexthop ? egress_fault(ctx, p, nexthop_get(nexthop)) : UNDECIDED;

	if (r != UNDECIDED)
		return egress_refuse(ctx, p, i, nexthop, r);
	if (queues) {
		r = queue_out(ctx, p, 0, nexthop ? nexthop_get(nexthop)->ifindex : p->ifindex);
		if (r != UNDECIDED)
			return count_verdict(i, r, p->length);
	}
	count_path(s->path, 0, p->length);
	hook_set_mark(ctx, mark_leaving(p->mark, &s->out_mark));
	if (p->scrub && scrub_out(ctx, p))
		return count_verdict(i, REASON_INTERNAL, p->length);
	return nexthop ? egress_choose(ctx, p, nexthop, why) : count_verdict(i, why, p->length);
}

/* Returns what was decided about a fragment by its id: HANDOFF_* of its record; 0: nothing.
 * What has followed its first fragment keeps the priority that it has. */
static __always_inline __u32 egress_fragment_decision(struct scratch *s, struct packet *p)
{
	__u32 decided, qos = 0;

	handoff_fragment(&s->handoff, p);
	decided = handoff_get(s, 0, &qos);
	if (decided & HANDOFF_ALONE)
		p->qos = qos;
	return decided;
}

/* Returns what was decided about a packet that the stack forwards: HANDOFF_* of its
 * record, or the same for its state; 0: nothing. */
__noinline __u32 egress_decision(hook_ctx *ctx, struct packet *p)
{
	struct scratch *s = scratch_get();
	enum mark value = mark_value(ctx->mark);
	__u32 number, decided;

	if (!s || !p || value == MARK_NONE || value == MARK_DIVERT)
		return 0;
	s->handoff = p->tuple;
	if (p->fragment == FRAGMENT_LATER)
		return egress_fragment_decision(s, p);
	/* a first fragment came in as one, or the stack has made it */
	if (p->fragment == FRAGMENT_FIRST && value == MARK_RECORD && fragment_rules_now()) {
		decided = egress_fragment_decision(s, p);
		if (decided & HANDOFF_ALONE)
			return decided;
		s->handoff = p->tuple;
	}
	if (value >= MARK_RECORD) {
		s->handoff.zone = 0; /* no record has one */
		return handoff_get(s, value - MARK_RECORD, &p->qos);
	}
	if (value == MARK_LEAVES)
		tuple_reverse(&s->handoff, &p->tuple);
	if (!lookup_state(&s->handoff, &number))
		return 0;
	return HANDOFF_PASSED | (value == MARK_LEAVES ? number ^ 1 : number);
}

/*
 * Whether a policy has made a packet of one that the stack forwards. It keeps the mark, too. A device
 * below another one also sees packets that weir has translated to an address of the box: these
 * belong to their state or record as they are.
 */
static __always_inline int egress_is_sealed(hook_ctx *ctx, struct packet *p)
{
	const struct state *st;
	__u32 decided;

	if (!policy_may_have_sealed(p))
		return 0;
	if (mark_value(ctx->mark) < MARK_LEAVES)
		return 1;
	decided = egress_decision(ctx, p);
	if (!decided)
		return 1;
	st = decided & HANDOFF_NUMBER ? state_get(STATE_INDEX(decided & HANDOFF_NUMBER)) : 0;
	return st && !(st->flags & STATE_NAT); /* a state of what the box sends */
}

/*
 * Completes a packet that was handed up to be forwarded. Its destination is already
 * translated; now its source is. It met the rules and was counted at its entry. The
 * stack may have changed its priority since, as IPv4 does.
 */
static __noinline int egress_complete(hook_ctx *ctx, struct packet *p, __u32 number)
{
	const struct scratch *s = scratch_get();
	const struct interface *i;
	const struct tuple *reply;
	struct headers h;
	struct state *st;
	enum reason r;

	if (!p || !s)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	if (shared.policies && policy_forbids(p, number))
		return count_verdict(i, REASON_POLICY, p->length);
	if (!number) {
		r = queue_out(ctx, p, 0, p->ifindex);
		if (r != UNDECIDED)
			return count_verdict(i, r, p->length);
		hook_prioritize(ctx, p->qos);
		queue_again(ctx, p->ifindex);
		hook_set_mark(ctx, mark_leaving(ctx->mark, &s->out_mark));
		return count_verdict(i, REASON_MARKED, p->length);
	}
	st = handoff_state(number, &p->tuple);
	if (!st)
		return count_verdict(i, REASON_GUARD, p->length);
	/* the stack routes nothing for which a rule has chosen another way */
	if (st->entered & KEPT_ROUTE(STATE_DIRECTION(number)) &&
	    nexthop_get(state_course(st, STATE_DIRECTION(number))->nexthop)->ifindex != p->ifindex)
		return count_verdict(i, REASON_GUARD, p->length);
	r = queue_out(ctx, p, number, p->ifindex);
	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	if (p->qos && state_is_evaluated(st))
		hook_prioritize(ctx, p->qos);
	else
		qos_set_state(ctx, p, st, STATE_DIRECTION(number));
	queue_again(ctx, p->ifindex);
	if (st->qos & KEPT_MIN_TTL) { /* all else was done where it came in */
		p->scrub = SCRUB_TTLS(0, SCRUB_LEAVES(state_scrub(st, number)));
		if (scrub_out(ctx, p))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	/* MARK_LEAVES is for a device that sends the packet on by another one */
	hook_set_mark(ctx, mark_set(rule_mark_all(st, p->mark), MARK_LEAVES));
	if (!(st->flags & STATE_NAT))
		return count_verdict(i, REASON_MARKED, p->length);
	reply = STATE_DIRECTION(number) ? &st->forth.tuple : &st->back.tuple;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) ||
	    rewrite_translate_to(ctx, &h, p, &reply->dst, &p->tuple.dst, reply->dport, p->tuple.dport))
		return count_verdict(i, REASON_INTERNAL, p->length);
	return count_verdict(i, REASON_MARKED, p->length);
}

/* Writes records of what the box sends in a state, for rules that log all. */
static __always_inline void egress_log(hook_ctx *ctx, struct scratch *s, const struct state *st)
{
	__u32 d = STATE_DIRECTION(s->state);

	if (!(st->flags & STATE_LOG) || !record_wanted(RING_LOG))
		return;
	state_leaving_tuple(&s->tuple, st, d);
	s->leaves = 1;
	log_side(ctx, s, state_crossing(d, 0), DIRECTION_OUT, s->packet.ifindex);
}

/* Handles a parsed packet of the box itself. */
static __always_inline int egress_fast(hook_ctx *ctx, void *tails, struct packet *p, const struct interface *i)
{
	struct state *st;
	__u32 number, d;
	enum reason r;
	int tail = fast_tail_of(p);

	if (tail >= 0)
		return fast_tail(ctx, tails, p, i, tail, 0, 0);
	st = fast_state(p, tuple_hash(&p->tuple), 0, &number);
	if (!st)
		return fast_tail(ctx, tails, p, i, TAIL_MISS, number, 0);
	if (state_changes_family(st)) /* the box itself is no end of such a connection */
		return count_verdict(i, REASON_AF_TO, p->length);
	if (fast_is_rare(p) || p->fragment != FRAGMENT_NONE || st->flags & STATE_LOG)
		return fast_tail(ctx, tails, p, i, TAIL_SLOW, number, 0);
	d = STATE_DIRECTION(number);
	r = fast_track(st, d, p);
	if (r == REASON_STATE_MISMATCH)
		return fast_mismatch(ctx, tails, p, i, st, number);
	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	if (queues)
		queue_trip_comes(p, number, 0);
	if (st->qos & KEPT_SCRUB)
		scrub_set_state(p, st, number);
	return egress_send(ctx, p, i, st, number, 0, REASON_STATE);
}

/* Implicit passes and rules out. UNDECIDED: the packet may leave. */
__noinline enum reason egress_rules(hook_ctx *ctx, struct scratch *s, const struct rule_set *set)
{
	const struct interface *i;
	const struct packet *p;
	enum reason r, why = REASON_NO_RULE;

	if (!s || !set)
		return REASON_INTERNAL;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return REASON_INTERFACE;
	evaluate_nothing(s);
	s->chosen = 0;
	s->reply_nexthop = 0;
	if (implicit_passes(set, p, i, 0))
		return REASON_IMPLICIT;
	evaluate_start(&s->in, p, DIRECTION_IN, 0, 0);
	evaluate_start(&s->out, p, DIRECTION_OUT, p->ifindex, 0);
	if (p->tuple.zone) /* else the box has made it of what it forwards (path/policy.h) */
		s->out.received = ctx->ingress_ifindex; /* not 0: multicast that the stack forwards */
	s->skip_in = 0;
	s->skip_out = i->flags & INTERFACE_SKIP;
	r = evaluate_crossing(ctx, &s->out, set, p->flags & PACKET_OPTIONS, &why);
	s->why = why;
	s->out_ifindex = p->ifindex;
	s->tuple = p->tuple;
	return r;
}

/* Sends a packet of s->state that has been tracked. met: it has met the rules, too. */
static __always_inline int egress_tracked(hook_ctx *ctx, struct scratch *s, const struct interface *i, int met)
{
	enum reason r = UNDECIDED;
	struct state *st;
	int action;

	if (s->packet.fragment == FRAGMENT_FIRST)
		r = fragment_remember(s);
	st = state_get(STATE_INDEX(s->state));
	if (r != UNDECIDED || !st)
		return count_verdict(i, r == UNDECIDED ? REASON_INTERNAL : r, s->packet.length);
	if (met) {
		log_packet(ctx, s, UNDECIDED);
	} else {
		egress_log(ctx, s, st);
		evaluate_nothing(s);
	}
	action = divert_packet(ctx, s, st);
	if (action >= 0)
		return action;
	if (copy_send(ctx, &s->packet, st, s->state) || copy_send_now(ctx, s) || scrub_packet(ctx, s, st, s->state))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	if (met) /* by the type of service that it still has */
		qos_set_evaluated(ctx, s, st, STATE_DIRECTION(s->state));
	return egress_send(ctx, &s->packet, i, st, s->state, met, REASON_STATE);
}

static __always_inline int egress_miss(hook_ctx *ctx)
{
	struct scratch *s = scratch_get();
	const struct rule_set *set;
	const struct interface *i;
	struct state *st;
	enum reason r;
	int action;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	if (s->then == SLOW_ANSWER)
		return reject_segment(ctx, s);
	set = rule_set_get();
	r = egress_rules(ctx, s, set);
	if (r == UNDECIDED && miss_is_elsewhere(s, 0)) {
		r = miss_join(ctx, s, 0);
		if (r == UNDECIDED)
			return egress_tracked(ctx, s, i, 1);
		if (r != REASON_LAST_PASS)
			return s->then == SLOW_ANSWER ? reject_segment(ctx, s) : count_verdict(i, r, s->packet.length);
		r = UNDECIDED;
	}
	if (r == UNDECIDED && s->out.route == ROUTES_TO)
		r = miss_detour(ctx, s, set);
	if (r == UNDECIDED && miss_is_redirected(s))
		r = miss_redirect(ctx, s, 1);
	if (r == UNDECIDED) {
		r = miss_state(ctx, s, STATE_OUT, 1);
		scrub_list_note(ctx, s);
		r = normal_begin_made(ctx, s, r);
	}
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return reject_or_drop(ctx, s, i, r, STATE_OUT);
	st = s->state ? state_get(STATE_INDEX(s->state)) : 0;
	action = st ? divert_packet(ctx, s, st) : -1;
	if (action >= 0)
		return action;
	if ((st && copy_send(ctx, &s->packet, st, s->state)) || copy_send_now(ctx, s) || scrub_packet(ctx, s, st, s->state))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	if (st)
		return egress_send(ctx, &s->packet, i, st, s->state, 0, s->why);
	qos_set_evaluated(ctx, s, 0, 0);
	return egress_stateless(ctx, &s->packet, i, s, s->chosen ? s->nexthop : 0, s->why);
}

static __always_inline int egress_slow(hook_ctx *ctx, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	r = slow_track(ctx, s);
	if (r == REASON_LAST_PASS || s->then == SLOW_ANSWER) {
		bpf_tail_call(ctx, tails, TAIL_MISS);
		r = REASON_INTERNAL;
	}
	return r == UNDECIDED ? egress_tracked(ctx, s, i, 0) : count_verdict(i, r, s->packet.length);
}

static __always_inline int egress_fragment(hook_ctx *ctx)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	struct state *st;
	enum reason r;
	int action;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	r = fragment_follow(s);
	if (r == REASON_FRAGMENT_HELD) /* the box sends them in order */
		r = REASON_FRAGMENT_ORPHAN;
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (!s->state)
		return egress_stateless(ctx, &s->packet, i, s, s->nexthop, REASON_RULE);
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	if (state_changes_family(st))
		return count_verdict(i, REASON_AF_TO, s->packet.length);
	track_count(st, STATE_DIRECTION(s->state), &s->packet);
	egress_log(ctx, s, st);
	action = divert_packet(ctx, s, st);
	if (action >= 0)
		return action;
	scrub_set_state(&s->packet, st, s->state);
	return egress_send(ctx, &s->packet, i, st, s->state, 0, REASON_STATE);
}

#endif
