/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The rules of one crossing: which of them match a packet, and what follows.
 *
 * The packet's fields are looked up to classes, and the classes' vectors are
 * intersected. Of the rules whose bits are left, the stations are visited in order. Of
 * the plain rules only the last is searched, from the end. rules/ruleset.h describes the
 * maps, docs/rules.md the reasons.
 */
#ifndef WEIR_RULES_MATCH_H
#define WEIR_RULES_MATCH_H

#include <bpf/bpf_helpers.h>

#include "observe/reason.h"
#include "rules/crossing.h"
#include "rules/embed.h"
#include "rules/ruleset.h"
#include "rules/run.h"
#include "rules/translate.h"
#include "rules/tree.h"
#include "rules/visit.h"
#include "rules/walk.h"

/* Counts where the evaluation ended; without a stop, behind the last rule. */
static __always_inline void match_count_stop(struct walk *w, const struct rule_set *set)
{
	const __u32 *key = w->stop == NO_RULE ? &set->none : rule_index(w, set, w->stop);
	struct rule_counter *c = bpf_map_lookup_elem(&rule_counters, key);

	if (c)
		c->stops++;
}

/* Counts a state under the rule that decided it: crossing.rule. */
static __always_inline void match_count_state(__u32 rule)
{
	__u32 key = rule - 1 - rule_base;
	struct rule_counter *c = bpf_map_lookup_elem(&rule_counters, &key);

	if (c)
		c->states++;
}

/* Fills in the result from the rule that decided. */
static __always_inline enum reason match_result(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	const struct rule *r;
	const __u32 *index;

	if (w->last == NO_RULE)
		return cr->flags & CROSSING_NO_ADDRESS ? REASON_NAT_ADDRESS : REASON_NO_RULE;
	index = rule_index(w, set, w->last);
	r = bpf_map_lookup_elem(&rules, index);
	if (!r)
		return REASON_INTERNAL;
	cr->rule = rule_base + *index + 1;
	visit_note(cr, *index);
	cr->logs |= visit_logs(r);
	if (r->flags & RULE_COUNTS)
		cr->flags |= CROSSING_COUNTS;
	if (r->more & RULE_MORE_ONCE) {
		cr->flags |= CROSSING_ONCE;
		cr->limit = r->limit;
	}
	if (r->flags & RULE_BLOCK) {
		cr->action = ACTION_BLOCK;
		return REASON_BLOCK;
	}
	visit_qos(cr, r->prio, r->queue);
	visit_scrub(cr, r->scrub & ~SCRUB_TOS, r->min_ttl, r->max_mss);
	visit_tos(cr, r);
	if (r->flags & RULE_KEEP_STATE)
		cr->flags |= CROSSING_KEEP_STATE;
	if (r->more & RULE_MORE_BOUND && r->route != ROUTES_REPLY)
		cr->flags |= CROSSING_BOUND;
	if (flows_exported && r->exported)
		cr->flags |= CROSSING_EXPORTED;
	cr->limit = r->limit;
	cr->limiters = r->state_limiter | r->source_limiter << 8;
	if (r->more & RULE_MORE_RATED && r->flags & RULE_KEEP_STATE)
		cr->flags |= CROSSING_RATED;
	if (r->flags & RULE_ALLOW_OPTIONS)
		cr->flags |= CROSSING_ALLOW_OPTIONS;
	visit_mark(cr, r);
	visit_rtable(cr, r);
	if (af_to && r->family)
		family_note(cr, r);
	else if (translate_asked(r))
		translate_note(cr, r);
	if (r->route)
		translate_route(cr, r);
	return cr->flags & CROSSING_NO_ADDRESS ? REASON_NAT_ADDRESS : REASON_RULE;
}

/* Continues behind the match rule that ended the last run. 1: there are no more rules. */
static __always_inline long match_next(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	__u32 number = w->translates;
	const struct rule *r;

	if (number == NO_RULE || w->broken)
		return 1;
	r = bpf_map_lookup_elem(&rules, rule_index(w, set, number));
	if (!r) {
		w->broken = 1;
		return 1;
	}
	if (translate_asked(r))
		translate_apply(cr, r, set);
	visit_mark(cr, r);
	visit_rtable(cr, r);
	visit_tos(cr, r);
	visit_listed(cr, r);
	w->translates = NO_RULE;
	w->from = rule_next(w, set, number, r);
	if (r->flags & RULE_QUICK)
		w->stop = number;
	else
		run_rules(cr, w, set);
	return 0;
}

static long match_step(__u32 n, void *data)
{
	struct visit *v = data;

	(void)n;
	return match_next(v->cr, v->w, v->set);
}

/* Begins a walk at the first rule. */
static __always_inline void match_start(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	cr->scrubs = set->scrubs;
	crossing_renew(cr, set);
	tree_classify(cr, set);
	w->broken = 0;
	w->peeks = 0;
	w->entered = 0;
	w->refused = 0;
	w->epoch = set->epoch;
	w->shift = set->block_shift;
	w->within = (1 << w->shift) - 1;
	w->from = ether_rules ? set->ethers : 0;
	w->last = NO_RULE;
	w->stop = NO_RULE;
	w->translates = NO_RULE;
}

/*
 * Evaluates the rules for one crossing (docs/packet-path.md, 5). Returns REASON_RULE or
 * REASON_NO_RULE if it passes, REASON_BLOCK or REASON_NAT_ADDRESS if not. Returns
 * REASON_INTERNAL if the tables contradict each other, which they never do.
 */
__noinline enum reason match_rules(struct crossing *cr, const struct rule_set *set)
{
	struct visit v = {};
	struct walk *w;
	__u32 zero = 0;

	if (!cr || !set)
		return REASON_INTERNAL;
	w = bpf_map_lookup_elem(&walks, &zero);
	if (!w)
		return REASON_INTERNAL;
	cr->rule = 0;
	cr->action = ACTION_PASS;
	cr->flags = 0;
	cr->route = ROUTES_NOT;
	cr->limit = 0;
	cr->limiters = 0;
	cr->matches = 0;
	cr->following = 0;
	cr->followed = 0;
	cr->mark_mask = 0;
	cr->rtable = 0;
	match_start(cr, w, set);
	run_rules(cr, w, set);
	/* mostly there is only one translation, and no call is needed */
	if (!match_next(cr, w, set) && w->translates != NO_RULE) {
		v.cr = cr;
		v.w = w;
		v.set = set;
		bpf_loop(MAX_RULES, match_step, &v, 0);
	}
	match_count_stop(w, set);
	if (limiters_defined && w->refused) {
		cr->action = ACTION_BLOCK;
		return w->refused;
	}
	return w->broken ? REASON_INTERNAL : match_result(cr, w, set);
}

/* Finds the scrub rule of FreeBSD's list that a packet meets: crossing.listed. The first
 * station that leads elsewhere is such a rule, or there is none. Returns whether it says that
 * fragments meet the rules each for itself. */
__noinline int match_scrub(struct crossing *cr)
{
	const struct rule_set *set;
	const struct rule *r;
	struct walk *w;
	__u32 zero = 0;

	if (!cr)
		return 0;
	w = bpf_map_lookup_elem(&walks, &zero);
	set = rule_set_get();
	if (!w || !set || !set->scrubs)
		return 0;
	cr->matches = 0;
	match_start(cr, w, set);
	w->peeks = 1;
	run_rules(cr, w, set);
	if (w->broken || w->translates >= set->scrubs)
		return 0;
	r = bpf_map_lookup_elem(&rules, rule_index(w, set, w->translates));
	if (!r)
		return 0;
	visit_listed(cr, r);
	return !!(r->scrub & SCRUB_PIECES);
}

#endif
