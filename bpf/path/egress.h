/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * TCX egress: what the box itself sends is judged here; what the stack forwards
 * for us is completed; what it forwards on its own is dropped.
 */
#ifndef WEIR_PATH_EGRESS_H
#define WEIR_PATH_EGRESS_H

#include "path/miss.h"
#include "path/ingress.h"
#include "packet/icmp_error.h"
#include "path/fast.h"

/* Translates what the box sends in a state, both sides of it. */
static __always_inline int leave_translate(hook_ctx *ctx, const struct packet *p, const struct state *st,
					   __u32 number)
{
	const struct tuple *other = STATE_DIRECTION(number) ? &st->forth.tuple : &st->back.tuple;
	struct headers h;

	if (!(st->flags & STATE_NAT))
		return 0;
	if (packet_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	return translate_to(ctx, &h, p, &other->dst, &other->src, other->dport, other->sport);
}

/* The end of the way of a packet that the box sends in a state. */
static __always_inline int leave(hook_ctx *ctx, const struct packet *p, const struct interface *i,
				 const struct state *st, __u32 number, enum reason why)
{
	count_path(st->path, p->length);
	if (leave_translate(ctx, p, st, number))
		return finish(i, REASON_INTERNAL, p->length);
	return finish(i, why, p->length);
}

/*
 * A packet that was handed up to be forwarded: its destination is translated
 * already; its source is now. It was judged and counted at its entry.
 */
static __noinline int leave_marked(hook_ctx *ctx, struct packet *p)
{
	const struct interface *i;
	const struct tuple *own, *other, *t;
	struct headers h;
	struct state *st;
	__u32 mark = ctx->mark;

	if (!p)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	if (!(mark & MARK_STATE))
		return finish(i, REASON_MARKED, p->length);
	st = state_get(mark & MARK_STATE);
	if (!st || st->status == STATUS_FREE || st->status == STATUS_NEW)
		return finish(i, REASON_GUARD, p->length);
	if (!(st->flags & STATE_NAT))
		return finish(i, REASON_MARKED, p->length);
	t = &p->tuple;
	own = mark & MARK_REPLY ? &st->back.tuple : &st->forth.tuple;
	other = mark & MARK_REPLY ? &st->forth.tuple : &st->back.tuple;
	/* It may have waited for long, and the slot be another connection's now. */
	if (!addr_equal(&own->src, &t->src) || !addr_equal(&other->src, &t->dst))
		return finish(i, REASON_GUARD, p->length);
	if (packet_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) ||
	    translate_to(ctx, &h, p, &other->dst, &t->dst, other->dport, t->dport))
		return finish(i, REASON_INTERNAL, p->length);
	return finish(i, REASON_MARKED, p->length);
}

/* Records of what the box sends in a state, by the rules that log all. */
static __always_inline void log_leaving(hook_ctx *ctx, struct scratch *s, const struct state *st)
{
	__u32 d = STATE_DIRECTION(s->state);

	if (!(st->flags & STATE_LOG) || !is_recording(RING_LOG))
		return;
	tuple_leaving(&s->tuple, st, d);
	s->leaves = 1;
	log_side(ctx, s, crossing_needed(d, 0), DIRECTION_OUT, s->packet.ifindex);
}

/* A parsed packet of the box itself. */
static __always_inline int hit_out(hook_ctx *ctx, void *slots, struct packet *p, const struct interface *i)
{
	struct state *st;
	__u32 number, d;
	int slot = slot_of(p);

	if (slot >= 0)
		return hand_over(ctx, slots, p, i, slot, 0, 0);
	st = hit_state(p, 0, &number);
	if (!st)
		return hand_over(ctx, slots, p, i, SLOT_MISS, number, 0);
	if (is_rare(p) || p->fragment != FRAGMENT_NONE || st->flags & STATE_LOG)
		return hand_over(ctx, slots, p, i, SLOT_TURN, number, 0);
	d = STATE_DIRECTION(number);
	if (hit_track(st, d, p) != UNDECIDED)
		return finish(i, REASON_STATE_MISMATCH, p->length);
	return leave(ctx, p, i, st, number, REASON_STATE);
}

/* Implicit passes and rules out. UNDECIDED: the packet may leave. */
__noinline enum reason judge_own(struct scratch *s)
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
	if (is_implicit(p, i, 0))
		return REASON_IMPLICIT;
	judge_ask(&s->in, p, DIRECTION_IN, 0, 0);
	judge_ask(&s->out, p, DIRECTION_OUT, p->ifindex, 0);
	s->skip_in = 0;
	s->skip_out = i->flags & INTERFACE_SKIP;
	r = crossing(&s->out, p->flags & PACKET_OPTIONS, &why);
	s->why = why;
	return r;
}

/* As admit_state(), for what the box sends. */
__noinline enum reason own_state(hook_ctx *ctx, struct scratch *s)
{
	struct state *st;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	s->path = path_index(s, STATE_OUT);
	if (s->state) {
		st = state_get(STATE_INDEX(s->state));
		promise_withdraw(STATE_INDEX(s->state));
		if (st && s->out.flags & JUDGE_KEEP_STATE)
			state_widen(st, &s->out, crossing_needed(STATE_DIRECTION(s->state), 0));
		s->state = 0;
	} else if (wants_state(s)) {
		s->tuple = s->packet.tuple;
		source_follow(ctx, s);
		reply_tuple(s);
		r = state_create(s, state_flags(s, STATE_OUT, 0, s->skip_out), tcp_wscale(ctx, s), 1);
		if (r != UNDECIDED)
			return r;
		count_made(s, STATE_OUT);
	}
	return s->packet.fragment == FRAGMENT_FIRST ? fragment_remember(s) : UNDECIDED;
}

static __always_inline int miss_out(hook_ctx *ctx)
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
	r = judge_own(s);
	if (r == UNDECIDED)
		r = own_state(ctx, s);
	log_packet(ctx, s, r);
	if (r != UNDECIDED)
		return refuse(ctx, s, i, r, STATE_OUT);
	st = s->state ? state_get(STATE_INDEX(s->state)) : 0;
	if (st)
		return leave(ctx, &s->packet, i, st, s->state, s->why);
	count_path(s->path, s->packet.length);
	return finish(i, s->why, s->packet.length);
}

static __always_inline int turn_out(hook_ctx *ctx, void *slots)
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
	r = turn_track(ctx, s);
	if (r == REASON_LAST_PASS) {
		bpf_tail_call(ctx, slots, SLOT_MISS);
		r = REASON_INTERNAL;
	}
	if (r == UNDECIDED && s->packet.fragment == FRAGMENT_FIRST)
		r = fragment_remember(s);
	st = state_get(STATE_INDEX(s->state));
	if (r != UNDECIDED || !st)
		return finish(i, r == UNDECIDED ? REASON_INTERNAL : r, s->packet.length);
	log_leaving(ctx, s, st);
	return leave(ctx, &s->packet, i, st, s->state, REASON_STATE);
}

static __always_inline int fragment_out(hook_ctx *ctx)
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
	if (!s->state) {
		count_path(s->path, s->packet.length);
		return finish(i, REASON_RULE, s->packet.length);
	}
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return finish(i, REASON_INTERNAL, s->packet.length);
	track_count(st, STATE_DIRECTION(s->state), &s->packet);
	log_leaving(ctx, s, st);
	return leave(ctx, &s->packet, i, st, s->state, REASON_STATE);
}

static __always_inline int error_out(hook_ctx *ctx, void *slots)
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
	r = error_find(ctx, s, 0);
	if (r != UNDECIDED)
		return finish(i, r, s->packet.length);
	if (!s->state) {
		bpf_tail_call(ctx, slots, SLOT_MISS);
		return finish(i, REASON_INTERNAL, s->packet.length);
	}
	st = state_get(STATE_INDEX(s->state));
	if (!st || (!s->quoted_forth && error_rewrite(ctx, s, st)))
		return finish(i, REASON_INTERNAL, s->packet.length);
	log_error(ctx, s, st, DIRECTION_OUT, s->packet.ifindex);
	count_path(st->path, s->packet.length);
	return finish(i, REASON_STATE, s->packet.length);
}

#endif
