/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Making a state: a free index, the reservation of both tuples, a port for NAT.
 *
 * The order makes it safe. The state is filled while it is NEW. Then the reply's tuple
 * is entered, which reserves the port. Then the state goes LIVE. Then the first tuple is
 * entered. A core that loses the last step kills its own state and uses the winner's.
 */
#ifndef WEIR_STATE_CREATE_H
#define WEIR_STATE_CREATE_H

#include "packet/csum.h"
#include "observe/log.h"
#include "path/scratch.h"
#include "rules/match.h"
#include "state/alloc.h"
#include "state/rule_mark.h"
#include "state/nat_port.h"
#include "state/pool_count.h"
#include "state/tuples.h"
#include "state/state_qos.h"
#include "state/state_scrub.h"
#include "state/touch.h"
#include "state/track.h"

/* Has the source translation of the in crossing apply, as if the out crossing had found
 * it. */
static __always_inline void create_nat_in(struct scratch *s)
{
	s->out.nat = s->in.nat;
	s->in.nat.states = 0; /* the out crossing counts it */
	s->out.nat_ports = s->in.nat_ports;
	s->out.flags |= s->in.flags & (CROSSING_NAT | CROSSING_NAT_STATIC);
	s->out.endpoint = s->in.endpoint;
}

/* Turns s->tuple from "the packet as it will leave, except for the source" into the
 * reply's tuple. */
static __always_inline void create_reply_tuple(struct scratch *s)
{
	struct addr src = s->packet.tuple.src;

	if (s->out.flags & CROSSING_NAT)
		src = s->out.nat.addr;
	s->tuple.src = s->tuple.dst;
	s->tuple.dst = src;
	s->tuple.sport = s->tuple.dport;
	s->tuple.dport = s->packet.tuple.sport;
}

/*
 * Chooses the reply's tuple, with the first port to try, and touches its bucket. The load
 * then overlaps with the work before create_state(), whose locked instructions would wait
 * for it.
 */
static __always_inline void create_choose_reply(struct scratch *s)
{
	create_reply_tuple(s);
	if (nat_port_wanted(s)) {
		if (!s->out.nat_ports.low)
			s->out.nat_ports = (struct nat_ports){.low = NAT_LOW, .high = NAT_HIGH};
		nat_port_begin(s, &s->out.nat_ports);
		s->tuple.dport = bpf_htons(nat_port_next(&s->search));
		nat_port_note(s);
	}
	s->reply_hash = tuple_hash(&s->tuple);
	touch_bucket(s->reply_hash);
}

/* Reserves the reply's tuple, with another source port if the rules or a collision need
 * one. own: the box's own packet. */
static __always_inline enum reason create_reserve_reply(struct scratch *s, __u32 number, int own, __u32 *owner)
{
	const struct nat_ports all = {.low = NAT_LOW, .high = NAT_HIGH};
	enum reason r;

	if (nat_port_wanted(s))
		return nat_port_reserve(s, number);
	r = tuples_enter(number, s->reply_hash, owner);
	if (r == REASON_TUPLE_TAKEN && own && nat_port_has(&s->packet) && !(s->out.flags & CROSSING_NAT_STATIC)) {
		nat_port_begin(s, &all);
		return nat_port_reserve(s, number);
	}
	return r;
}

static __always_inline void create_flow(struct flow *f)
{
	f->packets = 0;
	f->bytes = 0;
	f->last = shared.now;
	f->seqlo = 0;
	f->seqhi = 0;
	f->grant = 0;
	f->max_win = 1;
	f->peer = PEER_CLOSED;
	f->wscale = 0;
	f->flags = 0;
}

static __always_inline void create_course(struct course *c, const struct tuple *t)
{
	c->tuple = *t;
	c->nexthop = NEXTHOP_NONE;
	c->csum_addr = 0;
	c->csum_port = 0;
	c->nexthop_generation = 0;
}

/* The first segment sets what its end may send and what it allows the other end. */
static __always_inline void create_tcp(struct flow *f, const struct packet *p, int wscale)
{
	__u32 end = p->seq + p->payload + (p->tcp_flags & TCP_SYN ? 1 : 0) +
		    (p->tcp_flags & TCP_FIN ? 1 : 0);

	f->seqlo = end;
	f->seqhi = end;
	f->max_win = track_at_least_1(p->window);
	f->flags |= FLOW_SEEN;
	f->peer = p->tcp_flags & TCP_FIN ? PEER_CLOSING : PEER_SYN_SENT;
	if (p->tcp_flags & TCP_SYN && wscale >= 0) {
		f->wscale = wscale;
		f->flags |= FLOW_SCALED;
	}
	if (p->tcp_flags & TCP_ACK) {
		f->grant = p->ack + f->max_win;
		f->flags |= FLOW_GRANTED;
	}
}

static __always_inline __u8 create_phase(const struct packet *p)
{
	if (p->tuple.proto == IPPROTO_TCP)
		return PHASE_TCP_FIRST;
	if (p->tuple.proto == IPPROTO_UDP)
		return PHASE_UDP_FIRST;
	return icmp_is(p->family, p->tuple.proto) ? PHASE_ICMP_FIRST : PHASE_OTHER_FIRST;
}

/* Computes the differences for both directions, from the present tuples. */
static __always_inline void create_csum_diffs(struct state *st)
{
	struct tuple *f = &st->forth.tuple, *b = &st->back.tuple;

	st->forth.csum_addr = csum_fold(csum_addr_diff(&f->src, &b->dst) + csum_addr_diff(&f->dst, &b->src));
	st->forth.csum_port = csum_fold(csum_word_diff(f->sport, b->dport) + csum_word_diff(f->dport, b->sport));
	st->back.csum_addr = csum_fold(csum_addr_diff(&b->src, &f->dst) + csum_addr_diff(&b->dst, &f->src));
	st->back.csum_port = csum_fold(csum_word_diff(b->sport, f->dport) + csum_word_diff(b->dport, f->sport));
}

static __always_inline int create_is_mirror(const struct state *st)
{
	struct tuple r;

	tuple_reverse(&r, &st->forth.tuple);
	return tuple_equal(&r, &st->back.tuple);
}

/* Returns the tag that the side with state gives to all packets of the connection, if
 * the other side evaluates them. */
static __always_inline __u16 create_tag(const struct scratch *s, __u8 flags)
{
	if (flags & STATE_EVALUATE_OUT)
		return s->in.tag;
	if (flags & STATE_EVALUATE_IN)
		return s->out.tag != s->in.tag ? s->out.tag : 0;
	return states_bound ? s->in.tag : 0; /* other interfaces may evaluate them */
}

/* Keeps in a state what the rules of a crossing ask for that few rules do: how packets are
 * normalised, and that the side is bound. A function of its own, to save stack. */
__noinline int create_keep_rare(struct scratch *s, __u32 index, __u32 out, __u32 side)
{
	const struct crossing *cr;
	struct state *st = state_get(index);

	if (!s || !st)
		return 0;
	cr = out ? &s->out : &s->in;
	state_scrub_add(st, index, cr, side);
	if (states_bound && cr->flags & CROSSING_BOUND && cr->ifindex)
		bound_set(st, index, side == STATE_OUT, cr->ifindex);
	return 0;
}

/* The same if there is anything to keep. out: the crossing; side: of the state. */
static __always_inline void create_keep(struct scratch *s, __u32 index, int out, __u8 side)
{
	const struct crossing *cr = out ? &s->out : &s->in;

	if (cr->scrub | cr->min_ttl | cr->max_mss || (states_bound && cr->flags & CROSSING_BOUND))
		create_keep_rare(s, index, out, side);
}

/* Keeps the limiters that count a state. */
static __always_inline void create_limiters(__u32 index, __u32 limiters)
{
	struct limited *kept = limited_get(index);

	if (kept)
		kept->limiters = limiters;
}

/* Fills a NEW state, except for what depends on the reply's port, which may still
 * change. */
static __always_inline void create_fill(struct state *st, __u32 index, struct scratch *s, __u8 flags, int wscale)
{
	const struct packet *p = &s->packet;
	int in, out;

	create_course(&st->forth, &p->tuple);
	create_course(&st->back, &s->tuple);
	/* found by a mark of this packet, which the next may not have */
	if (!p->mark || s->nexthop < NEXTHOP_FIRST || s->chosen)
		st->forth.nexthop = s->nexthop;
	st->forth.nexthop_generation = s->generation;
	if (!(flags & STATE_IN))
		st->back.nexthop = NEXTHOP_LOCAL; /* for replies to the box's own packets */
	st->path = s->path;
	st->entered = s->chosen ? KEPT_ROUTE(0) : 0;
	if (s->reply_nexthop) {
		st->back.nexthop = s->reply_nexthop;
		st->entered |= KEPT_ROUTE(1);
	}
	if (s->out.route == ROUTES_DIVERT_REPLY && !(flags & STATE_IN) && !(s->out.flags & (CROSSING_RDR | CROSSING_NAT)))
		st->entered |= KEPT_ROUTE(1);
	st->tag = create_tag(s, flags);
	st->rule_in = flags & STATE_IN ? s->in.rule : 0;
	st->rule_out = flags & STATE_OUT ? s->out.rule : 0;
	st->created = shared.now;
	st->check_at = shared.now;
	st->phase = create_phase(p);
	st->flags = flags;
	create_flow(&st->flow_forth);
	create_flow(&st->flow_back);
	if (s->endpoint.stage != ENDPOINT_NOT)
		st->flow_forth.flags = FLOW_MAPPED;
	in = (flags & (STATE_IN | STATE_EVALUATE_IN)) == STATE_IN;
	out = (flags & (STATE_OUT | STATE_EVALUATE_OUT)) == STATE_OUT;
	state_qos_fill(st, in ? &s->in : 0, out ? &s->out : 0);
	if (in)
		create_keep(s, index, 0, STATE_IN);
	if (out)
		create_keep(s, index, 1, STATE_OUT);
	log_fill(st, s, flags);
	rule_mark_fill(st, &s->in, &s->out);
	if (flows_exported && ((in ? s->in.flags : 0) | (out ? s->out.flags : 0)) & CROSSING_EXPORTED)
		st->flow_back.flags |= FLOW_EXPORTED;
	*state_limits(st) = s->limit.word;
	if (limiters_defined && s->limit.limiting)
		create_limiters(index, s->limit.limiting);
	st->flow_forth.packets = 1;
	st->flow_forth.bytes = p->length;
	if (p->tuple.proto == IPPROTO_TCP)
		create_tcp(&st->flow_forth, p, wscale);
	else
		st->flow_forth.peer = PEER_SYN_SENT;
}

/* Fills in what a crossing has taken from pools. */
static __always_inline void pool_count_crossing(struct pool_choice *of, const struct crossing *cr)
{
	of[0].states = 0;
	of[1].states = 0;
	of[2].states = 0;
	if (cr->flags & (CROSSING_NAT | CROSSING_FAMILY))
		of[0] = cr->nat;
	if (cr->flags & (CROSSING_RDR | CROSSING_FAMILY))
		of[1] = cr->rdr;
	if (cr->route != ROUTES_NOT && cr->hop.ifindex != HOP_NONE)
		of[2] = cr->hop;
}

/* Counts a state at the addresses that pools with least-states have given it. A function of its own,
 * to save stack. */
__noinline int create_pool_count(struct scratch *s, __u32 index)
{
	struct state *st = state_get(index);

	if (!s || !st)
		return 0;
	pool_count_crossing(s->use.of, &s->in);
	pool_count_crossing(s->use.of + POOL_USES / 2, &s->out);
	return pool_count_enter(st, index, &s->use);
}

/* Whether a live state that another core has just made holds the packet's tuple. Then
 * that state is used. */
static __always_inline int create_shared(struct scratch *s, __u32 number)
{
	const struct state *st = STATE_DIRECTION(number) ? 0 : lookup_verify(number, &s->packet.tuple);

	if (!st || !bound_fits(st, number, !(s->packet.flags & PACKET_EGRESS), s->packet.ifindex))
		return 0;
	s->state = number;
	return 1;
}

/* Gives up a state: its packet counts under no entry of a table, and no collector hears of it. */
static __always_inline void create_cancel(struct state *st)
{
	st->rule_in = 0;
	st->rule_out = 0;
	st->flow_back.flags &= ~FLOW_EXPORTED;
}

/* Counts the state under the limits of its rules. Returns UNDECIDED, or why it may not be
 * made. */
static __always_inline enum reason create_limited(struct scratch *s)
{
	enum reason r;

	s->limit.word = 0;
	s->limit.limiting = 0;
	if (!(s->in.limit | s->out.limit | (limiters_defined ? s->in.limiters | s->out.limiters : 0)))
		return UNDECIDED;
	s->limit.kept = !!(s->in.flags & CROSSING_KEEP_STATE) | !!(s->out.flags & CROSSING_KEEP_STATE) << 1;
	s->limit.numbers = (s->limit.kept & 1 ? s->in.limit : 0) |
			   (s->limit.kept & 2 ? (__u32)s->out.limit << LIMITS_SHIFT : 0);
	s->limit.limiters = 0;
	if (limiters_defined)
		s->limit.limiters = (s->limit.kept & 1 ? s->in.limiters : 0) | (s->limit.kept & 2 ? (__u32)s->out.limiters << 16 : 0);
	if (!(s->limit.numbers | s->limit.limiters))
		return UNDECIDED;
	s->limit.source.addr = s->packet.tuple.src;
	s->limit.source.zone = s->packet.tuple.zone;
	r = limit_enter(&s->limit);
	if (limiters_defined && r == UNDECIDED && s->limit.limiters) {
		r = limit_enter_limiters(&s->limit);
		if (r != UNDECIDED)
			limit_leave(&s->limit);
	}
	return r;
}

/* create_state() without its limits. If s->limit.word or s->endpoint.stage is not 0 afterwards,
 * the state does not exist. */
static __always_inline enum reason create_in_table(struct scratch *s, __u8 flags, int wscale, int own)
{
	__u32 index, owner = 0;
	struct state *st;
	__u64 hash;
	enum reason r;

	if (!alloc_count())
		return REASON_STATE_LIMIT;
	hash = tuple_hash(&s->packet.tuple);
	index = alloc_take(hash, create_random(s));
	st = state_get(index);
	if (!index || !st) {
		__sync_fetch_and_add(&shared.states_released, 1);
		return REASON_STATE_LIMIT;
	}
	/* without this, each locked instruction would wait for all writes before it */
	touch_lines(st);
	create_fill(st, index, s, flags, wscale);
	r = create_reserve_reply(s, STATE_NUMBER(index, 1), own, &owner);
	if (r != UNDECIDED) {
		create_cancel(st);
		alloc_free(st);
		/* owner ^ 1: the other direction of the state that has the reply's tuple */
		return r == REASON_TUPLE_TAKEN && create_shared(s, owner ^ 1) ? UNDECIDED : r;
	}
	if (!create_is_mirror(st)) {
		st->flags |= STATE_NAT;
		create_csum_diffs(st);
	}
	if (least_states)
		create_pool_count(s, index);
	s->limit.word = 0; /* it is the state's from now on */
	if (s->endpoint.stage == ENDPOINT_FIRST)
		endpoint_publish(s, st);
	s->endpoint.stage = ENDPOINT_NOT; /* likewise */
	s->limit.limiting = 0;
	__sync_lock_test_and_set(&st->status, STATUS_LIVE);
	r = tuples_enter(STATE_NUMBER(index, 0), hash, &owner);
	s->state = STATE_NUMBER(index, 0);
	if (r == UNDECIDED) {
		st->entered |= KEPT_ENTERED;
		s->made = 1;
		return UNDECIDED;
	}
	create_cancel(st);
	state_kill(st, index); /* the garbage collection removes the reply's tuple */
	return r == REASON_TUPLE_TAKEN && create_shared(s, owner) ? UNDECIDED : r;
}

/* Whether the source has one address and port outside for all destinations. */
static __always_inline int create_is_mapped(const struct scratch *s)
{
	return s->packet.tuple.proto == IPPROTO_UDP && s->out.endpoint &&
	       (s->out.flags & (CROSSING_NAT | CROSSING_NAT_STATIC)) == CROSSING_NAT;
}

/*
 * Makes the state of s->packet. create_choose_reply() has chosen the reply's tuple; a port
 * that is taken is replaced here. s->path is the rule path. Returns UNDECIDED and the number in
 * s->state, or the reason to drop. s->state may be another core's.
 */
__noinline enum reason create_state(struct scratch *s, __u8 flags, int wscale, int own)
{
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	s->endpoint.stage = ENDPOINT_NOT;
	r = create_limited(s);
	if (r != UNDECIDED)
		return r;
	if (create_is_mapped(s))
		r = endpoint_begin(s);
	if (r == UNDECIDED)
		r = create_in_table(s, flags, wscale, own);
	if (s->limit.word)
		limit_leave(&s->limit);
	if (s->endpoint.stage != ENDPOINT_NOT)
		endpoint_cancel(s);
	return r;
}

/* Whether a message expects no reply, and so makes no state; or a fragment is for itself. */
static __always_inline int create_is_oneway(const struct packet *p)
{
	int reply;

	if (p->fragment == FRAGMENT_LATER)
		return 1;
	return icmp_is(p->family, p->tuple.proto) &&
	       icmp_query(p->family, p->icmp_type, &reply) < 0;
}

static __always_inline int create_wanted(const struct scratch *s)
{
	if (create_is_oneway(&s->packet))
		return 0;
	return s->in.flags & (CROSSING_KEEP_STATE | CROSSING_RDR | CROSSING_NAT) ||
	       s->out.flags & (CROSSING_KEEP_STATE | CROSSING_RDR | CROSSING_NAT);
}

/* Returns STATE_* of a new state; crossed: the crossings that were due. */
static __always_inline __u8 create_flags(const struct scratch *s, __u8 crossed, int skip_in, int skip_out)
{
	__u8 flags = crossed;

	if (crossed & STATE_IN && !skip_in && !(s->in.flags & CROSSING_KEEP_STATE))
		flags |= STATE_EVALUATE_IN;
	if (crossed & STATE_OUT && !skip_out && !(s->out.flags & CROSSING_KEEP_STATE))
		flags |= STATE_EVALUATE_OUT;
	/* a translation needs its state, whatever the rule says */
	if (s->in.flags & (CROSSING_RDR | CROSSING_NAT))
		flags &= ~STATE_EVALUATE_IN;
	if (s->out.flags & (CROSSING_RDR | CROSSING_NAT))
		flags &= ~STATE_EVALUATE_OUT;
	if ((!(crossed & STATE_IN) || skip_in || s->in.flags & CROSSING_ALLOW_OPTIONS) &&
	    (!(crossed & STATE_OUT) || skip_out || s->out.flags & CROSSING_ALLOW_OPTIONS))
		flags |= STATE_OPTIONS;
	if ((s->in.flags | s->out.flags) & CROSSING_RATED || crossing_copies(&s->in) || crossing_copies(&s->out))
		flags |= STATE_LOG;
	return flags | log_flag(s, flags);
}

/* Counts a state under the rules that made it. */
static __always_inline void create_count(const struct scratch *s, __u8 crossed)
{
	if (crossed & STATE_IN && s->in.flags & CROSSING_KEEP_STATE)
		match_count_state(s->in.rule);
	if (crossed & STATE_OUT && s->out.flags & CROSSING_KEEP_STATE)
		match_count_state(s->out.rule);
}

/* Lets packets of a direction of the live state s->state cross here from now on, by the
 * rules of the in or the out crossing. */
static __always_inline void create_add_side(struct state *st, struct scratch *s, int out, __u8 side)
{
	const struct crossing *cr = out ? &s->out : &s->in;

	log_add_side(st, cr, side);
	state_qos_add_side(st, cr, side);
	if (flows_exported && cr->flags & CROSSING_EXPORTED)
		st->flow_back.flags |= FLOW_EXPORTED;
	create_keep(s, STATE_INDEX(s->state), out, side);
	st->flags |= side;
}

#endif
