/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The step of a search that all trees share.
 */
#ifndef WEIR_RULES_SEARCH_H
#define WEIR_RULES_SEARCH_H

#include "rules/ruleset.h"

#define NO_VALUE ~0u /* the tables contradict each other; no class has this number */

/* Returns how many of a node's keys are at or below x. It has no branches, which would
 * be mispredicted: each term is the borrow of x - key. */
static __always_inline __u32 tree_rank(const struct rule_node *n, __u64 x)
{
	__u64 above = 0;
	int i;

	for (i = 0; i < NODE_KEYS; i++) {
		__u64 key = n->key[i];

		above += ((~x & key) | ((~x | key) & (x - key))) >> 63;
	}
	return NODE_KEYS - above;
}

#endif
