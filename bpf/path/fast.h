/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What every packet of a known connection goes through at its entry, and the
 * hand-over of all others to the programs behind the tail call.
 */
#ifndef WEIR_PATH_FAST_H
#define WEIR_PATH_FAST_H

#include "hook/tail.h"
#include "path/output.h"
#include "path/scratch.h"
#include "route/nexthop.h"
#include "state/lookup.h"
#include "state/track.h"

/* Leaves the packet in the scratch and goes on behind the tail call. */
static __always_inline int fast_tail(hook_ctx *ctx, void *tails, const struct packet *p,
			    const struct interface *i, __u32 tail, __u32 number, __u8 tracked)
{
	struct scratch *s = scratch_get();

	if (s) {
		s->packet = *p;
		s->state = number;
		s->path = 0;
		s->why = REASON_STATE;
		s->tracked = tracked;
		s->evaluate = 0;
		s->nexthop = 0;
		bpf_tail_call(ctx, tails, tail);
	}
	return count_verdict(i, REASON_INTERNAL, p->length);
}

/* Finds the state that carries the packet here. NULL: a miss, with *number 0, or
 * that of a state which lives but may not cross here. */
static __always_inline struct state *fast_state(const struct packet *p, int in, __u32 *number)
{
	struct state *st = lookup_state(&p->tuple, number);

	if (!st) {
		*number = 0;
		return 0;
	}
	if (state_expired(st, STATE_DIRECTION(*number))) {
		state_kill(st, STATE_INDEX(*number));
		*number = 0;
		return 0;
	}
	return st->flags & state_crossing(STATE_DIRECTION(*number), in) ? st : 0;
}

/* Updates the state by the packet. UNDECIDED, or why it is dropped. */
static __always_inline enum reason fast_track(struct state *st, __u32 d, const struct packet *p)
{
	if (p->tuple.proto == IPPROTO_TCP) {
		if (track_tcp(st, d, p, -1) != UNDECIDED)
			return REASON_STATE_MISMATCH;
	} else {
		track_other(st, d, p);
	}
	track_count(st, d, p);
	return UNDECIDED;
}

/* Packets that even a known connection does not carry in the hit program. */
static __always_inline int fast_is_rare(const struct packet *p)
{
	return p->tuple.proto == IPPROTO_TCP && p->tcp_flags & TCP_SYN;
}

/* The slot of a packet whose state is not that of its own tuple; < 0: none. */
static __always_inline int fast_tail_of(const struct packet *p)
{
	if (p->fragment == FRAGMENT_LATER)
		return TAIL_FRAGMENT;
	if (p->flags & PACKET_ICMP_ERROR && p->fragment == FRAGMENT_NONE)
		return TAIL_ERROR;
	return -1;
}

/* A parsed packet at XDP or TCX ingress. */
static __always_inline int fast_in(hook_ctx *ctx, void *tails, struct packet *p, struct headers *h,
			 const struct interface *i)
{
	const struct course *c;
	struct nexthop *n;
	struct state *st;
	__u32 number, d;
	int tail = fast_tail_of(p);

	if (tail >= 0)
		return fast_tail(ctx, tails, p, i, tail, 0, 0);
	st = fast_state(p, 1, &number);
	if (!st)
		return fast_tail(ctx, tails, p, i, TAIL_MISS, number, 0);
	if (fast_is_rare(p))
		return fast_tail(ctx, tails, p, i, TAIL_SLOW, number, 0);
	d = STATE_DIRECTION(number);
	if (fast_track(st, d, p) != UNDECIDED)
		return count_verdict(i, REASON_STATE_MISMATCH, p->length);
	if (shared.prefetch)
		hint_renew(number);
	c = state_course(st, d);
	n = nexthop_get(c->nexthop);
	if (c->nexthop < NEXTHOP_FIRST || nexthop_stale(c, n) || p->fragment != FRAGMENT_NONE ||
	    st->flags & (STATE_EVALUATE_IN | STATE_EVALUATE_OUT | STATE_LOG))
		return fast_tail(ctx, tails, p, i, TAIL_SLOW, number, 1);
	count_path(st->path, p->length);
	return output(ctx, h, p, i, st, number, n, REASON_STATE);
}

#endif
