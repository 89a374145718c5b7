/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A walk through the rules that match a packet, chunk by chunk of the vectors of its
 * classes. rules/match.h handles each match.
 */
#ifndef WEIR_RULES_WALK_H
#define WEIR_RULES_WALK_H

#include <bpf/bpf_helpers.h>

#include "rules/cache.h"
#include "rules/crossing.h"
#include "rules/ruleset.h"
#include "verifier.h"

/* A walk through the rules. One per CPU, because the stack is too small. */
struct walk {
	struct rule_class class[FIELD_COUNT]; /* the packet's present classes */
	__u64 bits[CHUNK_WORDS]; /* of the present chunk: rules that match */
	__u64 entered;		 /* anchors that have matched (rule.enters) */
	__u64 todo;		 /* blocks whose chunks have not been read yet */
	__u32 chunk;		 /* the present one */
	__u32 shift;		 /* rule_set.block_shift			*/
	__u32 within;		 /* chunks in a block - 1			*/
	__u32 part;		 /* the next chunk of the first block to do */
	__u32 words;		 /* bit i: bits[i] is not 0			*/
	__u32 from;		 /* rules before it saw other addresses */
	__u32 last;		 /* rule that decides so far, or NO_RULE */
	__u32 stop;		 /* rule at which the evaluation ends, or NO_RULE */
	__u32 translates;	 /* station at which a run ended, or NO_RULE */
	__u32 broken;		 /* the tables contradict each other		*/
	__u32 epoch;		 /* of the rule set				*/
	__u32 order;		 /* a key of rule_order				*/
	__u32 peeks;		 /* only a scrub rule is sought: nothing counts */
	__u32 refused;		 /* enum reason: a limiter has ended the evaluation; 0: none has */
	struct cache_key key;	 /* of the present run, if it is not in the cache */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* Fetches the classes of a walk. */
static __always_inline void walk_start(struct walk *w, const struct crossing *cr)
{
	const struct rule_class *c;
	__u32 f, index;

	for (f = 0; f < FIELD_COUNT; f++) {
		index = cr->class[f];
		c = bpf_map_lookup_elem(&rule_classes, &index);
		if (c)
			w->class[f] = *c;
		else
			w->broken = 1;
	}
	w->words = 0;
}

/* Returns the blocks in which every field has a rule that it allows. */
static __always_inline __u64 walk_blocks(const struct walk *w)
{
	__u64 blocks = ~0ULL;
	int f;

	for (f = 0; f < FIELD_COUNT; f++)
		blocks &= w->class[f].filled;
	return blocks;
}

/* Returns the block of a rule. */
static __always_inline __u32 walk_block(const struct walk *w, __u32 rule)
{
	return ((rule / CHUNK_RULES) >> w->shift) & 63;
}

/* Returns the next chunk to do, from the front, and marks it as done. */
static __always_inline __u32 walk_next(struct walk *w)
{
	__u32 chunk = (__builtin_ctzll(w->todo) << w->shift) + w->part;

	w->part = (w->part + 1) & w->within;
	if (!w->part)
		w->todo &= w->todo - 1;
	return chunk;
}

/* The same from the end. */
static __always_inline __u32 walk_previous(struct walk *w)
{
	__u32 block = 63 - __builtin_clzll(w->todo), chunk = (block << w->shift) + w->part;

	if (!w->part)
		w->todo &= ~(1ULL << (block & 63));
	w->part = (w->part - 1) & w->within;
	return chunk;
}

/* Intersects w->bits with a chunk of one field's vector. */
static __always_inline void walk_intersect(struct walk *w, const struct rule_class *c, __u32 chunk)
{
	__u64 bit = 1ULL << ((chunk >> w->shift) & 63);
	const struct rule_bits *common, *own;
	__u32 at = c->common + chunk;
	int i;

	if (c->full & bit)
		return;
	common = bpf_map_lookup_elem(&rule_vectors, &at);
	if (!common) {
		w->broken = 1;
		return;
	}
	if (!(c->differs & bit)) {
		for (i = 0; i < CHUNK_WORDS; i++)
			w->bits[i] &= common->word[i];
		return;
	}
	at = c->own + (__builtin_popcountll(c->differs & (bit - 1)) << w->shift) + (chunk & w->within);
	own = bpf_map_lookup_elem(&rule_vectors, &at);
	if (!own) {
		w->broken = 1;
		return;
	}
	for (i = 0; i < CHUNK_WORDS; i++)
		w->bits[i] &= common->word[i] ^ own->word[i];
}

/* Removes the rules before w->from and after w->stop from w->bits. */
__noinline int walk_limit(struct walk *w, __u32 chunk)
{
	__u32 i, first;

	if (!w)
		return 0;
	for (i = 0; i < CHUNK_WORDS; i++) {
		first = chunk * CHUNK_RULES + i * 64;
		if (reread(w->from) > first)
			w->bits[i] &= w->from - first < 64 ? ~0ULL << ((w->from - first) & 63) : 0;
		if (reread(w->stop) < first + 63)
			w->bits[i] &= w->stop >= first ? ~0ULL >> ((first + 63 - w->stop) & 63) : 0;
	}
	return 0;
}

/*
 * Leaves in w->bits those rules of a chunk that match, are of one kind (its vector is at
 * kind), and are between w->from and w->stop. w->words says in which words.
 */
static __always_inline void walk_match(struct walk *w, __u32 chunk, __u32 kind)
{
	const struct rule_bits *mask;
	__u32 at = kind + chunk, i;

	mask = bpf_map_lookup_elem(&rule_vectors, &at);
	w->words = 0;
	if (!mask) {
		w->broken = 1;
		return;
	}
	for (i = 0; i < CHUNK_WORDS; i++)
		w->bits[i] = mask->word[i];
	for (i = 0; i < FIELD_COUNT; i++)
		walk_intersect(w, &w->class[i], chunk);
	if (w->from > chunk * CHUNK_RULES || w->stop < (chunk + 1) * CHUNK_RULES)
		walk_limit(w, chunk);
	/* Without branches: the verifier would follow all 2^CHUNK_WORDS paths. The asm
	 * keeps clang from making branches. */
	for (i = 0; i < CHUNK_WORDS; i++) {
		__u64 sign = w->bits[i] | -w->bits[i];

		asm("" : "+r"(sign));
		w->words |= sign >> 63 << i;
	}
}

/* The arguments of a step of a walk. */
struct visit {
	struct crossing *cr;
	struct walk *w;
	const struct rule_set *set;
};

/* Searches the last chunk to do for its last plain rule. 1: there is one. */
static __always_inline int walk_last_in(struct walk *w, const struct rule_set *set)
{
	__u32 chunk = walk_previous(w), word;

	walk_match(w, chunk, set->plains_at);
	if (!w->words)
		return 0;
	word = 31 - __builtin_clz(w->words);
	w->last = chunk * CHUNK_RULES + word * 64 + 63 - __builtin_clzll(w->bits[word % CHUNK_WORDS]);
	return 1;
}

static long walk_last_step(__u32 n, void *data)
{
	struct visit *v = data;

	(void)n;
	return !v->w->todo || walk_last_in(v->w, v->set);
}

/* Selects the blocks in which a plain rule may match between w->from and w->stop and
 * after w->last. Earlier ones cannot decide. */
static __always_inline void walk_last_start(struct walk *w, const struct rule_set *set)
{
	if (w->last != NO_RULE && w->last >= w->from)
		w->from = w->last + 1;
	w->part = w->within;
	w->todo = walk_blocks(w) & set->plains;
	w->todo &= ~0ULL << walk_block(w, w->from);
	if (w->stop < MAX_RULES)
		w->todo &= ~0ULL >> (63 - walk_block(w, w->stop));
}

/* Sets w->last to the last plain rule that matches, if it is later. */
static __always_inline void walk_last(struct visit *v)
{
	walk_last_start(v->w, v->set);
	/* mostly the first chunk has it, and no call is needed */
	if (v->w->todo && !walk_last_in(v->w, v->set))
		bpf_loop(rule_chunks, walk_last_step, v, 0);
}

#endif
