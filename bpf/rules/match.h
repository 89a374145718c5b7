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

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/pool.h"
#include "observe/reason.h"
#include "rules/ruleset.h"
#include "rules/tree.h"
#include "rules/cache.h"
#include "rules/walk.h"

static __always_inline void crossing_matched(struct crossing *cr, __u32 index)
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

/* Returns the new destination port of rdr-to, whose range repeats (pf.conf(5)). */
static __always_inline __be16 match_rdr_port(const struct rule *r, __be16 dport)
{
	__u16 span = r->rdr_high - r->rdr_low + 1, offset = bpf_ntohs(dport) - r->rdr_base;

	return bpf_htons(r->rdr_low + (span ? offset % span : offset));
}

/* Whether the rule translates in this direction. */
static __always_inline int match_translates(const struct rule *r, const struct crossing *cr)
{
	return cr->direction == DIRECTION_OUT ? r->nat_pool : r->rdr_pool;
}

static __always_inline void match_nat(struct crossing *cr, const struct rule *r)
{
	cr->nat_ifindex = pool_interface(r->nat_pool - 1);
	cr->nat_low = r->nat_low;
	cr->nat_high = r->nat_high;
	cr->flags |= CROSSING_NAT | (r->flags & RULE_STATIC_PORT ? CROSSING_NAT_STATIC : 0);
}

static __always_inline void match_rdr(struct crossing *cr, const struct rule *r)
{
	cr->flags |= CROSSING_RDR;
	if (r->rdr_low && crossing_has_ports(cr)) {
		cr->rdr_port = match_rdr_port(r, cr->dport);
		cr->flags |= CROSSING_RDR_PORT;
	}
}

/* Notes a rule's translation, replacing an earlier one: CROSSING_NAT, CROSSING_RDR or
 * CROSSING_NO_ADDRESS. If this rdr-to has no port, the port of an earlier one stays, as
 * in pf. */
__noinline int match_translate(struct crossing *cr, const struct rule *r)
{
	int out;

	if (!cr || !r)
		return 0;
	out = cr->direction == DIRECTION_OUT;
	cr->flags &= ~(CROSSING_NAT | CROSSING_NAT_STATIC | CROSSING_RDR | CROSSING_NO_ADDRESS);
	if (pool_take((out ? r->nat_pool : r->rdr_pool) - 1, cr->family,
		      out ? &cr->nat_addr : &cr->rdr_addr))
		cr->flags |= CROSSING_NO_ADDRESS;
	else if (out)
		match_nat(cr, r);
	else
		match_rdr(cr, r);
	return 0;
}

/* Sets the bits of the mark that the rule sets. Bits that the in crossing has set stay,
 * because they have chosen the packet's route. */
static __always_inline void match_mark(struct crossing *cr, const struct rule *r)
{
	__u32 mask = r->mark_mask & ~cr->mark_keep;

	cr->mark = (cr->mark & ~mask) | (r->mark & mask);
	cr->mark_mask |= mask;
}

/* Returns CROSSING_LOG* of a rule. */
static __always_inline __u8 match_logs(const struct rule *r)
{
	return r->flags / RULE_LOG & (CROSSING_LOG | CROSSING_LOG_ALL);
}

/* Sets the priority and queue of the packets that match a rule, replacing those of
 * earlier rules. */
static __always_inline void match_gives(struct crossing *cr, __u8 prio, __u16 queue)
{
	if (prio)
		cr->prio = prio;
	if (queue)
		cr->queue = queue;
}

/* Visits a station whose fields match. 1: the evaluation ends here. */
static __always_inline int walk_visit(struct visit *v, __u32 number)
{
	struct crossing *cr = v->cr;
	struct walk *w = v->w;
	const __u32 *index = rule_index(w, v->set, number);
	const struct rule *r = bpf_map_lookup_elem(&rules, index);

	if (!r) {
		w->broken = 1;
		return 1;
	}
	if (r->tagged && (cr->tag == r->tagged) == !!(r->flags & RULE_NOT_TAGGED))
		return 0;
	if (r->marked_mask && ((cr->mark & r->marked_mask) == r->marked) == !!(r->flags & RULE_NOT_MARKED))
		return 0;
	if (r->tag)
		cr->tag = r->tag;
	if (!(r->flags & RULE_MATCH)) {
		w->last = number;
	} else {
		cr->logs |= match_logs(r);
		match_gives(cr, r->prio, r->queue);
		if (cr->matches < MAX_MATCHES - 1)
			crossing_matched(cr, *index);
		if (match_translates(r, cr) || r->mark_mask) {
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
static long walk_step(__u32 n, void *data)
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
	word = __builtin_ctz(w->words) % CHUNK_WORDS;
	bits = w->bits[word];
	bit = __builtin_ctzll(bits);
	bits &= bits - 1;
	w->bits[word] = bits;
	if (!bits)
		w->words &= w->words - 1;
	return walk_visit(v, w->chunk * CHUNK_RULES + word * 64 + bit);
}

/* Applies the translation of a match rule, so that later rules see it. */
static __always_inline void match_translate_now(struct crossing *cr, const struct rule *r, const struct rule_set *set)
{
	match_translate(cr, r);
	if (cr->flags & CROSSING_NAT)
		cr->src = cr->nat_addr;
	if (cr->flags & CROSSING_RDR)
		cr->dst = cr->rdr_addr;
	if (cr->flags & CROSSING_RDR_PORT)
		cr->dport = cr->rdr_port;
	cr->known &= cr->direction == DIRECTION_OUT ?
			    ~(1 << FIELD_SRC | 1 << FIELD_SRC_TABLES) :
			    ~(1 << FIELD_DST | 1 << FIELD_DPORT | 1 << FIELD_DST_TABLES);
	tree_classify(cr, set);
}

/*
 * Walks from w->from to the end, or to the next station that translates: later rules see
 * the translated packet. The plain rules before that station are evaluated now, while
 * the classes are still theirs.
 */
static __always_inline void walk_go(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	struct visit v = {cr, w, set};

	walk_start(w, cr);
	w->part = 0;
	w->todo = walk_blocks(w) & set->stations & ~0ULL << walk_block(w, w->from);
	if (w->todo)
		bpf_loop(rule_chunks * (CHUNK_RULES + 1), walk_step, &v, 0);
	if (w->stop != NO_RULE && w->last == w->stop)
		return;
	if (w->translates != NO_RULE)
		w->stop = w->translates;
	walk_last(&v);
	if (w->translates != NO_RULE)
		w->stop = NO_RULE;
}

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

/* Fills the answer from the rule that decided. */
static __always_inline enum reason match_answer(struct crossing *cr, struct walk *w, const struct rule_set *set)
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
	crossing_matched(cr, *index);
	cr->logs |= match_logs(r);
	if (r->flags & RULE_BLOCK) {
		cr->action = ACTION_BLOCK;
		return REASON_BLOCK;
	}
	match_gives(cr, r->prio, r->queue);
	if (r->flags & RULE_KEEP_STATE)
		cr->flags |= CROSSING_KEEP_STATE;
	if (r->flags & RULE_ALLOW_OPTIONS)
		cr->flags |= CROSSING_ALLOW_OPTIONS;
	match_mark(cr, r);
	if (match_translates(r, cr))
		match_translate(cr, r);
	return cr->flags & CROSSING_NO_ADDRESS ? REASON_NAT_ADDRESS : REASON_RULE;
}

/* Packs what the result depends on. 21 bits for each class, and for the start of the run
 * with the number of earlier matches; the rule that decides so far, the tag, and the
 * epoch. */
static __always_inline void cache_key_fill(struct cache_key *key, const struct crossing *cr, const struct walk *w)
{
	const __u32 *c = cr->class;

	key->word[0] = c[0] | (__u64)c[1] << 21 | (__u64)c[2] << 42 | 1ULL << 63; /* 0: an empty entry */
	key->word[1] = c[3] | (__u64)c[4] << 21 | (__u64)c[5] << 42 | (__u64)cr->direction << 63;
	key->word[2] = c[6] | (__u64)c[7] << 21 | (__u64)w->from << 42 | (__u64)cr->matches << 59;
	key->word[3] = w->last | (__u64)cr->tag << 20 | (__u64)w->epoch << (64 - EPOCH_BITS);
}

static __always_inline void cache_recall(const struct cache_entry *s, struct crossing *cr, struct walk *w)
{
	int i;

	w->last = s->last | (s->high & 1) << 16;
	w->stop = s->stop | (s->high & 2) << 15;
	w->translates = s->translates | (s->high & 4) << 14;
	cr->tag = s->tag;
	cr->logs |= s->logs;
	match_gives(cr, s->prio, s->queue);
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
	s->high = w->last >> 16 | w->stop >> 16 << 1 | w->translates >> 16 << 2;
	s->tag = cr->tag;
	s->logs = cr->logs;
	s->prio = cr->prio;
	s->queue = cr->queue;
	for (i = 0; i < MAX_MATCHES - 1; i++)
		s->matched[i] = cr->matched[i] - 1 - rule_base;
	s->matches = cr->matches;
	s->key = *key;
}

/* Whether the result depends on a mark, which is not in the key. */
static __always_inline int match_by_mark(const struct crossing *cr, const struct rule_set *set)
{
	return cr->mark && set->asks_mark;
}

/* Walks through a run that is not in the cache, and stores it there. */
__noinline int match_uncached(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	struct cache_key key;
	struct cache_entry *s;
	__u8 logs, prio;
	__u16 queue;

	if (!cr || !w || !set)
		return 0;
	cache_key_fill(&key, cr, w);
	logs = cr->logs; /* these do not belong to this run */
	prio = cr->prio;
	queue = cr->queue;
	cr->logs = 0;
	cr->prio = 0;
	cr->queue = 0;
	walk_go(cr, w, set);
	s = cache_get(&key);
	if (s && !w->broken && !match_by_mark(cr, set))
		cache_store(s, &key, cr, w);
	cr->logs |= logs;
	cr->prio = cr->prio ? : prio;
	cr->queue = cr->queue ? : queue;
	return 0;
}

/*
 * One run of rules: from w->from to the end of the rules, or to a match rule that
 * translates or sets the mark. That rule is then w->translates.
 */
static __always_inline void match_run(struct crossing *cr, struct walk *w, const struct rule_set *set)
{
	struct cache_key key;
	struct cache_entry *s;

	cache_key_fill(&key, cr, w);
	s = cache_get(&key);
	if (s && cache_is(s, &key) && !match_by_mark(cr, set))
		cache_recall(s, cr, w);
	else
		match_uncached(cr, w, set);
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
	if (match_translates(r, cr))
		match_translate_now(cr, r, set);
	match_mark(cr, r);
	w->translates = NO_RULE;
	w->from = number + 1;
	if (r->flags & RULE_QUICK)
		w->stop = number;
	else
		match_run(cr, w, set);
	return 0;
}

static long match_step(__u32 n, void *data)
{
	struct visit *v = data;

	(void)n;
	return match_next(v->cr, v->w, v->set);
}

/*
 * Evaluates the rules for one crossing (docs/packet-path.md, 5). Returns REASON_RULE or
 * REASON_NO_RULE if it passes, REASON_BLOCK or REASON_NAT_ADDRESS if not. Returns
 * REASON_INTERNAL if the tables contradict each other, which they never do.
 */
__noinline enum reason match_rules(struct crossing *cr)
{
	struct visit v = {};
	const struct rule_set *set;
	struct walk *w;
	__u32 zero = 0;

	if (!cr)
		return REASON_INTERNAL;
	w = bpf_map_lookup_elem(&walks, &zero);
	set = rule_set_get();
	if (!w || !set)
		return REASON_INTERNAL;
	cr->rule = 0;
	cr->action = ACTION_PASS;
	cr->flags = 0;
	cr->matches = 0;
	cr->mark_mask = 0;
	crossing_renew(cr, set);
	tree_classify(cr, set);
	w->broken = 0;
	w->epoch = set->epoch;
	w->shift = set->block_shift;
	w->within = (1 << w->shift) - 1;
	w->from = 0;
	w->last = NO_RULE;
	w->stop = NO_RULE;
	w->translates = NO_RULE;
	match_run(cr, w, set);
	/* mostly there is only one translation, and no call is needed */
	if (!match_next(cr, w, set) && w->translates != NO_RULE) {
		v.cr = cr;
		v.w = w;
		v.set = set;
		bpf_loop(MAX_RULES, match_step, &v, 0);
	}
	match_count_stop(w, set);
	return w->broken ? REASON_INTERNAL : match_answer(cr, w, set);
}

#endif
