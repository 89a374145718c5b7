/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The mapping of the state that is being made: state/endpoint.h. */
#ifndef WEIR_STATE_ENDPOINT_CHOOSE_H
#define WEIR_STATE_ENDPOINT_CHOOSE_H

#include <linux/errno.h>

#include "path/scratch.h"
#include "state/endpoint.h"

static long endpoint_wait_step(__u32 n, void *data)
{
	struct scratch *s = scratch_get();
	const struct endpoint *e;

	(void)n;
	(void)data;
	e = s ? bpf_map_lookup_elem(&endpoints, &s->endpoint.source) : 0;
	return !e || *(volatile __be16 *)&e->port;
}

/* Takes over what the source has. */
static __always_inline enum reason endpoint_use(struct scratch *s, struct endpoint *e)
{
	struct endpoint_work *w = &s->endpoint;

	if (endpoint_join(e))
		return REASON_STATE_BUSY;
	w->stage = ENDPOINT_KNOWN;
	if (!*(volatile __be16 *)&e->port) /* another core chooses it now */
		bpf_loop(ENDPOINT_TRIES, endpoint_wait_step, 0, 0);
	if (!*(volatile __be16 *)&e->port)
		return REASON_STATE_BUSY;
	s->out.nat.addr = e->addr;
	s->tuple.dst = e->addr;
	s->tuple.dport = e->port;
	s->out.flags |= CROSSING_NAT_STATIC; /* it has its port */
	s->reply_hash = tuple_hash(&s->tuple);
	return UNDECIDED;
}

/* Gives up a mapping to an address that the pool has no more. Its states go on with it. */
static __always_inline void endpoint_forget_stale(struct scratch *s, struct endpoint *e)
{
	if (s->out.endpoint == ENDPOINT_ONE && *(volatile __be16 *)&e->port && !addr_equal(&e->addr, &s->out.nat.addr))
		endpoint_remove(&s->endpoint.source, e);
}

/*
 * Begins a state of a rule with endpoint-independent: it takes its source's address and port
 * over, or is to choose them. UNDECIDED: done. REASON_STATE_BUSY: another core makes or ends
 * the mapping right now. REASON_NAT_PORTS: there is no room for one more.
 */
__noinline enum reason endpoint_begin(struct scratch *s)
{
	struct endpoint_work *w;
	struct endpoint *e;
	long error;

	if (!s)
		return REASON_INTERNAL;
	w = &s->endpoint;
	endpoint_source(&w->source, &s->packet.tuple, &s->out.nat.addr);
	e = bpf_map_lookup_elem(&endpoints, &w->source);
	if (e)
		endpoint_forget_stale(s, e);
	w->value.port = 0;
	w->value.states = 1;
	error = bpf_map_update_elem(&endpoints, &w->source, &w->value, BPF_NOEXIST);
	if (!error) {
		w->stage = ENDPOINT_FIRST;
		return UNDECIDED;
	}
	e = bpf_map_lookup_elem(&endpoints, &w->source);
	return e ? endpoint_use(s, e) : error == -EEXIST ? REASON_STATE_BUSY : REASON_NAT_PORTS;
}

/* Keeps other sources from choosing an address and port; 0: one has them. */
static __always_inline int endpoint_claim(struct scratch *s, const struct tuple *reply)
{
	struct endpoint_work *w = &s->endpoint;

	if (w->stage != ENDPOINT_FIRST)
		return 1;
	w->outside = (struct endpoint_key){.addr = reply->dst, .port = reply->dport, .zone = w->source.zone, .outside = ENDPOINT_OUTSIDE};
	return !bpf_map_update_elem(&endpoints, &w->outside, &w->value, BPF_NOEXIST);
}

static __always_inline void endpoint_unclaim(struct scratch *s)
{
	if (s->endpoint.stage == ENDPOINT_FIRST)
		bpf_map_delete_elem(&endpoints, &s->endpoint.outside);
}

/* Tells the other cores what the state has chosen. */
__noinline int endpoint_publish(struct scratch *s, const struct state *st)
{
	struct endpoint *e;

	if (!s || !st)
		return 0;
	e = bpf_map_lookup_elem(&endpoints, &s->endpoint.source);
	if (!e)
		return 0;
	e->addr = st->back.tuple.dst;
	__sync_val_compare_and_swap(&e->states, 0, 0); /* a barrier: the address is there before the port */
	*(volatile __be16 *)&e->port = st->back.tuple.dport;
	return 0;
}

/* Gives up the mapping of a state that is not made after all. */
__noinline int endpoint_cancel(struct scratch *s)
{
	struct endpoint *e;

	if (!s)
		return 0;
	e = bpf_map_lookup_elem(&endpoints, &s->endpoint.source);
	if (e)
		endpoint_leave(&s->endpoint.source, e);
	return 0;
}

#endif
