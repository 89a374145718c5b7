/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How a state's packets are normalised. pf keeps this in a state for each side, and both
 * apply to both directions. Here the state has one set: what either side asks for, the
 * smaller MSS, and a least TTL for each side. A side that keeps no state evaluates its
 * rules for each packet; nothing of them is kept.
 */
#ifndef WEIR_STATE_STATE_SCRUB_H
#define WEIR_STATE_STATE_SCRUB_H

#include "packet/packet.h"
#include "rules/crossing.h"
#include "state/state.h"

/* The form of flow_back.mark: the MSS, and the least TTLs of the in and the out side. */
#define SCRUB_VALUES(mss, in, out) ((__u32)(mss) << 16 | (__u32)(in) << 8 | (__u32)(out))

/* Returns the smaller of two values, of which 0 is none. */
static __always_inline __u16 scrub_least(__u16 a, __u16 b)
{
	return a && (a < b || !b) ? a : b;
}

static __always_inline __u16 state_max_mss(const struct state *st)
{
	return st->qos & KEPT_MAX_MSS ? st->flow_back.mark >> 16 : 0;
}

/* Returns packet.scrub for packets of a direction. */
static __always_inline __u32 state_scrub(const struct state *st, __u32 d)
{
	__u32 word = 0, in, out;

	if (st->qos & KEPT_NO_DF & KEPT_OF(d))
		word |= SCRUB_NO_DF;
	if (st->qos & KEPT_RANDOM_ID & KEPT_OF(d))
		word |= SCRUB_RANDOM_ID;
	if (st->qos & KEPT_MIN_TTL) {
		in = st->flow_back.mark >> 8 & 0xff;
		out = st->flow_back.mark & 0xff;
		word |= d & 1 ? SCRUB_TTLS(out, in) : SCRUB_TTLS(in, out);
	}
	return word;
}

/* Adds what the rules of a side ask for. */
static __always_inline void state_scrub_add(struct state *st, const struct crossing *cr, __u8 side)
{
	__u32 ttls = st->qos & KEPT_MIN_TTL ? st->flow_back.mark & 0xffff : 0;
	__u16 mss = scrub_least(state_max_mss(st), cr->max_mss);
	__u8 add = 0;

	if (!cr->scrub && !cr->min_ttl && !cr->max_mss)
		return;
	ttls |= side == STATE_IN ? SCRUB_VALUES(0, cr->min_ttl, 0) : SCRUB_VALUES(0, 0, cr->min_ttl);
	st->flow_back.mark = SCRUB_VALUES(mss, 0, 0) | ttls;
	if (cr->scrub & SCRUB_NO_DF)
		add |= KEPT_NO_DF;
	if (cr->scrub & SCRUB_RANDOM_ID)
		add |= KEPT_RANDOM_ID;
	if (ttls)
		add |= KEPT_MIN_TTL;
	if (mss)
		add |= KEPT_MAX_MSS;
	st->qos |= add;
}

#endif
