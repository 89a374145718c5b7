/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * divert-packet: packets of a state go to a program of the box before they go on. The program reads them from a
 * tun device and writes back what shall go on. It gets each packet with the addresses of
 * one side of the state, as copies do (path/copy.h), and the state has the device's next hop as
 * that of its copies, with FLOW_PROGRAM. TCX ingress of the device finds the state again and
 * sends the packet on. docs/packet-path.md, 21.
 *
 * Cost when no rule says divert-packet or dup-to: none (copies).
 */
#ifndef WEIR_PATH_DIVERT_PACKET_H
#define WEIR_PATH_DIVERT_PACKET_H

#include "path/copy.h"
#include "path/fast.h"

/* How far a packet has come (scratch.diverted). */
enum diverted {
	DIVERTED_NOT,  /* no program has had it */
	DIVERTED_CAME, /* that of the side where it came in has had it, if there is one */
	DIVERTED_BOTH, /* all have */
};

/* Whether packets that cross one side of a state go to a program. */
static __always_inline int divert_packet_asked(const struct state *st, __u32 side)
{
	return (side & 1 ? st->flow_back.flags : st->flow_forth.flags) & FLOW_PROGRAM;
}

/* Returns the device of a side's program; 0: it has none. */
static __always_inline __u32 divert_packet_device(const struct extra *extra, __u32 side)
{
	return nexthop_get(extra->copy[side & 1])->ifindex;
}

#if HOOK_IS_XDP
static __always_inline int divert_packet(hook_ctx *ctx, struct scratch *s, const struct state *st)
{
	(void)ctx;
	(void)s;
	(void)st;
	return -1;
}
#else

/* Returns the side whose program is to have a packet of s->state next. < 0: none is. */
__noinline int divert_packet_side(const struct scratch *s)
{
	const struct extra *extra;
	const struct state *st;
	__u32 came, leaves;

	if (!s)
		return -1;
	st = state_get(STATE_INDEX(s->state));
	extra = extra_get(STATE_INDEX(s->state));
	if (!st || !extra)
		return -1;
	came = STATE_DIRECTION(s->state);
	leaves = came ^ 1;
	if (s->diverted == DIVERTED_NOT && divert_packet_asked(st, came))
		return came;
	if (s->diverted == DIVERTED_BOTH || !divert_packet_asked(st, leaves))
		return -1;
	/* a program that both sides name gets the packet once: it could not be told from which side it comes back */
	if (divert_packet_asked(st, came) && divert_packet_device(extra, came) == divert_packet_device(extra, leaves))
		return -1;
	return leaves;
}

/* Sends a packet of s->state to the program of a side. */
__noinline int divert_packet_send(hook_ctx *ctx, struct scratch *s, __u32 side)
{
	const struct interface *i, *device;
	const struct extra *extra;
	struct packet *p;
	struct state *st;
	__u32 ifindex;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(s->state));
	extra = extra_get(STATE_INDEX(s->state));
	if (!i || !st || !extra)
		return HOOK_DROP;
	ifindex = divert_packet_device(extra, side);
	device = interface_get(ifindex);
	if (!device || !(device->flags & INTERFACE_READ)) {
		/* the next one meets the rules, which know the device that there is then */
		if (fast_is_rare(p) || p->tuple.proto != IPPROTO_TCP)
			state_kill(st, STATE_INDEX(s->state));
		return count_verdict(i, REASON_DIVERT, p->length);
	}
	if (p->fragment != FRAGMENT_NONE) /* a program gets whole packets */
		return count_verdict(i, REASON_DIVERT, p->length);
	if (st->flags & STATE_NAT && side != STATE_DIRECTION(s->state)) {
		state_leaving_tuple(&s->tuple, st, STATE_DIRECTION(s->state));
		if (copy_turn(ctx, p, &s->tuple))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	count_reason(i, REASON_UP_PROGRAM, p->length);
	return hook_redirect(ctx, ifindex);
}

/* Sends a packet of s->state to the program that is to have it next. < 0: none is. */
static __always_inline int divert_packet(hook_ctx *ctx, struct scratch *s, const struct state *st)
{
	int side;

	if (!copies || !copy_is_asked(st) || !(divert_packet_asked(st, 0) || divert_packet_asked(st, 1)))
		return -1;
	side = divert_packet_side(s);
	return side < 0 ? -1 : divert_packet_send(ctx, s, side);
}

/* Whether the program of a side has the device by which a packet has come. */
static __always_inline int divert_packet_is_from(__u32 number, __u32 side, __u32 ifindex)
{
	const struct state *st = state_get(STATE_INDEX(number));
	const struct extra *extra = extra_get(STATE_INDEX(number));

	return st && extra && st->status == STATUS_LIVE && !state_expired(st, STATE_DIRECTION(number)) &&
	       divert_packet_asked(st, side) && divert_packet_device(extra, side) == ifindex;
}

/* Finds the state of a packet that a program has written: s->state and s->diverted. < 0: it
 * belongs to none whose packets go there. */
__noinline int divert_packet_find(struct scratch *s)
{
	__u32 number = 0, ifindex;

	if (!s)
		return -1;
	ifindex = s->packet.ifindex;
	if (lookup_state(&s->packet.tuple, &number)) {
		s->state = number;
		s->diverted = DIVERTED_CAME;
		if (divert_packet_is_from(number, STATE_DIRECTION(number), ifindex))
			return 0;
		s->diverted = DIVERTED_BOTH;
		if (divert_packet_is_from(number, STATE_DIRECTION(number) ^ 1, ifindex))
			return 0;
	}
	s->diverted = DIVERTED_BOTH;
	tuple_reverse(&s->tuple, &s->packet.tuple);
	if (!lookup_state(&s->tuple, &number))
		return -1;
	s->state = number ^ 1;
	return divert_packet_is_from(s->state, STATE_DIRECTION(s->state) ^ 1, ifindex) ? 0 : -1;
}

/* Gives a packet that leaves a state the addresses again that it came with. */
__noinline int divert_packet_turn(hook_ctx *ctx, struct scratch *s)
{
	struct state *st;

	if (!s)
		return -1;
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return -1;
	if (s->diverted != DIVERTED_BOTH || !(st->flags & STATE_NAT))
		return 0;
	s->tuple = state_course(st, STATE_DIRECTION(s->state))->tuple;
	return tuple_equal(&s->tuple, &s->packet.tuple) ? 0 : copy_turn(ctx, &s->packet, &s->tuple);
}
#endif

#endif
