/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * FreeBSD's scrub rules choose single packets: in each crossing the first rule of their
 * list that matches. The packet that makes a state meets them with all other rules. For
 * its replies they are evaluated then, too, so that no later packet meets them.
 */
#ifndef WEIR_PATH_SCRUB_LIST_H
#define WEIR_PATH_SCRUB_LIST_H

#include "path/scratch.h"
#include "path/scrub.h"
#include "rules/evaluate.h"
#include "rules/match.h"
#include "state/state_scrub.h"

static __always_inline void scrub_way_add(struct scrub_way *w, const struct scrub_listed *l, int leaves)
{
	w->values = scrub_both(w->values, leaves ? SCRUB_VALUES(l->max_mss, 0, l->min_ttl) :
						   SCRUB_VALUES(l->max_mss, l->min_ttl, 0));
	w->flags |= l->flags;
}

/* Adds the type of service that the list and the other rules of one crossing set. */
static __always_inline void scrub_way_tos(struct scrub_way *w, const struct scrub_listed *l, const struct crossing *cr)
{
	w->tos = scrub_tos_then(w->tos, scrub_word(l->flags, l->set_tos));
	w->tos = scrub_tos_then(w->tos, scrub_word(cr->scrub, cr->set_tos));
}

/* Begins the crossing of the replies of the state in s->state, at the interface where they come
 * in or leave. They meet the list as they come, and then with their destination translated
 * back. 0: no rules are evaluated there. */
__noinline int scrub_list_start(struct scratch *s, __u32 ifindex, __u8 direction)
{
	const struct interface *i = interface_get(ifindex);
	struct crossing *cr;
	struct state *st;

	if (!s)
		return 0;
	cr = &s->reply;
	st = state_get(STATE_INDEX(s->state));
	evaluate_start(cr, &s->packet, direction, ifindex, 0);
	if (!st || !i || i->flags & INTERFACE_SKIP)
		return 0;
	cr->src = st->back.tuple.src;
	cr->sport = st->back.tuple.sport;
	cr->dst = direction == DIRECTION_IN ? st->back.tuple.dst : st->forth.tuple.src;
	cr->dport = direction == DIRECTION_IN ? st->back.tuple.dport : st->forth.tuple.sport;
	return 1;
}

/* Evaluates the list for these replies. */
static __always_inline void scrub_list_reply(hook_ctx *ctx, struct scratch *s, __u32 ifindex, __u8 direction)
{
	const struct rule_set *set = rule_set_get();

	if (!scrub_list_start(s, ifindex, direction) || !set)
		return;
	if (set->asks_more & FACTS)
		s->reply.facts = fact_find(ctx, &s->reply, set->asks_more);
	if (set->asks_more & ASKS_LATE)
		evaluate_late_reply(&s->reply, set);
	match_scrub(&s->reply);
}

/* Whether a side of the state in s->state keeps what its rules say. */
static __always_inline int scrub_list_side(const struct state *st, __u32 side)
{
	return (st->flags >> side & (STATE_IN | STATE_EVALUATE_IN)) == STATE_IN;
}

/* Adds up what the list asks for, by s->listed for replies. A function of its own, to save
 * stack. */
__noinline int scrub_list_add(struct scratch *s)
{
	struct scrub_way *forth, *back;
	struct state *st;
	int in, out;

	if (!s)
		return 0;
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return 0;
	forth = &s->ways[0];
	back = &s->ways[1];
	*forth = (struct scrub_way){};
	*back = (struct scrub_way){};
	in = scrub_list_side(st, 0);
	out = scrub_list_side(st, 1);
	if (in && s->in.evaluated) {
		scrub_way_add(forth, &s->in.listed, 0);
		scrub_way_tos(forth, &s->in.listed, &s->in);
	}
	if (out && s->out.evaluated) {
		scrub_way_add(forth, &s->out.listed, 1);
		scrub_way_tos(forth, &s->out.listed, &s->out);
	}
	if (out) {
		scrub_way_add(back, &s->listed[1], 0);
		scrub_way_tos(back, &s->listed[1], &s->out);
	}
	if (in) {
		scrub_way_add(back, &s->listed[0], 1);
		scrub_way_tos(back, &s->listed[0], &s->in);
	}
	if (forth->values | forth->flags | back->values | back->flags)
		state_scrub_ways(st, STATE_INDEX(s->state), forth, back);
	return 0;
}

/* Keeps in the state that the packet has just made how the list normalises its packets
 * and their replies. */
__noinline int scrub_list_keep(hook_ctx *ctx, struct scratch *s)
{
	struct state *st;

	if (!s)
		return 0;
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return 0;
	if (scrub_list_side(st, 0)) {
		scrub_list_reply(ctx, s, s->packet.ifindex, DIRECTION_OUT);
		s->listed[0] = s->reply.listed;
	}
	if (scrub_list_side(st, 1)) {
		scrub_list_reply(ctx, s, s->out_ifindex, DIRECTION_IN);
		s->listed[1] = s->reply.listed;
	}
	return scrub_list_add(s);
}

/* Whether the list says that a fragment which comes in meets the rules for itself. No fragment
 * shows its ports here, so that those of one packet meet the same rule. */
__noinline int scrub_list_pieces(hook_ctx *ctx, struct scratch *s)
{
	const struct rule_set *set = rule_set_get();
	const struct interface *i;
	struct crossing *cr;

	if (!s || !set)
		return 0;
	cr = &s->in;
	i = interface_get(s->packet.ifindex);
	if (!i || i->flags & INTERFACE_SKIP)
		return 0;
	evaluate_start(cr, &s->packet, DIRECTION_IN, s->packet.ifindex, evaluate_tag(s));
	cr->sport = 0;
	cr->dport = 0;
	cr->fragment = 1;
	if (set->asks_more & FACTS)
		cr->facts = fact_find(ctx, cr, set->asks_more);
	return match_scrub(cr);
}

/* The same for a state with two address families. The list does not know its replies. */
static __always_inline void scrub_list_note_forth(struct scratch *s)
{
	if (!s->made || !s->in.scrubs)
		return;
	s->listed[0] = (struct scrub_listed){};
	s->listed[1] = (struct scrub_listed){};
	scrub_list_add(s);
}

/* The same if there is a list, and the packet has made its state. */
static __always_inline void scrub_list_note(hook_ctx *ctx, struct scratch *s)
{
	if (s->made && (s->in.scrubs | s->out.scrubs))
		scrub_list_keep(ctx, s);
}

#endif
