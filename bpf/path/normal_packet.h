/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * scrub (reassemble tcp): what packets of such connections go through. All of them take the
 * tail call to the slow path. docs/packet-path.md, 16.
 */
#ifndef WEIR_PATH_NORMAL_PACKET_H
#define WEIR_PATH_NORMAL_PACKET_H

#include "packet/tcp_stamp.h"
#include "path/scratch.h"
#include "path/scrub_list.h"
#include "state/alloc.h"
#include "state/limit.h"
#include "state/normal.h"

/* Whether a packet's timestamps fit its state in s->state, which is tracked next. */
static __always_inline enum reason normal_check(hook_ctx *ctx, struct scratch *s, const struct state *st)
{
	struct normal *n = normal_get(st, STATE_INDEX(s->state));

	if (!n)
		return UNDECIDED;
	stamp_read(ctx, s);
	return normal_fits(st, STATE_DIRECTION(s->state), &s->packet, &s->stamp, n) ? UNDECIDED : REASON_BAD_TIMESTAMP;
}

/* Notes what it has, after it was tracked. */
static __always_inline void normal_follow(struct scratch *s, const struct state *st)
{
	struct normal *n = normal_get(st, STATE_INDEX(s->state));

	if (n)
		normal_update(STATE_DIRECTION(s->state), &s->packet, &s->stamp, n);
}

/* Whether the rules of a crossing ask for it, or FreeBSD's list for replies there. */
static __always_inline int normal_asked(const struct crossing *cr, const struct scrub_listed *replies)
{
	return ((cr->scrub | cr->listed.flags) & SCRUB_TCP ? 1 : 0) | (replies->flags & SCRUB_TCP ? 2 : 0);
}

/*
 * Gives the state that the packet has made what scrub (reassemble tcp) needs, if a side of it
 * asks for that. As in pf, what is asked for direction 0 is asked for its replies, too. UNDECIDED: done,
 * or there is nothing to do.
 */
__noinline enum reason normal_begin_state(hook_ctx *ctx, struct scratch *s)
{
	__u8 forth = 0, back = 0, lists;
	struct scrub_listed none = {};
	const struct interface *i;
	struct normal *n;
	struct state *st;
	__u32 index;
	int asked;

	if (!s)
		return REASON_INTERNAL;
	index = STATE_INDEX(s->state);
	st = state_get(index);
	i = interface_get(s->packet.ifindex);
	if (!st || !i || s->packet.tuple.proto != IPPROTO_TCP || limits_are_sloppy(st))
		return UNDECIDED;
	if (i->flags & INTERFACE_LO) /* each packet meets its state twice there */
		return UNDECIDED;
	lists = s->in.scrubs || s->out.scrubs;
	if (s->in.evaluated && scrub_list_side(st, 0)) {
		asked = normal_asked(&s->in, lists ? &s->listed[0] : &none);
		if (asked & 1)
			forth |= NORMAL_ENTERS;
		if (asked)
			back |= NORMAL_LEAVES;
	}
	if (s->out.evaluated && scrub_list_side(st, 1)) {
		asked = normal_asked(&s->out, lists ? &s->listed[1] : &none);
		if (asked & 1)
			forth |= NORMAL_LEAVES;
		if (asked)
			back |= NORMAL_ENTERS;
	}
	if (!(forth | back))
		return UNDECIDED;
	if (normal_make(st, index, forth, back)) {
		state_kill(st, index);
		return REASON_STATE_LIMIT;
	}
	stamp_read(ctx, s);
	n = normal_get(st, index);
	if (n)
		normal_update(0, &s->packet, &s->stamp, n);
	return UNDECIDED;
}

/* The same if the packet has made a state. r: what has become of it. */
static __always_inline enum reason normal_begin_made(hook_ctx *ctx, struct scratch *s, enum reason r)
{
	return reassembles_tcp && r == UNDECIDED && s->made ? normal_begin_state(ctx, s) : r;
}

#endif
