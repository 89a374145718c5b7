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
#include "rules/ruleset.h"
#include "rules/search.h"

/* A cache line of a page: a node's eight keys, the values of two nodes, or the places of
 * eight trees. */
struct table_line {
	__u64 word[8];
};
_Static_assert(sizeof(struct table_line) == sizeof(struct rule_node), "a line holds a node");

#define TABLE_PAGE_LINES 4096
#define TABLE_PAGES	 1024 /* for one tree: there are twice as many, for the next one */

/* A page. All have one size, so that the kernel's look-up is compiled into the program
 * (with BPF_F_INNER_MAP it would be a call). */
struct table_page {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLE_PAGE_LINES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct table_line));
};

/* The pages of the present trees and of the next ones. Line n of a set's trees is line
 * rule_set.tables_at + n. Written by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2 * TABLE_PAGES);
	__type(key, __u32);
	__array(values, struct table_page);
} table_pages SEC(".maps");

/* The key of a changed prefix. bits includes those of family. */
struct table_prefix {
	__u32 bits;
	__u32 family; /* 4 or 6 */
	struct addr addr;
};
#define TABLE_PREFIX_BITS (8 * (sizeof(struct table_prefix) - sizeof(__u32)))

#define TABLE_CHANGES 8192 /* prefixes; with more, the trees are rebuilt */

/* The changes since the trees were made: prefix -> set. */
struct table_changed {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TABLE_CHANGES);
	__uint(key_size, sizeof(struct table_prefix)); /* clang emits no types for inner maps */
	__uint(value_size, sizeof(__u32));
};

/* By rule_set.changes - 1. Written by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, struct table_changed);
} table_changes SEC(".maps");

static __always_inline const struct table_line *table_line(__u32 at)
{
	__u32 page = at / TABLE_PAGE_LINES, line = at % TABLE_PAGE_LINES;
	void *lines = bpf_map_lookup_elem(&table_pages, &page);

	return lines ? bpf_map_lookup_elem(lines, &line) : 0;
}

/* Like tree_find() in tree.h, but in the pages of tables. The tree's nodes are followed
 * by their values, two nodes' to a line. */
static __always_inline void table_find(__u32 base, __u64 tree, __u64 x, volatile __u32 *value)
{
	__u32 first = base + (__u32)tree, nodes = tree >> 32, level, rank, node = 0, key = 0;
	const struct table_line *line;

	*value = (__u32)tree;
	if (!nodes)
		return;
	*value = NO_VALUE;
	for (level = 0; level < TREE_LEVELS && node < nodes; level++) {
		line = table_line(first + node);
		if (!line)
			return;
		rank = tree_rank((const struct rule_node *)line, x);
		if (rank)
			key = node * NODE_KEYS + rank - 1;
		node = (NODE_KEYS + 1) * node + 1 + rank;
	}
	*value = key;
	key = *value;
	line = table_line(first + nodes + key / (2 * NODE_KEYS));
	*value = line ? ((const __u32 *)line)[key % (2 * NODE_KEYS)] : NO_VALUE;
}

/* Looks up the lower half of an IPv6 address, in the tree that its upper half led to. */
static __always_inline void table_find_low(__u32 base, __u64 x, volatile __u32 *value)
{
	__u32 tree = *value & ~SPAN_TREE;
	const struct table_line *line = table_line(base + tree / 8);

	*value = NO_VALUE;
	if (line)
		table_find(base, line->word[tree % 8], x, value);
}

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

/* Returns the set of tables that contain an address. x: the key of an IPv4 address, or
 * of the upper half of an IPv6 address. */
__noinline int tree_find_tables(struct crossing *cr, const struct rule_set *set, __u32 field, __u64 x)
{
	volatile __u32 *value;
	const struct addr *a;
	__u32 changes;

	if (!cr || !set)
		return 0;
	value = field == FIELD_DST_TABLES ? &cr->class[FIELD_DST_TABLES] : &cr->class[FIELD_SRC_TABLES];
	a = field == FIELD_DST_TABLES ? &cr->dst : &cr->src;
	changes = *(const volatile __u32 *)&set->changes;
	if (changes && table_has_changed(changes, a, cr->family, value))
		return 0;
	table_find(set->tables_at, cr->family == 4 ? set->tables4 : set->tables6, x, value);
	if (*value & SPAN_TREE && *value != NO_VALUE)
		table_find_low(set->tables_at, bpf_be64_to_cpu(((const __be64 *)a)[1]), value);
	return 0;
}

/* Cost without rules that test tables: one test for each side. */
static __always_inline void tree_classify_tables(struct crossing *cr, const struct rule_set *set, __u64 dst, __u64 src)
{
	if (!(cr->known & 1 << FIELD_DST_TABLES)) {
		cr->class[FIELD_DST_TABLES] = 0;
		if (set->asks_tables & 1 << (FIELD_DST_TABLES - FIELD_TREES))
			tree_find_tables(cr, set, FIELD_DST_TABLES, dst);
		cr->class[FIELD_DST_TABLES] += set->dst_tables_at;
	}
	if (!(cr->known & 1 << FIELD_SRC_TABLES)) {
		cr->class[FIELD_SRC_TABLES] = 0;
		if (set->asks_tables & 1 << (FIELD_SRC_TABLES - FIELD_TREES))
			tree_find_tables(cr, set, FIELD_SRC_TABLES, src);
		cr->class[FIELD_SRC_TABLES] += set->src_tables_at;
	}
}

#endif
