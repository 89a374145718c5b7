/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What each rule that matches does to the crossing, while the walk visits it: the
 * stations in order, then the last plain rule.
 */
#ifndef WEIR_RULES_VISIT_H
#define WEIR_RULES_VISIT_H

#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/late.h"
#include "rules/ruleset.h"
#include "rules/translate.h"
#include "rules/walk.h"
#include "state/limiter.h"

/* Notes that a rule matched. */
static __always_inline void visit_note(struct crossing *cr, __u32 index)
{
	if (cr->matches < MAX_MATCHES)
		cr->matched[cr->matches++ % MAX_MATCHES] = rule_base + index + 1;
}

/* Returns the index of the rule with a number. It is in a map, so it can itself be a
 * key: the stack is nearly used up. */
static __always_inline const __u32 *rule_index(struct walk *w, const struct rule_set *set, __u32 number)
{
	const struct rule_order *o;

	w->order = set->order_at + number;
	o = bpf_map_lookup_elem(&rule_order, &w->order);
	return o ? &o->index : &w->order;
}

/* Returns the number of the rule that is evaluated after the one with this number. */
static __always_inline __u32 rule_next(struct walk *w, const struct rule_set *set, __u32 number, const struct rule *r)
{
	const struct rule_order *o;

	if (!(r->flags & RULE_LEADS))
		return number + 1;
	w->order = set->order_at + number;
	o = bpf_map_lookup_elem(&rule_order, &w->order);
	return o ? o->next : number + 1;
}

/* A rule in a quick anchor has decided: no rule behind the anchor is evaluated. */
static __always_inline void visit_end(struct walk *w, const struct rule_set *set, __u32 number)
{
	const struct rule_order *o;

	w->order = set->order_at + number;
	o = bpf_map_lookup_elem(&rule_order, &w->order);
	if (o && o->next - 1 < w->stop)
		w->stop = o->next - 1;
}

/* Sets the bits of the mark that the rule sets. Bits that the in crossing has set stay,
 * because they have chosen the packet's route. */
static __always_inline void visit_mark(struct crossing *cr, const struct rule *r)
{
	__u32 mask = r->mark_mask & ~cr->mark_keep;

	cr->mark = (cr->mark & ~mask) | (r->mark & mask);
	cr->mark_mask |= mask;
}

/* Sets the routing table of the packets that match a rule. */
static __always_inline void visit_rtable(struct crossing *cr, const struct rule *r)
{
	if (r->rtable)
		cr->rtable = r->rtable - 1;
}

/* Returns CROSSING_LOG* of a rule. */
static __always_inline __u8 visit_logs(const struct rule *r)
{
	return r->flags / RULE_LOG & (CROSSING_LOG | CROSSING_LOG_ALL);
}

/* Notes a rule that matches behind one with log (matches). Match rules that log have a
 * record anyway. */
static __always_inline void visit_follow(struct crossing *cr, const struct rule *r, __u32 index)
{
	if (cr->followed < MAX_FOLLOWED && !(r->flags & RULE_MATCH && r->flags & RULE_LOG))
		cr->follows[cr->followed++ % MAX_FOLLOWED] = rule_base + index + 1;
}

/* Sets the priority and queue of the packets that match a rule, replacing those of
 * earlier rules. */
static __always_inline void visit_qos(struct crossing *cr, __u8 prio, __u16 queue)
{
	if (prio)
		cr->prio = prio;
	if (queue)
		cr->queue = queue;
}

/* Adds how packets that match a rule are normalised. Values replace those of earlier
 * rules. */
static __always_inline void visit_scrub(struct crossing *cr, __u8 scrub, __u8 min_ttl, __u16 max_mss)
{
	cr->scrub |= scrub;
	if (min_ttl)
		cr->min_ttl = min_ttl;
	if (max_mss)
		cr->max_mss = max_mss;
}

/* Notes the scrub rule of the list that has matched. Rules of other lists ask for nothing. */
static __always_inline void visit_listed(struct crossing *cr, const struct rule *r)
{
	if (!(r->flags & RULE_LEADS) || !(r->scrub | r->min_ttl | r->max_mss))
		return;
	cr->listed.max_mss = r->max_mss;
	cr->listed.min_ttl = r->min_ttl;
	cr->listed.flags = r->scrub & ~SCRUB_PIECES;
	cr->listed.set_tos = r->set_tos;
}

/* Sets the type of service that packets get which match a rule. */
static __always_inline void visit_tos(struct crossing *cr, const struct rule *r)
{
	if (!(r->scrub & SCRUB_TOS) || r->flags & RULE_LEADS)
		return;
	cr->scrub |= SCRUB_TOS;
	cr->set_tos = r->set_tos;
}

/* Tests the conditions that are no fields. */
static __always_inline int visit_asks(const struct crossing *cr, const struct rule *r)
{
	return (cr->facts & r->facts_mask) == r->facts && (!r->tos || r->tos == cr->tos) &&
	       (!r->asks_dscp || r->asks_dscp == (cr->tos >> 2) + 1) &&
	       (!r->asks_prio || r->asks_prio == cr->prio_now + 1) &&
	       (!r->max_size || cr->length <= r->max_size) && (!r->chance || bpf_get_prandom_u32() < r->chance) &&
	       (!(r->more & RULE_MORE_ONCE) || !limit_is_used(r->limit));
}

/* Whether the addresses of a frame meet the conditions of an ether rule. */
__noinline int visit_macs(const struct crossing *cr, const struct rule *r)
{
	__u16 dst = 0, src = 0;
	int i;

	if (!cr || !r)
		return 0;
	for (i = 0; i < 3; i++) {
		dst |= (cr->mac[i] ^ r->mac[i]) & r->mac_mask[i];
		src |= (cr->mac[i + 3] ^ r->mac[i + 3]) & r->mac_mask[i + 3];
	}
	return (dst == 0) != (r->mac_not & 1) && (src == 0) != (r->mac_not >> 1 & 1);
}

/* Asks a source limiter about the packet's source, as it came: enum limiter_answer. */
int evaluate_source_limiter(__u32 id);

/* Asks the limiters of a rule. Returns UNDECIDED: both admit a state; else the reason to drop
 * the packet, or 0 if the rule does not match it. */
static __always_inline __u32 visit_limiters(const struct rule *r)
{
	int answer = LIMITER_ADMITS;

	if (r->state_limiter)
		answer = limiter_admits(r->state_limiter);
	if (answer != LIMITER_ADMITS)
		return answer == LIMITER_REFUSES && r->limiter_blocks & RULE_STATE_BLOCKS ? REASON_STATE_LIMITER : 0;
	if (r->source_limiter)
		answer = evaluate_source_limiter(r->source_limiter);
	if (answer != LIMITER_ADMITS)
		return answer == LIMITER_REFUSES && r->limiter_blocks & RULE_SOURCE_BLOCKS ? REASON_SOURCE_LIMITER : 0;
	return UNDECIDED;
}

/* Visits a station whose fields match. 1: the evaluation ends here. */
static __always_inline int visit_rule(struct visit *v, __u32 number)
{
	struct crossing *cr = v->cr;
	struct walk *w = v->w;
	const struct rule *r;
	const __u32 *index;
	__u32 refused;

	if (number > w->stop)
		return 1;
	index = rule_index(w, v->set, number);
	r = bpf_map_lookup_elem(&rules, index);
	if (!r) {
		w->broken = 1;
		return 1;
	}
	if (r->inside && !(w->entered >> ((r->inside - 1) & 63) & 1))
		return 0;
	if (r->tagged && (cr->tag == r->tagged) == !!(r->flags & RULE_NOT_TAGGED))
		return 0;
	if (ether_rules && r->more & RULE_MORE_MACS && !visit_macs(cr, r))
		return 0;
	if (r->marked_mask && ((cr->mark & r->marked_mask) == r->marked) == !!(r->flags & RULE_NOT_MARKED))
		return 0;
	if (r->flags & RULE_ASKS_MORE && (!visit_asks(cr, r) || (r->late && !late_meets(cr, v->set, number, r->late))))
		return 0;
	if (limiters_defined && r->more & RULE_MORE_LIMITED && !w->peeks) {
		refused = visit_limiters(r);
		if (refused && refused != UNDECIDED) {
			w->refused = refused;
			w->stop = number;
		}
		if (refused != UNDECIDED)
			return !!refused;
	}
	/* the last condition: it counts the packets that meet all others */
	if (r->more & RULE_MORE_RATED && !w->peeks && !limit_packet(r->limit))
		return 0;
	if (r->enters)
		w->entered |= 1ULL << ((r->enters - 1) & 63);
	if (r->tag)
		cr->tag = r->tag;
	if (cr->following)
		visit_follow(cr, r, *index);
	cr->following |= r->more & RULE_MORE_LOG;
	if (!(r->flags & RULE_MATCH)) {
		w->last = number;
		if (r->more & RULE_MORE_ENDS)
			visit_end(w, v->set, number);
	} else {
		cr->logs |= visit_logs(r);
		visit_qos(cr, r->prio, r->queue);
		if (!(r->flags & RULE_LEADS))
			visit_scrub(cr, r->scrub & ~SCRUB_TOS, r->min_ttl, r->max_mss);
		if (cr->matches < MAX_MATCHES - 1 && !(r->flags & RULE_SILENT))
			visit_note(cr, *index);
		if (translate_asked(r) || r->mark_mask || r->scrub & SCRUB_TOS || r->rtable || r->flags & RULE_LEADS) {
			w->translates = number;
			return 1;
		}
	}
	if (!(r->flags & RULE_QUICK))
		return 0;
	w->stop = number;
	return 1;
}

/* The next station, or the next chunk of them. */
static long visit_step(__u32 n, void *data)
{
	struct visit *v = data;
	struct walk *w = v->w;
	__u32 word, bit;
	__u64 bits;

	(void)n;
	if (!w->words) {
		if (!w->todo)
			return 1;
		w->chunk = walk_next(w);
		walk_match(w, w->chunk, v->set->stations_at);
		if (!w->words)
			return 0;
	}
	word = __builtin_ctzll(w->words | 1ULL << 63) % CHUNK_WORDS; /* of 32 bits the compiler has a table: a map more */
	bits = w->bits[word];
	bit = __builtin_ctzll(bits);
	bits &= bits - 1;
	w->bits[word] = bits;
	if (!bits)
		w->words &= w->words - 1;
	return visit_rule(v, w->chunk * CHUNK_RULES + word * 64 + bit);
}

/*
 * Walks from w->from to the end, or to the next station that translates or leads elsewhere:
 * later rules see the translated packet. The plain rules before that station are evaluated now, while
 * the classes are still theirs.
 */
static __always_inline void visit_run(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	struct visit v = {cr, w, set};
	__u32 stop;

	walk_start(w, cr);
	w->part = 0;
	w->todo = walk_blocks(w) & set->stations & ~0ULL << walk_block(w, w->from);
	if (w->todo)
		bpf_loop(rule_chunks * (CHUNK_RULES + 1), visit_step, &v, 0);
	if (w->stop != NO_RULE && w->last == w->stop)
		return;
	stop = w->stop;
	if (w->translates != NO_RULE)
		w->stop = w->translates;
	walk_last(&v);
	w->stop = stop;
}

#endif
