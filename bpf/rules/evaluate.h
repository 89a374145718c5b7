/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One crossing of one packet: what the rules are to test, and what follows from their
 * result. */
#ifndef WEIR_RULES_EVALUATE_H
#define WEIR_RULES_EVALUATE_H

#include "path/scratch.h"
#include "rules/fact.h"
#include "rules/fingerprint.h"
#include "rules/late.h"
#include "rules/match.h"
#include "rules/prio.h"
#include "rules/table_counter.h"
#include "shared.h"

__noinline int evaluate_source_limiter(__u32 id)
{
	struct scratch *s = scratch_get();

	if (!s)
		return LIMITER_MISSING;
	return limiter_admits_source(id, &s->packet.tuple.src, s->packet.tuple.zone, &s->limit.limited);
}

/* The tag with which a packet comes to its first crossing: that of the ether rules, if it has
 * met them. */
__noinline __u32 evaluate_tag(const struct scratch *s)
{
	const struct interface *i;

	if (!s || !ether_rules)
		return 0;
	i = interface_get(s->packet.ifindex);
	return i && i->flags & INTERFACE_ETHER_IN ? s->tag : 0;
}

static __always_inline void evaluate_start(struct crossing *cr, const struct packet *p, __u8 direction, __u32 ifindex,
			     __u16 tag)
{
	cr->src = p->tuple.src;
	cr->dst = p->tuple.dst;
	cr->sport = p->tuple.sport;
	cr->dport = p->tuple.dport;
	cr->ifindex = ifindex;
	cr->proto = p->tuple.proto;
	cr->family = p->family;
	cr->direction = direction;
	cr->tcp_flags = p->tcp_flags;
	cr->icmp_type = p->icmp_type;
	cr->icmp_code = p->icmp_code;
	cr->tag = tag;
	cr->mark = p->mark;
	cr->mark_keep = 0;
	cr->length = p->length;
	cr->tos = p->tos;
	cr->facts = 0;
	cr->prio_now = 0;
	cr->fragment = 0;
	cr->ether = 0;
	cr->received = direction == DIRECTION_IN ? ifindex : 0;
	cr->mark_mask = 0;
	cr->known = 0;
	cr->rule = 0;
	cr->action = ACTION_PASS;
	cr->flags = 0;
	cr->matches = 0;
	cr->logs = 0;
	cr->prio = 0;
	cr->queue = 0;
	cr->scrub = 0;
	cr->set_tos = 0;
	cr->min_ttl = 0;
	cr->max_mss = 0;
	cr->limit = 0;
	cr->limiters = 0;
	cr->rtable = 0;
	cr->route = ROUTES_NOT;
	cr->listed = (struct scrub_listed){};
	cr->evaluated = 0;
}

/* Begins a packet: no rules have been evaluated for it yet. */
static __always_inline void evaluate_nothing(struct scratch *s)
{
	s->in.logs = 0;
	s->in.evaluated = 0;
	s->out.logs = 0;
	s->out.evaluated = 0;
}

/* Sets the mark that a packet without a state is routed by, and what it leaves with. */
static __always_inline void evaluate_marks(struct scratch *s)
{
	__u32 mask = s->in.mark_mask;

	s->packet.mark = (s->packet.mark & ~mask) | (s->in.mark & mask);
	s->out_mark.mask = s->out.mark_mask;
	s->out_mark.bits = s->out.mark & s->out.mark_mask;
}

/* Copies what the in crossing has found and the out crossing would find again. Only the
 * interface differs, and what the in crossing has translated. */
static __always_inline void evaluate_share(struct crossing *out, const struct crossing *in)
{
	__u8 known = in->known & ~(1 << FIELD_INTERFACE);

	if (in->flags & CROSSING_RDR)
		known &= ~(1 << FIELD_DST | 1 << FIELD_DPORT | 1 << FIELD_DST_TABLES);
	if (in->flags & CROSSING_NAT)
		known &= ~(1 << FIELD_SRC | 1 << FIELD_SRC_TABLES);
	__builtin_memcpy(out->class, in->class, sizeof(out->class));
	out->known = known;
	out->epoch = in->epoch;
}

/* Looks up the class of one late field. A function of its own: inlined, the verifier would
 * follow the search once for each field and each way that leads here. */
__noinline int evaluate_late_field(struct crossing *cr, const struct rule_set *set, __u32 f, __u32 key)
{
	if (cr && set && f < LATE_COUNT)
		tree_find_small(set->trees_at + TREE_LATE + f, key, &cr->late[f]);
	return 0;
}

/* Looks up the classes of the late fields that rules ask for. */
static __always_inline void evaluate_late_keys(struct crossing *cr, const struct rule_set *set, const __u32 *key)
{
	__u32 f;

	for (f = 0; f < LATE_COUNT; f++)
		if (set->asks_more & 1 << (ASKS_LATE_SHIFT + f))
			evaluate_late_field(cr, set, f, key[f]);
}

__noinline int evaluate_late(hook_ctx *ctx, struct crossing *cr, const struct rule_set *set)
{
	struct scratch *s = scratch_get();
	__u32 key[LATE_COUNT];

	if (!cr || !set || !s)
		return 0;
	key[LATE_USER] = NOBODY;
	key[LATE_GROUP] = NOBODY;
	key[LATE_RECEIVED] = cr->received;
	key[LATE_SYSTEM] = 0;
	if (set->asks_more & 1 << (ASKS_LATE_SHIFT + LATE_SYSTEM))
		key[LATE_SYSTEM] = fingerprint_find(ctx, s, set->fingerprints);
	if (scratch_is_owner(s, cr)) {
		key[LATE_USER] = s->owner.user;
		key[LATE_GROUP] = s->owner.group;
	}
	evaluate_late_keys(cr, set, key);
	return 0;
}

/* The same for replies that have not come yet. They are no SYNs, so they show no system. */
__noinline int evaluate_late_reply(struct crossing *cr, const struct rule_set *set)
{
	__u32 key[LATE_COUNT] = { NOBODY, NOBODY };

	if (!cr || !set)
		return 0;
	key[LATE_RECEIVED] = cr->received;
	key[LATE_SYSTEM] = cr->proto == IPPROTO_TCP ? 0 : NO_SYSTEM;
	evaluate_late_keys(cr, set, key);
	return 0;
}

/* Counts a packet under the entries of tables that the deciding rule names. If that rule
 * keeps state, the packet counts in its state. */
__noinline int evaluate_count(struct crossing *cr)
{
	struct scratch *s = scratch_get();
	struct table_amount n = {};

	if (!cr || !s || (cr->action == ACTION_PASS && cr->flags & CROSSING_KEEP_STATE))
		return 0;
	n.packets = 1;
	n.bytes = s->packet.length;
	n.way = (cr->direction == DIRECTION_OUT ? TABLE_OUT : 0) | (cr->action == ACTION_PASS ? TABLE_PASS : 0);
	table_count(cr->rule, &s->packet.tuple.src, &cr->src, &s->packet.tuple.dst, &cr->dst, &n);
	return 0;
}

/* Gives the deciding rule's only packet to this one. 1: another core has just been faster. */
static __always_inline int evaluate_once(struct crossing *cr)
{
	__u32 number = cr->limit;

	if (!(cr->flags & CROSSING_KEEP_STATE))
		cr->limit = 0; /* no state counts under it */
	return !limit_use(number);
}

/* Evaluates one crossing. Returns UNDECIDED if it passes, else the reason to drop; *why
 * becomes the reason under which it passed. A packet has one rule set for all that it meets. */
static __always_inline enum reason evaluate_crossing(hook_ctx *ctx, struct crossing *cr, const struct rule_set *set,
						     __u32 options, enum reason *why)
{
	const struct interface *i;
	enum reason r;

	if (!cr || !set || !why)
		return REASON_INTERNAL;
	i = interface_get(cr->ifindex);
	if (i && i->flags & INTERFACE_SKIP) {
		*why = REASON_SKIP;
		return UNDECIDED;
	}
	cr->evaluated = 1;
	if (set->asks_more & FACTS)
		cr->facts = fact_find(ctx, cr, set->asks_more);
	if (set->asks_more & ASKS_LATE)
		evaluate_late(ctx, cr, set);
	if (set->asks_more & ASKS_PRIO)
		prio_find(ctx, cr);
	r = match_rules(cr, set);
	if (cr->flags & CROSSING_ONCE && evaluate_once(cr))
		return REASON_STATE_BUSY; /* the other packet's connection is the only one */
	if (cr->flags & CROSSING_COUNTS)
		evaluate_count(cr);
	if (r == REASON_BLOCK)
		return unloaded ? REASON_UNLOADED : REASON_BLOCK;
	if (r > REASON_LAST_PASS)
		return r;
	if (options && !(cr->flags & CROSSING_ALLOW_OPTIONS))
		return REASON_OPTIONS;
	*why = r;
	return UNDECIDED;
}

#endif
