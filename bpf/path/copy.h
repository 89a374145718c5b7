/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copies for dup-to. A state has the next hop of the copies of each of its sides. XDP cannot
 * copy a frame: it leaves all packets of such a state, and all that meet the rules if one of these has
 * dup-to, to TCX ingress as they came. TCX gives the copy to ingress of the next hop's interface, with a
 * note, and the program there has the kernel send it. docs/packet-path.md, 18.
 */
#ifndef WEIR_PATH_COPY_H
#define WEIR_PATH_COPY_H

#include "packet/rewrite.h"
#include "path/scratch.h"
#include "route/route.h"
#include "state/extra.h"

static __always_inline int copy_is_asked(const struct state *st)
{
	return st->flags & STATE_LOG && (st->flow_forth.flags | st->flow_back.flags) & FLOW_COPIED;
}

/* Whether XDP leaves the packet of a live state to TCX. */
static __always_inline int copy_is_later_in(__u32 number)
{
	const struct state *st = HOOK_IS_XDP ? state_get(STATE_INDEX(number)) : 0;

	return st && copy_is_asked(st);
}

/* Whether no program has the device open that a rule with divert-packet names. */
static __always_inline int copy_lacks_program(const struct crossing *cr)
{
	const struct interface *device;

	if (cr->route != ROUTES_PROGRAM)
		return 0;
	device = cr->hop.ifindex == HOP_NONE ? 0 : interface_get(cr->hop.ifindex);
	return !device || !(device->flags & INTERFACE_READ);
}

#if HOOK_IS_XDP
static __always_inline void copy_note(hook_ctx *ctx, struct scratch *s)
{
	(void)ctx;
	(void)s;
}

static __always_inline int copy_send(hook_ctx *ctx, struct packet *p, const struct state *st, __u32 number)
{
	(void)ctx;
	(void)p;
	(void)st;
	(void)number;
	return 0;
}
#else

/* Keeps in the state s->state where copies of one side's packets go. */
__noinline int copy_note_side(hook_ctx *ctx, struct scratch *s, __u32 out)
{
	const struct crossing *cr;
	struct route_query q;
	struct extra *extra;
	struct state *st;

	if (!s)
		return 0;
	cr = out ? &s->out : &s->in;
	st = state_get(STATE_INDEX(s->state));
	extra = extra_get(STATE_INDEX(s->state));
	if (!st || !extra || cr->hop.ifindex == HOP_NONE)
		return 0;
	route_choice_fill(&q, &s->packet, hop_gateway(&cr->hop, &s->packet.tuple.dst), cr->hop.ifindex);
	route_choose(ctx, &q);
	if (!q.number)
		return 0;
	extra->copy[out & 1] = q.number;
	state_flow(st, out)->flags |= FLOW_COPIED;
	return 0;
}

/* Notes in the state s->state which sides' packets go to programs. A function of its own, to
 * save stack. */
__noinline int copy_note_programs(struct scratch *s)
{
	struct extra *extra;
	struct state *st;

	if (!s)
		return 0;
	st = state_get(STATE_INDEX(s->state));
	extra = extra_get(STATE_INDEX(s->state));
	if (!st || !extra)
		return 0;
	if (s->in.route == ROUTES_PROGRAM) {
		extra->copy[0] = 0;
		st->flow_forth.flags |= FLOW_COPIED | FLOW_PROGRAM;
	}
	if (s->out.route == ROUTES_PROGRAM) {
		extra->copy[1] = 0;
		st->flow_back.flags |= FLOW_COPIED | FLOW_PROGRAM;
	}
	return 0;
}

/* Keeps where copies go, if the rules that have made the state ask for any. */
static __always_inline void copy_note(hook_ctx *ctx, struct scratch *s)
{
	copy_note_programs(s);
	if (crossing_copies(&s->in))
		copy_note_side(ctx, s, 0);
	if (crossing_copies(&s->out))
		copy_note_side(ctx, s, 1);
}

/* Writes other addresses and ports into a packet. < 0: the frame is gone. */
__noinline int copy_turn(hook_ctx *ctx, struct packet *p, const struct tuple *to)
{
	struct headers h;

	if (!p || !to)
		return -1;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) ||
	    rewrite_translate_to(ctx, &h, p, &to->src, &to->dst, p->fragment == FRAGMENT_LATER ? p->tuple.sport : to->sport,
				 p->fragment == FRAGMENT_LATER ? p->tuple.dport : to->dport))
		return -1;
	p->tuple.src = to->src;
	p->tuple.dst = to->dst;
	if (p->fragment != FRAGMENT_LATER) {
		p->tuple.sport = to->sport;
		p->tuple.dport = to->dport;
	}
	return 0;
}

/* Sends the copy of one side of a state, as the packet is on the wire there. */
__noinline int copy_send_side(hook_ctx *ctx, struct packet *p, __u32 number, __u32 side)
{
	const struct state *st = state_get(STATE_INDEX(number));
	const struct extra *extra = extra_get(STATE_INDEX(number));
	__u32 d = STATE_DIRECTION(number), nexthop, ifindex;
	struct scratch *s = scratch_get();
	struct tuple came;

	if (!p || !st || !extra || !s)
		return 0;
	nexthop = extra->copy[side & 1];
	ifindex = nexthop_get(nexthop)->ifindex;
	if (!interface_is_present(interface_get(ifindex)))
		return 0;
	if (!(st->flags & STATE_NAT) || side == d) {
		hook_copy(ctx, ifindex, nexthop);
		return 0;
	}
	came = p->tuple;
	state_leaving_tuple(&s->tuple, st, d);
	if (copy_turn(ctx, p, &s->tuple))
		return -1;
	hook_copy(ctx, ifindex, nexthop);
	return copy_turn(ctx, p, &came);
}

static __always_inline int copy_is_sent(const struct flow *f)
{
	return (f->flags & (FLOW_COPIED | FLOW_PROGRAM)) == FLOW_COPIED;
}

/* Sends the copies of a packet of a state. < 0: the frame is gone. A frame without an Ethernet
 * header is not copied: the other interface would not know what it is. */
__noinline int copy_send_all(hook_ctx *ctx, struct packet *p, __u32 number)
{
	const struct interface *i;
	const struct state *st;

	if (!p)
		return 0;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(number));
	if (!i || !st || i->flags & INTERFACE_L3)
		return 0;
	if (copy_is_sent(&st->flow_forth) && copy_send_side(ctx, p, number, 0))
		return -1;
	return copy_is_sent(&st->flow_back) ? copy_send_side(ctx, p, number, 1) : 0;
}

/* The same if there are any. Afterwards the frame's headers must be loaded again. */
static __always_inline int copy_send(hook_ctx *ctx, struct packet *p, const struct state *st, __u32 number)
{
	return copies && copy_is_asked(st) ? copy_send_all(ctx, p, number) : 0;
}
#endif

#endif
