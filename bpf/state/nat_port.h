/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The search for a free port of a translation: from a random port on, one after the
 * other. */
#ifndef WEIR_STATE_NAT_PORT_H
#define WEIR_STATE_NAT_PORT_H

#include "packet/icmp.h"
#include "path/scratch.h"
#include "state/endpoint_choose.h"
#include "state/tuples.h"

/* The port range of nat-to without one: pf's. */
#define NAT_LOW	 50001
#define NAT_HIGH 65535

/* Returns the port that is tried next. */
static __always_inline __u16 nat_port_next(const struct nat_port_search *search)
{
	__u32 at = search->at, block = search->block & 15;

	if (search->stride)
		at = (at >> block << (search->stride & 15)) + (at & ((1 << block) - 1));
	return search->low + at;
}

/* Reserves the reply's tuple with the search's present port. */
static __always_inline enum reason nat_port_enter(struct scratch *s, struct tuple *t)
{
	enum reason r;
	__u32 owner;

	if (!endpoint_claim(s, t))
		return REASON_TUPLE_TAKEN;
	r = tuples_enter(s->search.number, tuple_hash(t), &owner);
	if (r != UNDECIDED)
		endpoint_unclaim(s);
	return r;
}

/*
 * Tries the search's present port; 1 ends the search. The search is in the scratch: on
 * the stack the verifier would walk every value of it.
 */
static __always_inline long nat_port_try(struct scratch *s)
{
	struct nat_port_search *search = &s->search;
	struct state *st = state_get(STATE_INDEX(search->number));
	struct tuple *t;
	enum reason r;

	if (!st)
		return 1;
	t = &st->back.tuple;
	t->dport = bpf_htons(nat_port_next(search));
	if (t->dport == s->packet.tuple.dport && tuple_equal(t, &s->packet.tuple))
		r = REASON_TUPLE_TAKEN; /* owned by itself: its replies would look like it */
	else
		r = nat_port_enter(s, t);
	search->reason = r;
	/* with REASON_TUPLE_ERROR, another port's bucket may have room */
	if (r != REASON_TUPLE_TAKEN && r != REASON_STATE_BUSY && r != REASON_TUPLE_ERROR)
		return 1;
	search->at = search->at == search->span ? 0 : search->at + 1;
	return 0;
}

static long nat_port_step(__u32 n, void *data)
{
	struct scratch *s = scratch_get();

	(void)data;
	return !s || n >= s->search.span || nat_port_try(s);
}

static __always_inline __u32 create_random(struct scratch *s)
{
	__u32 x = s->random;

	if (!x)
		x = (random_seed ? random_seed + bpf_get_smp_processor_id() : bpf_get_prandom_u32()) | 1;
	s->random = alloc_random(x);
	return s->random;
}

/* Returns how many of the ports follow the first. */
static __always_inline __u16 nat_port_span(const struct nat_ports *ports)
{
	__u32 stride = ports->stride & 15, block = ports->block & 15;

	if (!stride)
		return ports->high > ports->low ? ports->high - ports->low : 0;
	return ((((ports->high - ports->low) >> stride) + 1) << block) - 1;
}

/* Begins a search for a port at a random one. */
static __always_inline void nat_port_begin(struct scratch *s, const struct nat_ports *ports)
{
	struct nat_port_search *search = &s->search;

	search->low = ports->low;
	search->stride = ports->stride;
	search->block = ports->block;
	search->span = nat_port_span(ports);
	search->at = create_random(s) % ((__u32)search->span + 1);
}

/* Notes what a connection gets. */
static __always_inline void nat_port_note(struct scratch *s)
{
	s->nat_last.addr = s->out.nat.addr;
	s->nat_last.ifindex = s->packet.ifindex;
	s->nat_last.family = s->packet.family;
}

/* Turns a reply's tuple into the one that it has if the packet is translated as the last one
 * was. The port is the one that nat_port_begin() will choose. */
static __always_inline void nat_port_expect(const struct scratch *s, const struct packet *p, struct tuple *reply)
{
	struct nat_port_search search = s->search;

	if (s->nat_last.ifindex != p->ifindex || s->nat_last.family != p->family || !tuple_translates_ports(p->tuple.proto))
		return;
	search.at = alloc_random(s->random) % ((__u32)search.span + 1);
	reply->dst = s->nat_last.addr;
	reply->dport = bpf_htons(nat_port_next(&search));
}

/* Reserves the reply's tuple of a state with the first free port, from the search's
 * present one on. */
static __always_inline enum reason nat_port_reserve(struct scratch *s, __u32 number)
{
	struct nat_port_search *search = &s->search;

	search->number = number;
	/* mostly the first is free, and no call is needed */
	if (!nat_port_try(s))
		bpf_loop(NAT_PORT_TRIES - 1, nat_port_step, 0, 0);
	if (search->reason == REASON_TUPLE_TAKEN || search->reason == REASON_STATE_BUSY)
		return REASON_NAT_PORTS;
	return search->reason;
}

static __always_inline int nat_port_has(const struct packet *p)
{
	int reply;

	if (tuple_translates_ports(p->tuple.proto))
		return 1;
	return icmp_is(p->family, p->tuple.proto) &&
	       icmp_query(p->family, p->icmp_type, &reply) >= 0 && !reply;
}

/* Whether the rules need another source port. */
static __always_inline int nat_port_wanted(const struct scratch *s)
{
	return s->out.flags & CROSSING_NAT && nat_port_has(&s->packet) && !(s->out.flags & CROSSING_NAT_STATIC);
}

#endif
