/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One run of rules. Its result comes from the cache, or from a walk; then the cache
 * keeps it. */
#ifndef WEIR_RULES_RUN_H
#define WEIR_RULES_RUN_H

#include "rules/cache.h"
#include "rules/crossing.h"
#include "rules/ruleset.h"
#include "rules/visit.h"
#include "rules/walk.h"

/* Packs what the result of a run depends on: the classes, where the run starts, the
 * number of earlier matches, the rule that decides so far, the tag and the epoch. Each
 * class has 21 bits. */
static __always_inline void cache_key_fill(struct cache_key *key, const struct crossing *cr, const struct walk *w)
{
	const __u32 *c = cr->class;

	key->word[0] = c[0] | (__u64)c[1] << 21 | (__u64)c[2] << 42 | 1ULL << 63; /* 0: an empty entry */
	key->word[1] = c[3] | (__u64)c[4] << 21 | (__u64)c[5] << 42 | (__u64)cr->direction << 63;
	key->word[2] = c[6] | (__u64)c[7] << 21 | (__u64)w->from << 42 | (__u64)cr->matches << 59;
	key->word[3] = w->last | (__u64)cr->tag << 20 | (__u64)w->epoch << (64 - EPOCH_BITS);
}

/* Applies a result from the cache. */
static __always_inline void cache_apply(const struct cache_entry *s, struct crossing *cr, struct walk *w)
{
	int i;

	w->last = s->last | (s->high & 1) << 16;
	w->stop = s->stop | (s->high & 2) << 15;
	w->translates = s->translates | (s->high & 4) << 14;
	cr->tag = s->tag;
	cr->logs |= s->logs;
	visit_qos(cr, s->prio, s->queue);
	visit_scrub(cr, s->high >> CACHE_SCRUB_SHIFT, s->min_ttl, s->max_mss);
	for (i = 0; i < MAX_MATCHES - 1 && i < s->matches; i++)
		if (i >= cr->matches)
			cr->matched[i] = rule_base + s->matched[i] + 1;
	cr->matches = s->matches;
}

static __always_inline void cache_store(struct cache_entry *s, const struct cache_key *key,
					 const struct crossing *cr, const struct walk *w)
{
	int i;

	s->last = w->last;
	s->stop = w->stop;
	s->translates = w->translates;
	s->high = w->last >> 16 | w->stop >> 16 << 1 | w->translates >> 16 << 2 | cr->scrub << CACHE_SCRUB_SHIFT;
	s->tag = cr->tag;
	s->logs = cr->logs;
	s->prio = cr->prio;
	s->queue = cr->queue;
	s->min_ttl = cr->min_ttl;
	s->max_mss = cr->max_mss;
	for (i = 0; i < MAX_MATCHES - 1; i++)
		s->matched[i] = cr->matched[i] - 1 - rule_base;
	s->matches = cr->matches;
	s->key = *key;
}

/* Whether the result depends on what is not in the key. */
static __always_inline int run_is_own(const struct crossing *cr, const struct rule_set *set)
{
	return set->asks_more & ASKS_MORE || (cr->mark && set->asks_mark);
}

/* Walks through a run that is not in the cache, and stores it there. */
__noinline int run_uncached(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	struct cache_entry *s;
	__u8 logs, prio, scrub, min_ttl;
	__u16 queue, max_mss;

	if (!cr || !w || !set)
		return 0;
	cache_key_fill(&w->key, cr, w);
	logs = cr->logs; /* these do not belong to this run */
	prio = cr->prio;
	queue = cr->queue;
	scrub = cr->scrub;
	min_ttl = cr->min_ttl;
	max_mss = cr->max_mss;
	cr->logs = 0;
	cr->prio = 0;
	cr->queue = 0;
	cr->scrub = 0;
	cr->min_ttl = 0;
	cr->max_mss = 0;
	visit_run(cr, w, set);
	s = cache_get(&w->key);
	if (s && !w->broken && !run_is_own(cr, set))
		cache_store(s, &w->key, cr, w);
	cr->logs |= logs;
	cr->prio = cr->prio ? : prio;
	cr->queue = cr->queue ? : queue;
	cr->scrub |= scrub;
	cr->min_ttl = cr->min_ttl ? : min_ttl;
	cr->max_mss = cr->max_mss ? : max_mss;
	return 0;
}

/*
 * One run of rules: from w->from to the end of the rules, or to a match rule that
 * translates, sets the mark or the routing table, or leads elsewhere. That rule is then w->translates.
 */
static __always_inline void run_rules(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	struct cache_key key;
	struct cache_entry *s;

	cache_key_fill(&key, cr, w);
	s = cache_get(&key);
	if (s && cache_is(s, &key) && !run_is_own(cr, set))
		cache_apply(s, cr, w);
	else
		run_uncached(cr, w, set);
}

#endif
