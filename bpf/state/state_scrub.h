/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How a state's packets are normalised. pf keeps this in a state for each side, and both
 * apply to both directions. Here the state has one set: what either side asks for, the
 * smaller MSS, and a least TTL for each side. FreeBSD's scrub rules choose packets by
 * their direction, so a state under them has a set for each direction (KEPT_WAYS). A side
 * that keeps no state evaluates its rules for each packet; nothing of them is kept.
 *
 * The type of service that packets get is beside the state (state/extra.h). A state that has
 * one has KEPT_MIN_TTL, too, so that no packet of another state pays for it.
 */
#ifndef WEIR_STATE_STATE_SCRUB_H
#define WEIR_STATE_STATE_SCRUB_H

#include "packet/packet.h"
#include "rules/crossing.h"
#include "state/extra.h"
#include "state/normal.h"

/* The form of flow_back.mark: the MSS, and the least TTLs of the in and the out side. With
 * KEPT_WAYS it is that of direction 1, and flow_forth.limits that of direction 0: the TTLs
 * are for where such packets come in, and where they leave. */
#define SCRUB_VALUES(mss, in, out) ((__u32)(mss) << 16 | (__u32)(in) << 8 | (__u32)(out))
#define SCRUB_MSS(values)	   ((values) >> 16)

/* Returns the smaller of two values, of which 0 is none. */
static __always_inline __u16 scrub_least(__u16 a, __u16 b)
{
	return a && (a < b || !b) ? a : b;
}

/* Returns the values with the TTLs exchanged. */
static __always_inline __u32 scrub_exchanged(__u32 values)
{
	return (values & 0xffff0000) | (values >> 8 & 0xff) | (values & 0xff) << 8;
}

/* Returns what either of two values asks for: the smaller MSS, the larger TTLs. */
static __always_inline __u32 scrub_both(__u32 a, __u32 b)
{
	__u32 in = a >> 8 & 0xff, out = a & 0xff;

	if (in < (b >> 8 & 0xff))
		in = b >> 8 & 0xff;
	if (out < (b & 0xff))
		out = b & 0xff;
	return SCRUB_VALUES(scrub_least(SCRUB_MSS(a), SCRUB_MSS(b)), in, out);
}

/* Returns the values for packets of a direction, with the TTLs for where they come in and
 * where they leave. */
static __always_inline __u32 state_scrub_values(const struct state *st, __u32 d)
{
	__u32 values = st->flow_back.mark;

	if (!(st->qos & (KEPT_MIN_TTL | KEPT_MAX_MSS)))
		return 0;
	if (st->entered & KEPT_WAYS)
		return d & 1 ? values : st->flow_forth.limits;
	return d & 1 ? scrub_exchanged(values) : values;
}

static __always_inline __u16 state_max_mss(const struct state *st, __u32 d)
{
	return st->qos & KEPT_MAX_MSS ? SCRUB_MSS(state_scrub_values(st, d)) : 0;
}

/* Returns the words of types of service: of a packet that gets the one and then the other.
 * Setting one leaves the bits of congestion. */
static __always_inline __u32 scrub_tos_then(__u32 first, __u32 then)
{
	return then & SCRUB_TOS ? (then & SCRUB_TOS_ALL) | (first & SCRUB_TOS_ECN) : first & SCRUB_TOS_ALL;
}

/* Returns the word of the type of service that packets of a direction get; 0: none. */
static __always_inline __u32 state_tos(const struct state *st, __u32 index, __u32 d)
{
	const struct extra *e = st->entered & KEPT_TOS(d) ? extra_get(index) : 0;

	return e ? SCRUB_SET_TOS(e->tos[d & 1]) : 0;
}

/* Sets it. */
static __always_inline void state_tos_set(struct state *st, __u32 index, __u32 d, __u32 word)
{
	struct extra *e = word & SCRUB_TOS ? extra_get(index) : 0;

	if (!e)
		return;
	e->tos[d & 1] = SCRUB_TOS_OF(word);
	st->entered |= KEPT_TOS(d);
}

/* Adds what the rules of a side set: last for packets that leave there, first for those
 * that come in. */
static __always_inline void state_tos_add(struct state *st, __u32 index, const struct crossing *cr, __u8 side)
{
	__u32 word = SCRUB_SET_TOS(cr->set_tos), leaving = side == STATE_IN;

	state_tos_set(st, index, leaving, scrub_tos_then(state_tos(st, index, leaving), word));
	state_tos_set(st, index, !leaving, scrub_tos_then(word, state_tos(st, index, !leaving)));
}

/* Returns a word with the larger TTLs of two. */
static __always_inline __u32 scrub_raised(__u32 word, __u32 ttls)
{
	__u32 enters = SCRUB_ENTERS(word), leaves = SCRUB_LEAVES(word);

	if (enters < SCRUB_ENTERS(ttls))
		enters = SCRUB_ENTERS(ttls);
	if (leaves < SCRUB_LEAVES(ttls))
		leaves = SCRUB_LEAVES(ttls);
	return (word & ~SCRUB_TTLS(0xff, 0xff)) | SCRUB_TTLS(enters, leaves);
}

/* Returns packet.scrub for packets of a state's number. */
static __always_inline __u32 state_scrub(const struct state *st, __u32 number)
{
	__u32 word = 0, values, d = STATE_DIRECTION(number);

	if (st->qos & KEPT_NO_DF & KEPT_OF(d))
		word |= SCRUB_NO_DF;
	if (st->qos & KEPT_RANDOM_ID & KEPT_OF(d))
		word |= SCRUB_RANDOM_ID;
	if (st->qos & KEPT_MIN_TTL) {
		values = state_scrub_values(st, d);
		word |= SCRUB_TTLS(values >> 8 & 0xff, values & 0xff) | state_tos(st, STATE_INDEX(number), d);
		if (normal_is(st))
			word = scrub_raised(word, normal_ttls(st, STATE_INDEX(number), d));
	}
	return word;
}

/* Notes which values are valid. */
static __always_inline void state_scrub_note(struct state *st, __u32 values, __u8 add)
{
	if (values & 0xffff)
		add |= KEPT_MIN_TTL;
	if (SCRUB_MSS(values))
		add |= KEPT_MAX_MSS;
	st->qos |= add;
}

/* Adds what the rules of a side ask for, for packets of both directions. */
static __always_inline void state_scrub_add(struct state *st, __u32 index, const struct crossing *cr, __u8 side)
{
	__u32 forth, add;
	__u8 bits = 0;

	if (!cr->scrub && !cr->min_ttl && !cr->max_mss)
		return;
	add = side == STATE_IN ? SCRUB_VALUES(cr->max_mss, cr->min_ttl, 0) : SCRUB_VALUES(cr->max_mss, 0, cr->min_ttl);
	forth = scrub_both(state_scrub_values(st, 0), add);
	if (st->entered & KEPT_WAYS) {
		st->flow_back.mark = scrub_both(state_scrub_values(st, 1), scrub_exchanged(add));
		st->flow_forth.limits = forth;
	} else {
		st->flow_back.mark = forth;
	}
	if (cr->scrub & SCRUB_NO_DF)
		bits |= KEPT_NO_DF;
	if (cr->scrub & SCRUB_RANDOM_ID)
		bits |= KEPT_RANDOM_ID;
	if (cr->scrub & SCRUB_TOS) {
		bits |= KEPT_MIN_TTL;
		state_tos_add(st, index, cr, side);
	}
	state_scrub_note(st, forth, bits);
}

/* What scrub rules of FreeBSD's ask for packets of one direction. */
struct scrub_way {
	__u32 values; /* SCRUB_VALUES(), with the TTLs for where they come in and leave */
	__u32 flags;  /* SCRUB_* */
	__u32 tos;    /* the word of the type of service, by these rules and all others */
};

/* Gives a new state a set for each direction, with what each of them adds. */
static __always_inline void state_scrub_ways(struct state *st, __u32 index, const struct scrub_way *forth,
					     const struct scrub_way *back)
{
	__u32 a = scrub_both(state_scrub_values(st, 0), forth->values);
	__u32 b = scrub_both(state_scrub_values(st, 1), back->values);
	__u8 bits = 0;

	if (forth->flags & SCRUB_NO_DF)
		bits |= KEPT_NO_DF & KEPT_OF(0);
	if (back->flags & SCRUB_NO_DF)
		bits |= KEPT_NO_DF & KEPT_OF(1);
	if (forth->flags & SCRUB_RANDOM_ID)
		bits |= KEPT_RANDOM_ID & KEPT_OF(0);
	if (back->flags & SCRUB_RANDOM_ID)
		bits |= KEPT_RANDOM_ID & KEPT_OF(1);
	st->flow_forth.limits = a;
	st->flow_back.mark = b;
	st->entered |= KEPT_WAYS;
	state_tos_set(st, index, 0, forth->tos);
	state_tos_set(st, index, 1, back->tos);
	if (st->entered & (KEPT_TOS(0) | KEPT_TOS(1)))
		bits |= KEPT_MIN_TTL;
	state_scrub_note(st, (a | b), bits);
}

#endif
