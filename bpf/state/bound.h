/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * States that are bound to interfaces (keep state (if-bound)). pf has a state for each
 * crossing, which a packet finds only at the interface where it was made. Here each side of
 * a state may be bound: a packet that crosses there at another interface finds no state,
 * and meets the rules. docs/packet-path.md, 17.
 *
 * A side knows two interfaces: the one where it was made, and the last other one whose
 * rules have passed a packet with state. So a client that moves keeps its connection, and
 * nobody who sends packets with its address at a third place can take the first one away.
 *
 * Without such rules none of this is in the programs (states_bound).
 */
#ifndef WEIR_STATE_BOUND_H
#define WEIR_STATE_BOUND_H

#include "state/extra.h"

/* Returns the side at which a packet of a direction crosses: 0 in, 1 out. */
static __always_inline __u32 bound_side(__u32 direction, int in)
{
	return (direction & 1) == !!in;
}

static __always_inline int bound_is_side(const struct state *st, __u32 side)
{
	return states_bound && st->entered & STATES_BOUND_IN << side;
}

/* Whether an index of the state may be crossed at the interface by its side. */
static __always_inline int bound_takes(const struct state *st, __u32 index, __u32 side, __u32 ifindex)
{
	const struct extra *e;

	if (!bound_is_side(st, side))
		return 1;
	e = extra_get(index);
	return e && (e->bound[side & 1][0] == ifindex || e->bound[side & 1][1] == ifindex);
}

/* Whether a packet that comes in, or leaves, at an interface may do so by its state. */
static __always_inline int bound_fits(const struct state *st, __u32 number, int in, __u32 ifindex)
{
	return bound_takes(st, STATE_INDEX(number), bound_side(STATE_DIRECTION(number), in), ifindex) ||
	       (!in && st->entered & KEPT_ROUTE(STATE_DIRECTION(number))); /* a rule says where they leave */
}

/* Binds a side of a state to the interface of its crossing. */
static __always_inline void bound_set(struct state *st, __u32 index, __u32 side, __u32 ifindex)
{
	struct extra *e = extra_get(index);

	if (!e)
		return;
	e->bound[side & 1][0] = ifindex;
	e->bound[side & 1][1] = ifindex;
	st->entered |= STATES_BOUND_IN << side;
}

/* Lets a bound side take packets at another interface, too. */
static __always_inline void bound_add(struct state *st, __u32 index, __u32 side, __u32 ifindex)
{
	struct extra *e = bound_is_side(st, side) ? extra_get(index) : 0;

	if (e)
		e->bound[side & 1][1] = ifindex;
}

/* Returns the interface that hints of the state are for (state/hint.h); 0: any. */
static __always_inline __u32 bound_hint(const struct state *st, __u32 index)
{
	const struct extra *e;

	if (!bound_is_side(st, 0))
		return 0;
	e = extra_get(index);
	return e ? e->bound[0][0] : 0;
}

#endif
