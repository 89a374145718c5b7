/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A packet without a state: rules in, route, rules out, NAT, creation.
 * docs/packet-path.md, steps 3 to 6.
 */
#ifndef WEIR_PATH_MISS_H
#define WEIR_PATH_MISS_H

#include "observe/log.h"
#include "path/af_to.h"
#include "path/copy.h"
#include "path/scrub_list.h"
#include "path/slow.h"
#include "route/nat_source.h"
#include "route/route.h"
#include "packet/sanity.h"
#include "rules/evaluate.h"
#include "rules/implicit.h"
#include "state/create.h"

/* Sets what the in crossing has translated, which the route and the out crossing use. Only
 * a packet that makes a state is translated. */
static __always_inline void miss_translated(struct scratch *s)
{
	const struct crossing *in = &s->in;

	s->tuple = s->packet.tuple;
	if (s->state || create_is_oneway(&s->packet))
		return;
	if (in->flags & CROSSING_NAT)
		s->tuple.src = in->nat.addr;
	if (in->flags & CROSSING_RDR) {
		s->tuple.dst = in->rdr.addr;
		if (in->flags & CROSSING_RDR_PORT && nat_port_has(&s->packet))
			s->tuple.dport = in->rdr_port;
	}
}

/* Sanity, implicit passes, rules in. UNDECIDED: the packet may enter. */
__noinline enum reason miss_rules_in(hook_ctx *ctx, struct scratch *s, const struct rule_set *set)
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
	r = sanity_check(p, i);
	if (r != UNDECIDED)
		return r;
	if (implicit_passes(set, p, i, 1))
		return REASON_IMPLICIT;
	evaluate_start(&s->in, p, DIRECTION_IN, p->ifindex, evaluate_tag(s));
	s->in.fragment = p->fragment == FRAGMENT_LATER; /* others follow their first, and meet no rules */
	evaluate_start(&s->out, p, DIRECTION_OUT, 0, 0);
	s->skip_in = i->flags & INTERFACE_SKIP;
	s->skip_out = 0;
	r = evaluate_crossing(ctx, &s->in, set, p->flags & PACKET_OPTIONS, &why);
	s->why = why;
	return r;
}

/* Finds the next hop that the routing table of the rules has. */
static __always_inline enum route miss_route_table(hook_ctx *ctx, struct scratch *s, struct route_query *q)
{
	enum route route = route_by_table(ctx, q, s->in.rtable);

	if (route != ROUTE_FORWARD)
		return route;
	s->chosen = 1;
	return route_choose(ctx, q);
}

/* Finds where the packet goes: as the routes say, or as the rule that passed it in. A
 * function of its own, to save stack. */
__noinline enum route miss_route(hook_ctx *ctx, struct scratch *s)
{
	const struct packet *p;
	struct route_query q;
	enum route route;

	if (!s)
		return ROUTE_LOST;
	p = &s->packet;
	s->generation = shared.route_generation;
	if (s->in.route == ROUTES_TO) {
		s->chosen = 1;
		route_choice_fill(&q, p, hop_gateway(&s->in.hop, &s->tuple.dst), s->in.hop.ifindex);
		route = route_choose(ctx, &q);
	} else {
		route_query_fill(&q, p, &s->tuple.dst, s->tuple.dport);
		q.mark = s->in.mark;
		route = s->in.rtable ? miss_route_table(ctx, s, &q) : route_lookup(ctx, &q);
	}
	s->nexthop = q.number;
	s->no_nexthop = route_reason(route);
	s->out_ifindex = route == ROUTE_LOCAL ? 0 : q.ifindex;
	return route;
}

/* Finds the next hop of the out crossing's route-to, and where it is: *ifindex. */
__noinline enum route miss_choose(hook_ctx *ctx, struct scratch *s, __u32 *ifindex)
{
	struct route_query q;
	enum route route;

	if (!s || !ifindex)
		return ROUTE_LOST;
	s->generation = shared.route_generation;
	route_choice_fill(&q, &s->packet, hop_gateway(&s->out.hop, &s->tuple.dst), s->out.hop.ifindex);
	route = route_choose(ctx, &q);
	s->chosen = 1;
	s->nexthop = q.number;
	*ifindex = q.ifindex;
	return route;
}

/* Begins the crossing of another interface, to which the present one sends the packet. */
__noinline int miss_turn(struct scratch *s, __u32 ifindex)
{
	const struct interface *o = interface_get(ifindex);

	if (!s)
		return 0;
	s->reply = s->out; /* of no other use before the state is made */
	evaluate_start(&s->out, &s->packet, DIRECTION_OUT, ifindex, s->reply.tag);
	s->out.src = s->tuple.src;
	s->out.dst = s->tuple.dst;
	s->out.dport = s->tuple.dport;
	s->out.mark = s->reply.mark;
	s->out.mark_keep = s->reply.mark_keep;
	s->out.received = s->reply.received;
	s->out.tos = s->reply.tos;
	s->out.fragment = s->reply.fragment;
	s->out_ifindex = ifindex;
	s->skip_out = o && o->flags & INTERFACE_SKIP;
	return 0;
}

/* If no rule of that interface matched, the crossing before goes on to count. */
static __always_inline void miss_return(struct scratch *s, enum reason why)
{
	if (!s->out.rule && !(s->out.flags & (CROSSING_NAT | CROSSING_RDR))) {
		s->out = s->reply;
		s->out.route = ROUTES_NOT;
		s->out.ifindex = s->out_ifindex;
		s->skip_out = 0;
	} else if (why != REASON_SKIP) {
		s->why = why;
	}
}

/* How often rules on the way out may send a packet to another interface, as in pf. */
#define MISS_DETOURS 3

/* Follows route-to of the out crossing. The rules of the interface that it leads to are
 * evaluated too, and may lead on. UNDECIDED: done. */
__noinline enum reason miss_detour(hook_ctx *ctx, struct scratch *s, const struct rule_set *set)
{
	enum reason r, why;
	enum route route;
	__u32 ifindex = 0;
	int n;

	if (!s || !set)
		return REASON_INTERNAL;
	for (n = 0; n <= MISS_DETOURS; n++) {
		if (s->out.route != ROUTES_TO)
			break;
		route = miss_choose(ctx, s, &ifindex);
		if (route == ROUTE_CLOSED)
			return REASON_INTERFACE;
		if (route != ROUTE_FORWARD)
			return REASON_GATEWAY;
		if (ifindex == s->out_ifindex)
			break;
		if (n == MISS_DETOURS)
			return REASON_GATEWAY;
		miss_turn(s, ifindex);
		why = REASON_NO_RULE;
		r = evaluate_crossing(ctx, &s->out, set, 0, &why);
		if (r != UNDECIDED)
			return r;
		/* if no rule matches, those before count, which have let the options pass */
		if (s->packet.flags & PACKET_OPTIONS && (s->out.rule || s->out.flags & (CROSSING_NAT | CROSSING_RDR)) &&
		    !(s->out.flags & CROSSING_ALLOW_OPTIONS))
			return REASON_OPTIONS;
		miss_return(s, why);
	}
	return UNDECIDED;
}

/* Finds the next hop of what the box itself sends to a new destination. */
__noinline enum route miss_route_own(hook_ctx *ctx, struct scratch *s)
{
	struct route_query q;
	enum route route;

	if (!s)
		return ROUTE_LOST;
	s->generation = shared.route_generation;
	route_choice_fill(&q, &s->packet, &s->tuple.dst, 0);
	route = route_choose(ctx, &q);
	s->chosen = 1;
	s->nexthop = q.number;
	return route;
}

/* Whether the rules on the way out have given the packet another destination. */
static __always_inline int miss_is_redirected(const struct scratch *s)
{
	return s->out.flags & CROSSING_RDR && !s->state && !create_is_oneway(&s->packet);
}

/*
 * Gives a packet the destination that the rules on the way out have chosen. It goes where that is,
 * unless a rule has chosen its gateway too. own: the box sends it. UNDECIDED: done.
 */
__noinline enum reason miss_redirect(hook_ctx *ctx, struct scratch *s, int own)
{
	enum route route;

	if (!s)
		return REASON_INTERNAL;
	s->tuple.dst = s->out.rdr.addr;
	if (s->out.flags & CROSSING_RDR_PORT && nat_port_has(&s->packet))
		s->tuple.dport = s->out.rdr_port;
	if (s->chosen)
		return UNDECIDED;
	if (route_class(&s->packet, &s->tuple.dst) != UNDECIDED)
		return REASON_GATEWAY;
	route = own ? miss_route_own(ctx, s) : miss_route(ctx, s);
	if (route == ROUTE_CLOSED)
		return REASON_INTERFACE;
	if (route == ROUTE_LOCAL || route == ROUTE_LOST)
		return REASON_GATEWAY;
	if (!own)
		s->out.ifindex = s->out_ifindex;
	return UNDECIDED;
}

/* divert-to: the packet goes to a socket of the box as it is, and needs no route. */
static __always_inline enum reason miss_divert(struct scratch *s)
{
	s->in.flags &= ~(CROSSING_NAT | CROSSING_RDR);
	s->tuple = s->packet.tuple;
	s->chosen = 1;
	s->out_ifindex = 0;
	if (s->in.hop.ifindex == HOP_NONE || s->packet.flags & PACKET_GROUP ||
	    (s->packet.tuple.zone && s->packet.tuple.zone != ZONE_SOCKET))
		return REASON_DIVERT;
	return REASON_LOCAL;
}

/* Route and rules out. UNDECIDED: the packet is forwarded. A pass reason: it goes to the
 * box. */
__noinline enum reason miss_rules_out(hook_ctx *ctx, struct scratch *s, const struct rule_set *set)
{
	const struct packet *p;
	const struct interface *o;
	enum reason r, why = REASON_NO_RULE;
	enum route route;

	if (!s || !set)
		return REASON_INTERNAL;
	p = &s->packet;
	miss_translated(s);
	r = route_class(p, &s->tuple.dst);
	if (r != UNDECIDED)
		return r;
	route = miss_route(ctx, s);
	if (route == ROUTE_LOCAL)
		return REASON_LOCAL;
	if (route == ROUTE_CLOSED)
		return REASON_INTERFACE;
	if (route == ROUTE_LOST)
		return REASON_GATEWAY;
	evaluate_start(&s->out, p, DIRECTION_OUT, s->out_ifindex, s->in.tag);
	s->out.src = s->tuple.src;
	s->out.dst = s->tuple.dst;
	s->out.dport = s->tuple.dport;
	s->out.fragment = s->in.fragment;
	s->out.mark = s->in.mark;
	s->out.mark_keep = s->in.mark_mask;
	s->out.received = p->ifindex;
	s->out.tos = scrub_tos_seen(p, scrub_by_in(s));
	evaluate_share(&s->out, &s->in);
	o = interface_get(s->out_ifindex);
	s->skip_out = o && o->flags & INTERFACE_SKIP;
	r = evaluate_crossing(ctx, &s->out, set, p->flags & PACKET_OPTIONS, &why);
	if (r == UNDECIDED && why != REASON_SKIP)
		s->why = why;
	return r;
}

/* Ends a state whose connection gets another one. */
static __always_inline void miss_end(__u32 index)
{
	struct state *st = state_get(index);

	if (st)
		state_kill(st, index);
}

/* Whether the packet's state would let it cross, but not at this interface. */
static __always_inline int miss_is_elsewhere(const struct scratch *s, int in)
{
	const struct state *st = states_bound && s->state ? state_get(STATE_INDEX(s->state)) : 0;

	return st && st->flags & state_crossing(STATE_DIRECTION(s->state), in);
}

/*
 * The rules have passed a packet that crosses where its state is not bound to. UNDECIDED:
 * it goes on by its state. REASON_LAST_PASS: it goes on without, because the rules do not
 * translate it as the state does. Else the reason to drop.
 */
__noinline enum reason miss_join(hook_ctx *ctx, struct scratch *s, int in)
{
	const struct tuple *other;
	const struct crossing *cr;
	struct state *st;
	__u32 number, d;
	enum reason r;
	int same;

	if (!s)
		return REASON_INTERNAL;
	number = s->state;
	d = STATE_DIRECTION(number);
	st = state_get(STATE_INDEX(number));
	if (!st)
		return REASON_INTERNAL;
	other = d ? &st->forth.tuple : &st->back.tuple;
	s->state = 0;
	if (in) {
		miss_translated(s);
		same = !(s->in.flags & CROSSING_NAT) && addr_equal(&s->tuple.dst, &other->src) &&
		       s->tuple.dport == other->sport;
	} else {
		same = !(s->out.flags & (CROSSING_NAT | CROSSING_RDR)) && !(st->flags & STATE_NAT);
		if (!d)
			s->replaces = number;
	}
	if (!same)
		return REASON_LAST_PASS;
	s->state = number;
	s->replaces = 0;
	cr = in ? &s->in : &s->out;
	r = slow_track(ctx, s);
	if (r != UNDECIDED)
		return r;
	s->why = REASON_STATE;
	if (cr->flags & CROSSING_KEEP_STATE)
		bound_add(st, STATE_INDEX(number), bound_side(d, in), cr->ifindex);
	return r;
}

/* Makes a state for what passed the rules, if they ask for one. own: the box sends the
 * packet. */
__noinline enum reason miss_state(hook_ctx *ctx, struct scratch *s, __u8 crossed, int own)
{
	const struct crossing *cr;
	struct state *st;
	int wscale = -1, wanted;
	__u8 flags = 0;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	wanted = !s->state && create_wanted(s);
	s->made = 0;
	if (wanted) {
		flags = create_flags(s, crossed, s->skip_in, s->skip_out);
		if (s->out.flags & CROSSING_NAT)
			nat_source_follow(ctx, s);
		else if (s->in.flags & CROSSING_NAT)
			create_nat_in(s);
		create_choose_reply(s);
		if (!own && (s->in.route == ROUTES_REPLY || s->out.route == ROUTES_REPLY)) {
			r = gateway_reply(ctx, s);
			if (r != UNDECIDED)
				return r;
		}
	}
	s->path = rule_path_index(s, crossed);
	if (s->state) { /* live, but had not crossed here */
		st = state_get(STATE_INDEX(s->state));
		cr = own ? &s->out : &s->in;
		hint_withdraw(STATE_INDEX(s->state)); /* its rules may log from now on */
		/* the state knows nothing of a next hop that this rule chooses */
		if (st && cr->flags & CROSSING_KEEP_STATE && (cr->route == ROUTES_NOT || crossing_copies(cr)))
			create_add_side(st, s, own, state_crossing(STATE_DIRECTION(s->state), !own));
		s->state = 0;
	} else if (wanted) {
		if (s->packet.tcp_flags & TCP_SYN)
			wscale = tcp_option_wscale(ctx, s);
		if (states_bound && s->replaces)
			miss_end(STATE_INDEX(s->replaces));
		if (copies && (copy_lacks_program(&s->in) || copy_lacks_program(&s->out)))
			return REASON_DIVERT;
		r = create_state(s, flags, wscale, own);
		if (r != UNDECIDED)
			return r;
		create_count(s, crossed);
		copy_note(ctx, s);
	}
	if (!s->state) {
		evaluate_marks(s);
		s->packet.scrub = scrub_evaluated(s); /* late fragments get it, too */
	}
	return s->packet.fragment == FRAGMENT_FIRST ? fragment_remember(s) : UNDECIDED;
}

/* Passes up a packet for the box that has no state. */
__noinline int miss_local(hook_ctx *ctx, struct scratch *s, enum reason why)
{
	const struct packet *p;
	const struct interface *i;
	struct headers h;
	struct state *st;
	enum reason r;
	int action;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	s->out.flags = 0;
	s->out.route = ROUTES_NOT;
	s->nexthop = NEXTHOP_LOCAL;
	r = miss_state(ctx, s, STATE_IN, 0);
	scrub_list_note(ctx, s);
	r = normal_begin_made(ctx, s, r);
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return reject_or_drop(ctx, s, i, r, STATE_IN);
	st = s->state ? state_get(STATE_INDEX(s->state)) : 0;
	if (!st && s->in.route == ROUTES_DIVERT)
		return count_verdict(i, REASON_DIVERT, p->length);
	qos_set_evaluated(ctx, s, st, STATE_DIRECTION(s->state));
	r = queue_in(ctx, p, s->state);
	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	action = st ? divert_packet(ctx, s, st) : -1;
	if (action >= 0)
		return action;
	count_path(s->path, 0, p->length);
	if ((st && copy_send(ctx, &s->packet, st, s->state)) || copy_send_now(ctx, s) || scrub_packet(ctx, s, st, s->state) ||
	    headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (st)
		return handoff_local(ctx, &h, p, i, st, s->state, why);
	return handoff_local(ctx, &h, p, i, 0, 0, why);
}

/* Ends what a rule with af-to has passed. */
static __always_inline int miss_family(hook_ctx *ctx, void *tails, struct scratch *s, const struct interface *i)
{
	enum reason r = REASON_LAST_PASS;

	if (miss_is_elsewhere(s, 1)) {
		r = family_join(ctx, s);
		if (r != UNDECIDED && r != REASON_AF_TO && r != REASON_LAST_PASS)
			return s->then == SLOW_ANSWER ? reject_segment(ctx, s) : count_verdict(i, r, s->packet.length);
	}
	if (r == REASON_LAST_PASS) {
		r = family_make(ctx, s);
		s->then = SLOW_MADE;
	}
	if (!(r == UNDECIDED && s->then == SLOW_JOINED)) /* else TAIL_FAMILY does it */
		log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return reject_or_drop(ctx, s, i, r, STATE_IN);
	bpf_tail_call(ctx, tails, TAIL_FAMILY);
	return count_verdict(i, REASON_INTERNAL, s->packet.length);
}

/* A fragment of which a scrub rule says whether it meets the rules for itself. Returns the tail
 * call that it takes; < 0: it meets the rules now. */
__noinline int miss_fragment(hook_ctx *ctx, struct scratch *s)
{
	if (!s)
		return TAIL_FRAGMENT;
	s->then = SLOW_END;
	s->alone = scrub_list_pieces(ctx, s);
	if (s->alone) {
		fragment_stand_alone(&s->packet);
		s->owner = (struct owner){NOBODY, NOBODY}; /* without ports it is nobody's */
		return -1;
	}
	if (s->packet.fragment == FRAGMENT_LATER)
		return TAIL_FRAGMENT;
	return fast_state(&s->packet, tuple_hash(&s->packet.tuple), 1, &s->state) ? TAIL_SLOW : -1;
}

static __always_inline int miss_in(hook_ctx *ctx, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	const struct rule_set *set;
	enum reason r;
	int tail;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	if (s->then == SLOW_FRAGMENT) {
		tail = miss_fragment(ctx, s);
		if (tail >= 0) {
			bpf_tail_call(ctx, tails, tail);
			return count_verdict(i, REASON_INTERNAL, s->packet.length);
		}
	}
	if (s->then == SLOW_EVALUATE) {
		evaluate_nothing(s);
		r = slow_decide(ctx, s, SLOW_RULES);
		if (!states_bound || !s->replaces)
			return slow_finish(ctx, s, SLOW_RULES, r);
		s->state = 0;
	}
	if (s->then == SLOW_ANSWER)
		return reject_segment(ctx, s);
	if (HOOK_IS_XDP && copies) /* a copy may be due */
		return count_verdict(i, REASON_UP_COPY, s->packet.length);
	set = rule_set_get();
	r = miss_rules_in(ctx, s, set);
	if (r == REASON_IMPLICIT)
		hook_handoff(ctx, s->packet.mark, &s->packet, 0);
	if (r != UNDECIDED) {
		log_packet(ctx, s, r);
		return reject_or_drop(ctx, s, i, r, STATE_IN);
	}
	if (af_to && s->in.flags & CROSSING_FAMILY)
		return miss_family(ctx, tails, s, i);
	if (miss_is_elsewhere(s, 1)) {
		r = miss_join(ctx, s, 1);
		if (r == UNDECIDED)
			r = slow_decide(ctx, s, SLOW_RULES);
		else if (r != REASON_LAST_PASS)
			return s->then == SLOW_ANSWER ? reject_segment(ctx, s) : count_verdict(i, r, s->packet.length);
		if (s->state && !s->replaces) {
			if (!reason_is_drop(r) && queue_in(ctx, &s->packet, s->state) != UNDECIDED)
				r = REASON_QUEUE;
			return slow_finish(ctx, s, SLOW_RULES, r);
		}
		s->state = 0;
		s->out.evaluated = 0;
		s->out.logs = 0;
		s->why = s->in.evaluated ? (s->in.rule ? REASON_RULE : REASON_NO_RULE) : REASON_SKIP;
	}
	r = s->in.route == ROUTES_DIVERT ? miss_divert(s) : miss_rules_out(ctx, s, set);
	if (r == UNDECIDED && s->out.route == ROUTES_TO)
		r = miss_detour(ctx, s, set);
	if (r == UNDECIDED && miss_is_redirected(s))
		r = miss_redirect(ctx, s, 0);
	if (r != UNDECIDED && r <= REASON_LAST_PASS)
		return miss_local(ctx, s, r);
	if (r == UNDECIDED) {
		r = miss_state(ctx, s, STATE_IN | STATE_OUT, 0);
		scrub_list_note(ctx, s);
		r = normal_begin_made(ctx, s, r);
	}
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return reject_or_drop(ctx, s, i, r, STATE_IN | STATE_OUT);
	if (!s->state)
		qos_set_evaluated(ctx, s, 0, 0);
	r = queue_in(ctx, &s->packet, s->state);
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (s->state)
		return slow_send(ctx, s, SLOW_NEW);
	if (copy_send_now(ctx, s) || scrub_packet(ctx, s, 0, 0))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	return stateless_forward(ctx, s, s->why);
}

#endif
