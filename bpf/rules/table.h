/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tables: from an address to the set of tables that contain it.
 *
 * All tables of a family share one search tree, which has pages of its own. The daemon
 * replaces it whole: it writes new pages beside those in use, then the rule set that
 * says where they are. Single entries are changed by prefixes in table_changes, which
 * override the tree. internal/fw/ruleset makes both.
 */
#ifndef WEIR_RULES_TABLE_H
#define WEIR_RULES_TABLE_H

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/prefix_map.h"
#include "rules/ruleset.h"
#include "rules/search.h"
#include "rules/table_page.h"
#include "verifier.h"

/* Whether the address is in a prefix that has changed since the trees were made. */
static __always_inline int table_has_changed(__u32 changes, const struct addr *a, __u8 family, volatile __u32 *value)
{
	struct table_prefix key = {.bits = TABLE_PREFIX_BITS, .family = family, .addr = *a};
	const __u32 *set;
	void *changed;

	changes--;
	changed = bpf_map_lookup_elem(&table_changes, &changes);
	set = changed ? bpf_map_lookup_elem(changed, &key) : 0;
	if (!set)
		return 0;
	*value = *(const volatile __u32 *)set;
	return 1;
}

/* A tree of tables in one word, as in rule_set.tables4 (little-endian). */
union table_tree {
	__u64 word;
	struct {
		__u32 first;
		__u32 nodes;
	};
};

static __always_inline void table_find_large(__u32 base, const __u64 *tree, __u64 x, volatile __u32 *value)
{
	const union table_tree *t = (const void *)tree;

	if (t->nodes)
		search_large(TREES_OF_TABLES, base + t->first, &t->nodes, x, value);
	else
		*value = t->first;
}

/* Looks up an IPv6 address: the tree of the upper halves, and where these do not decide
 * the tree that they lead to. tables_at holds the places of such trees, eight to a line. */
__noinline int table_find6(const struct rule_set *set, const struct addr *a, __u32 *value)
{
	const __be64 *half = (const __be64 *)a;
	const struct tree_line *line;
	__u32 low;

	if (!set || !a || !value)
		return 0;
	table_find_large(set->tables_at, &set->tables6, bpf_be64_to_cpu(half[0]), value);
	low = reread(*value);
	if (!(low & SPAN_TREE) || low == NO_VALUE)
		return 0;
	low &= ~SPAN_TREE;
	*value = NO_VALUE;
	line = table_line(set->tables_at + low / 8);
	if (line)
		table_find_large(set->tables_at, &line->word[low % 8], bpf_be64_to_cpu(half[1]), value);
	return 0;
}

/* Looks up the set of tables that contain an address. */
__noinline int table_find(const struct rule_set *set, const struct addr *a, __u32 family, __u32 *value)
{
	const union table_tree *t;
	__u32 changes;

	if (!set || !a || !value)
		return 0;
	changes = *(const volatile __u32 *)&set->changes;
	if (changes && table_has_changed(changes, a, family, value))
		return 0;
	if (family == 6)
		return table_find6(set, a, value);
	t = (const void *)&set->tables4;
	if (t->nodes)
		search_small(TREES_OF_TABLES, set->tables_at + t->first, &t->nodes, bpf_ntohl(a->word[3]), value);
	else
		*value = t->first;
	return 0;
}

/* Looks up the tables of both addresses, as far as rules test them. Cost without such
 * rules: one test for each side. */
static __always_inline void table_classify(struct crossing *cr, const struct rule_set *set)
{
	if (!(cr->known & 1 << FIELD_DST_TABLES)) {
		cr->class[FIELD_DST_TABLES] = 0;
		if (set->asks_tables & 1 << (FIELD_DST_TABLES - FIELD_TREES))
			table_find(set, &cr->dst, cr->family, &cr->class[FIELD_DST_TABLES]);
		cr->class[FIELD_DST_TABLES] += set->dst_tables_at;
	}
	if (!(cr->known & 1 << FIELD_SRC_TABLES)) {
		cr->class[FIELD_SRC_TABLES] = 0;
		if (set->asks_tables & 1 << (FIELD_SRC_TABLES - FIELD_TREES))
			table_find(set, &cr->src, cr->family, &cr->class[FIELD_SRC_TABLES]);
		cr->class[FIELD_SRC_TABLES] += set->src_tables_at;
	}
}

#endif
