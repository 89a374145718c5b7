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
#include "path/policy.h"
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

static __always_inline int copy_send_now(hook_ctx *ctx, struct scratch *s)
{
	(void)ctx;
	(void)s;
	return 0;
}
#else

/* Returns the next hop of the copies that a crossing's rule asks for; 0: there is none. */
__noinline __u32 copy_hop(hook_ctx *ctx, struct scratch *s, __u32 out)
{
	const struct crossing *cr;
	struct route_query q;

	if (!s)
		return 0;
	cr = out ? &s->out : &s->in;
	if (cr->hop.ifindex == HOP_NONE)
		return 0;
	route_choice_fill(&q, &s->packet, hop_gateway(&cr->hop, &s->packet.tuple.dst), cr->hop.ifindex);
	route_choose(ctx, &q);
	return q.number;
}

/* Keeps in the state s->state where copies of one side's packets go. If the rule keeps no state, its
 * packets are copied one by one. */
__noinline int copy_note_side(struct scratch *s, __u32 out, __u32 nexthop)
{
	const struct crossing *cr;
	struct extra *extra;
	struct state *st;

	if (!s)
		return 0;
	cr = out ? &s->out : &s->in;
	st = state_get(STATE_INDEX(s->state));
	extra = extra_get(STATE_INDEX(s->state));
	if (!st || !extra || (!nexthop && cr->flags & CROSSING_KEEP_STATE))
		return 0;
	extra->copy[out & 1] = nexthop;
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
		copy_note_side(s, 0, s->in.flags & CROSSING_KEEP_STATE ? copy_hop(ctx, s, 0) : 0);
	if (crossing_copies(&s->out))
		copy_note_side(s, 1, s->out.flags & CROSSING_KEEP_STATE ? copy_hop(ctx, s, 1) : 0);
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

/* Sends a copy to a next hop, as the packet is on the wire where one side of its state is. number: of
 * the state; 0: it has none. < 0: the frame is gone. */
__noinline int copy_send_to(hook_ctx *ctx, struct packet *p, __u32 number, __u32 side, __u32 nexthop)
{
	const struct state *st = number ? state_get(STATE_INDEX(number)) : 0;
	__u32 d = STATE_DIRECTION(number), ifindex;
	struct scratch *s = scratch_get();
	struct tuple came;

	if (!p || !s || !nexthop)
		return 0;
	ifindex = nexthop_get(nexthop)->ifindex;
	if (!interface_is_present(interface_get(ifindex)))
		return 0;
	if (!st || !(st->flags & STATE_NAT) || side == d) {
		if (!shared.policies || !policy_keeps(p, &p->tuple, ifindex, p->mark))
			hook_copy(ctx, ifindex, nexthop);
		return 0;
	}
	came = p->tuple;
	state_leaving_tuple(&s->tuple, st, d);
	if (shared.policies && policy_keeps(p, &s->tuple, ifindex, p->mark))
		return 0;
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
	const struct extra *extra;
	const struct state *st;

	if (!p)
		return 0;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(number));
	extra = extra_get(STATE_INDEX(number));
	if (!i || !st || !extra || i->flags & INTERFACE_L3)
		return 0;
	if (copy_is_sent(&st->flow_forth) && copy_send_to(ctx, p, number, 0, extra->copy[0]))
		return -1;
	return copy_is_sent(&st->flow_back) ? copy_send_to(ctx, p, number, 1, extra->copy[1]) : 0;
}

/* The same if there are any. Afterwards the frame's headers must be loaded again. */
static __always_inline int copy_send(hook_ctx *ctx, struct packet *p, const struct state *st, __u32 number)
{
	return copies && copy_is_asked(st) ? copy_send_all(ctx, p, number) : 0;
}

/* Whether the rule of a crossing that keeps no state asks for a copy of this packet. */
static __always_inline int copy_is_due(const struct crossing *cr)
{
	return cr->evaluated && cr->route == ROUTES_DUP && !(cr->flags & CROSSING_KEEP_STATE);
}

/* Sends such a copy. A packet comes in at the side of its direction, and leaves at the other. */
static __always_inline int copy_send_by(hook_ctx *ctx, struct scratch *s, __u32 out)
{
	__u32 nexthop = copy_hop(ctx, s, out);

	return copy_send_to(ctx, &s->packet, s->state, STATE_DIRECTION(s->state) ^ out, nexthop);
}

/* Sends the copies of a packet for the rules without state that it has just met. < 0: the frame is
 * gone. Afterwards the frame's headers must be loaded again. */
static __always_inline int copy_send_now(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *i;

	if (!copies || !(copy_is_due(&s->in) || copy_is_due(&s->out)))
		return 0;
	i = interface_get(s->packet.ifindex);
	if (!i || i->flags & INTERFACE_L3)
		return 0;
	if (copy_is_due(&s->in) && copy_send_by(ctx, s, 0))
		return -1;
	return copy_is_due(&s->out) ? copy_send_by(ctx, s, 1) : 0;
}
#endif

#endif
