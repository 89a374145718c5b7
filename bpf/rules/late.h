/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Conditions on the fields of enum late: user, group, received-on, os. Their classes are looked
 * up for each crossing, before the rules, and only if a rule asks. More fields for all
 * packets would cost those whose rules do not ask.
 */
#ifndef WEIR_RULES_LATE_H
#define WEIR_RULES_LATE_H

#include "rules/crossing.h"
#include "rules/ruleset.h"
#include "rules/search.h"

/* Whether the vector of the class cr->late[f] has the bit of the rule with a number. The
 * keys of its chunks are in the crossing, because the stack is nearly used up. */
static __always_inline int late_has(struct crossing *cr, __u32 f, const struct rule_set *set, __u32 number)
{
	const struct rule_class *c = bpf_map_lookup_elem(&rule_classes, &cr->late[f]);
	__u32 chunk = number / CHUNK_RULES, shift = set->block_shift & 31;
	__u64 bit = 1ULL << (chunk >> shift & 63), bits;
	const struct rule_bits *chunk_bits;

	if (!c)
		return 0;
	cr->late_common = c->common + chunk;
	cr->late_own = NO_VALUE;
	if (c->differs & bit)
		cr->late_own = c->own + (__builtin_popcountll(c->differs & (bit - 1)) << shift) + (chunk & ((1 << shift) - 1));
	chunk_bits = bpf_map_lookup_elem(&rule_vectors, &cr->late_common);
	if (!chunk_bits)
		return 0;
	bits = chunk_bits->word[number / 64 % CHUNK_WORDS];
	chunk_bits = bpf_map_lookup_elem(&rule_vectors, &cr->late_own);
	if (chunk_bits)
		bits ^= chunk_bits->word[number / 64 % CHUNK_WORDS];
	return bits >> (number % 64) & 1;
}

/* Whether a crossing meets the conditions of a rule. late: those of struct rule. */
__noinline int late_meets(struct crossing *cr, const struct rule_set *set, __u32 number, __u32 late)
{
	if (!cr || !set)
		return 0;
	return (!(late & 1 << (ASKS_LATE_SHIFT + LATE_USER)) || late_has(cr, LATE_USER, set, number)) &&
	       (!(late & 1 << (ASKS_LATE_SHIFT + LATE_GROUP)) || late_has(cr, LATE_GROUP, set, number)) &&
	       (!(late & 1 << (ASKS_LATE_SHIFT + LATE_RECEIVED)) || late_has(cr, LATE_RECEIVED, set, number)) &&
	       (!(late & 1 << (ASKS_LATE_SHIFT + LATE_SYSTEM)) || late_has(cr, LATE_SYSTEM, set, number));
}

#endif
