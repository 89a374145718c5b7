/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Making a state: a free slot, the reservation of both tuples, a port for NAT.
 *
 * The order is what makes it safe without a lock: the slot is filled while it
 * is NEW; the reply's tuple is entered, which reserves the port; then the slot goes LIVE; then the first tuple is entered. Whoever loses
 * the last step undoes its own and uses the winner's.
 */
#ifndef WEIR_CREATE_H
#define WEIR_CREATE_H

#include "csum.h"
#include "lookup.h"
#include "release.h"
#include "scratch.h"
#include "track.h"

/* Port range of nat-to without one: pf's. */
#define NAT_LOW	 50001
#define NAT_HIGH 65535

static __always_inline __u32 random_next(struct scratch *s)
{
	__u32 x = s->random;

	if (!x)
		x = (random_seed ? random_seed + bpf_get_smp_processor_id() : bpf_get_prandom_u32()) | 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	s->random = x;
	return x;
}

/* Counts a state more, unless set limit states is reached. */
static __always_inline int state_count(void)
{
	__u32 made = __sync_fetch_and_add(&shared.states_made, 1) + 1;

	if (made - shared.states_released <= max_states)
		return 1;
	__sync_fetch_and_add(&shared.states_made, -1);
	return 0;
}

/* Takes the slot that s->slot names if it is free; else the next is named. */
static __always_inline int slot_try(struct scratch *s)
{
	struct state *st = state_get(s->slot);

	if (st && __sync_val_compare_and_swap(&st->status, STATUS_FREE, STATUS_NEW) == STATUS_FREE)
		return 1;
	s->slot = s->slot >= state_slots ? 1 : s->slot + 1;
	return 0;
}

static long slot_step(__u32 n, void *data)
{
	struct scratch *s = scratch_get();

	(void)data;
	return !s || n == SLOT_TRIES - 2 || slot_try(s); /* the last step gives up */
}

/* A free slot for the state of s->packet, NEW from now on; 0: none. */
static __always_inline __u32 slot_take(struct scratch *s)
{
	s->slot = state_home(tuple_hash(&s->packet.tuple));
	/* mostly the home is free: without a call */
	if (slot_try(s))
		return s->slot;
	return bpf_loop(SLOT_TRIES - 1, slot_step, 0, 0) < SLOT_TRIES - 1 ? s->slot : 0;
}

/* The owner of a tuple we want: gives way if it is dead or has expired. */
static __always_inline int owner_yields(__u32 owner)
{
	struct state *s = state_get(STATE_INDEX(owner));

	if (!s || s->status == STATUS_NEW)
		return 0;
	if (s->status == STATUS_LIVE) {
		if (!state_expired(s, STATE_DIRECTION(owner)))
			return 0;
		state_kill(s);
	}
	return 1;
}

/*
 * Enters the tuple of s->entry.number, which stands in its state already.
 * UNDECIDED: done. REASON_TUPLE_TAKEN: a live state owns it, s->entry.owner is its
 * number. REASON_STATE_BUSY: somebody else is at the bucket.
 */
static __noinline enum reason tuple_try(struct scratch *s)
{
	__u32 number = s->entry.number, version, old;
	struct state *st = state_get(STATE_INDEX(number));
	struct bucket *b;
	struct tuple *t;
	enum reason r;
	__u64 hash;

	if (!st)
		return REASON_INTERNAL;
	t = &state_course(st, STATE_DIRECTION(number))->tuple;
	hash = tuple_hash(t);
	b = bucket_get(hash);
	if (!b)
		return REASON_INTERNAL;
	version = bucket_version(b);
	old = tuple_owner(b, t, hash);
	if (old && !owner_yields(old)) {
		s->entry.owner = old;
		return REASON_TUPLE_TAKEN;
	}
	if (!bucket_lock(b, version))
		return REASON_STATE_BUSY;
	r = old ? bucket_replace(b, t, hash, old, number) : bucket_add(b, t, hash, number);
	bucket_unlock(b, version);
	return r;
}

static long tuple_step(__u32 n, void *data)
{
	struct scratch *s = scratch_get();

	(void)n;
	(void)data;
	if (!s)
		return 1;
	s->entry.reason = tuple_try(s);
	return s->entry.reason != REASON_STATE_BUSY;
}

/* tuple_try(), again while others are at the bucket. */
static __always_inline enum reason tuple_enter(struct scratch *s, __u32 number)
{
	enum reason r;

	s->entry.number = number;
	r = tuple_try(s);
	if (r != REASON_STATE_BUSY)
		return r;
	bpf_loop(ENTER_TRIES, tuple_step, 0, 0);
	return s->entry.reason;
}

/*
 * Tries the port at which the search stands; 1 ends it. What it works on lies in
 * the scratch: on the stack the verifier would walk every value of it.
 */
static __always_inline long port_try(struct scratch *s)
{
	struct port_search *search = &s->search;
	struct state *st = state_get(STATE_INDEX(search->number));
	struct tuple *t;
	enum reason r;

	if (!st)
		return 1;
	t = &st->back.tuple;
	t->dport = bpf_htons(search->low + search->at);
	if (t->dport == s->packet.tuple.dport && tuple_equal(t, &s->packet.tuple))
		r = REASON_TUPLE_TAKEN; /* by itself: its answers would look like it */
	else
		r = tuple_enter(s, search->number);
	search->reason = r;
	if (r != REASON_TUPLE_TAKEN && r != REASON_STATE_BUSY)
		return 1;
	search->at = search->at == search->span ? 0 : search->at + 1;
	return 0;
}

static long port_step(__u32 n, void *data)
{
	struct scratch *s = scratch_get();

	(void)data;
	return !s || n >= s->search.span || port_try(s);
}

/* Reserves the reply's tuple with the first free port of low..high, from a random one on. */
static __always_inline enum reason port_reserve(struct scratch *s, __u32 number, __u16 low, __u16 high)
{
	struct port_search *search;

	if (!s || low > high)
		return REASON_INTERNAL;
	search = &s->search;
	search->number = number;
	search->low = low;
	search->span = high - low;
	search->at = random_next(s) % ((__u32)search->span + 1);
	/* mostly the first is free: without a call */
	if (!port_try(s))
		bpf_loop(NAT_PORT_TRIES - 1, port_step, 0, 0);
	if (search->reason == REASON_TUPLE_TAKEN || search->reason == REASON_STATE_BUSY)
		return REASON_NAT_PORTS;
	return search->reason;
}

static __always_inline int has_ports(const struct packet *p)
{
	int reply;

	if (p->tuple.proto == IPPROTO_TCP || p->tuple.proto == IPPROTO_UDP)
		return 1;
	return is_icmp(p->family, p->tuple.proto) &&
	       icmp_query(p->family, p->icmp_type, &reply) >= 0 && !reply;
}

/* Reserves the reply's tuple, with another source port where the rules or a
 * collision ask for one. own: the box's own packet. */
static __always_inline enum reason reply_reserve(struct scratch *s, __u32 number, int own)
{
	const struct packet *p = &s->packet;
	const struct judge *out = &s->out;
	enum reason r;

	if (out->flags & JUDGE_NAT && has_ports(p) && !(out->flags & JUDGE_NAT_STATIC))
		return port_reserve(s, number, out->nat_low ? out->nat_low : NAT_LOW,
				    out->nat_high ? out->nat_high : NAT_HIGH);
	r = tuple_enter(s, number);
	if (r == REASON_TUPLE_TAKEN && own && has_ports(p) && !(out->flags & JUDGE_NAT_STATIC))
		return port_reserve(s, number, NAT_LOW, NAT_HIGH);
	return r;
}

static __always_inline void flow_start(struct flow *f)
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

static __always_inline void course_start(struct course *c, const struct tuple *t)
{
	c->tuple = *t;
	c->nexthop = NEXTHOP_NONE;
	c->csum_addr = 0;
	c->csum_port = 0;
	c->nexthop_generation = 0;
}

/* The first segment sets what its end may send and what it allows the other. */
static __always_inline void tcp_start(struct flow *f, const struct packet *p, int wscale)
{
	__u32 end = p->seq + p->payload + (p->tcp_flags & TCP_SYN ? 1 : 0) +
		    (p->tcp_flags & TCP_FIN ? 1 : 0);

	f->seqlo = end;
	f->seqhi = end;
	f->max_win = at_least_1(p->window);
	f->flags = FLOW_SEEN;
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

static __always_inline __u8 first_phase(const struct packet *p)
{
	if (p->tuple.proto == IPPROTO_TCP)
		return PHASE_TCP_FIRST;
	if (p->tuple.proto == IPPROTO_UDP)
		return PHASE_UDP_FIRST;
	return is_icmp(p->family, p->tuple.proto) ? PHASE_ICMP_FIRST : PHASE_OTHER_FIRST;
}

/* Differences for both directions, from the tuples as they now stand. */
static __always_inline void courses_differ(struct state *st)
{
	struct tuple *f = &st->forth.tuple, *b = &st->back.tuple;

	st->forth.csum_addr = csum_fold(csum_addr_diff(&f->src, &b->dst) + csum_addr_diff(&f->dst, &b->src));
	st->forth.csum_port = csum_fold(csum_word_diff(f->sport, b->dport) + csum_word_diff(f->dport, b->sport));
	st->back.csum_addr = csum_fold(csum_addr_diff(&b->src, &f->dst) + csum_addr_diff(&b->dst, &f->src));
	st->back.csum_port = csum_fold(csum_word_diff(b->sport, f->dport) + csum_word_diff(b->dport, f->sport));
}

static __always_inline int tuples_mirror(const struct state *st)
{
	struct tuple r;

	tuple_reverse(&r, &st->forth.tuple);
	return tuple_equal(&r, &st->back.tuple);
}

/* The tag that the side which keeps state gives to all packets of the connection,
 * where the other side judges them. */
static __always_inline __u16 kept_tag(const struct scratch *s, __u8 flags)
{
	if (flags & STATE_JUDGE_OUT)
		return s->in.tag;
	if (flags & STATE_JUDGE_IN && s->out.tag != s->in.tag)
		return s->out.tag;
	return 0;
}

/* Fills a NEW slot but for the reply's port and what depends on it. */
static __always_inline void state_fill(struct state *st, const struct scratch *s, __u8 flags, int wscale)
{
	const struct packet *p = &s->packet;

	course_start(&st->forth, &p->tuple);
	course_start(&st->back, &s->tuple);
	st->forth.nexthop = s->nexthop;
	st->forth.nexthop_generation = shared.route_generation;
	if (!(flags & STATE_IN))
		st->back.nexthop = NEXTHOP_LOCAL; /* answers to the box's own packets */
	st->path = s->path;
	st->entered = 0;
	st->tag = kept_tag(s, flags);
	st->rule_in = flags & STATE_IN ? s->in.rule : 0;
	st->rule_out = flags & STATE_OUT ? s->out.rule : 0;
	st->created = shared.now;
	st->check_at = shared.now;
	st->phase = first_phase(p);
	st->flags = flags;
	st->layout = STATE_LAYOUT;
	flow_start(&st->flow[0]);
	flow_start(&st->flow[1]);
	st->flow[0].packets = 1;
	st->flow[0].bytes = p->length;
	if (p->tuple.proto == IPPROTO_TCP)
		tcp_start(&st->flow[0], p, wscale);
	else
		st->flow[0].peer = PEER_SYN_SENT;
}

/*
 * Makes the state of s->packet; s->tuple holds the reply's tuple (its port may
 * still change), s->path where it counts. Returns UNDECIDED and the number in
 * s->state, or the reason to drop. s->state may be another core's.
 */
__noinline enum reason state_create(struct scratch *s, __u8 flags, int wscale, int own)
{
	__u32 index;
	struct state *st;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	if (!state_count())
		return REASON_STATE_LIMIT;
	index = slot_take(s);
	st = state_get(index);
	if (!index || !st) {
		__sync_fetch_and_add(&shared.states_released, 1);
		return REASON_STATE_LIMIT;
	}
	state_fill(st, s, flags, wscale);
	r = reply_reserve(s, STATE_NUMBER(index, 1), own);
	if (r != UNDECIDED) {
		slot_return(st);
		return r;
	}
	if (!tuples_mirror(st)) {
		st->flags |= STATE_NAT;
		courses_differ(st);
	}
	__sync_lock_test_and_set(&st->status, STATUS_LIVE);
	r = tuple_enter(s, STATE_NUMBER(index, 0));
	s->state = STATE_NUMBER(index, 0);
	if (r == UNDECIDED) {
		st->entered = 1;
		return UNDECIDED;
	}
	state_kill(st);
	tuple_release(&st->back.tuple, STATE_NUMBER(index, 1));
	if (r != REASON_TUPLE_TAKEN)
		return r;
	/* The same connection on another core, a moment earlier: use its state. */
	s->state = s->entry.owner;
	return STATE_DIRECTION(s->state) ? REASON_TUPLE_TAKEN : UNDECIDED;
}

#endif
