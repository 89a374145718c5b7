/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Search trees, whose nodes are cache lines. A node has eight keys; the child of node n
 * to the right of i of them is node 9 n + 1 + i. A key begins a span of equal values, up
 * to the next key. The smallest key of a tree is 0. Unused keys are the largest number
 * and have the value of the last span. internal/fw/ruleset/tree.go makes them.
 *
 * There are two kinds: small trees, of numbers below 2^32, and large ones, of halves of
 * IPv6 addresses.
 */
#ifndef WEIR_RULES_SEARCH_H
#define WEIR_RULES_SEARCH_H

#include <bpf/bpf_helpers.h>

#include "rules/ruleset.h"
#include "rules/table_page.h"

#define NO_VALUE ~0u /* the tables contradict each other; no class has this number */

/* A small tree is one line for each node. A large tree is one line for each node, and then
 * the values of its keys, two nodes' to a line. */
struct small_node {
	__u32 key[NODE_KEYS];
	__u32 value[NODE_KEYS];
};

struct large_node {
	__u64 key[NODE_KEYS];
};
_Static_assert(sizeof(struct small_node) == sizeof(struct tree_line), "a node of a small tree is a line");
_Static_assert(sizeof(struct large_node) == sizeof(struct tree_line), "a node of a large tree is a line");

/* Both functions return how many of a node's keys are at or below x. They have no
 * branches, which would be mispredicted: each term is the borrow of x - key. The empty
 * asm hides this from the compiler, which would make it a comparison and a branch. */
static __always_inline __u32 small_rank(const struct small_node *n, __u32 x)
{
	__u64 above = 0;
	int i;

	for (i = 0; i < NODE_KEYS; i++) {
		__u64 borrow = (__u64)x - n->key[i];

		asm volatile("" : "+r"(borrow));
		above += borrow >> 63;
	}
	return NODE_KEYS - above;
}

static __always_inline __u32 large_rank(const struct large_node *n, __u64 x)
{
	__u64 above = 0;
	int i;

	for (i = 0; i < NODE_KEYS; i++) {
		__u64 key = n->key[i];

		above += ((~x & key) | ((~x | key) & (x - key))) >> 63;
	}
	return NODE_KEYS - above;
}

/* Where the lines of a tree are. */
enum trees {
	TREES_OF_RULES,	 /* at rule_lines	*/
	TREES_OF_TABLES, /* in table_pages	*/
};

static __always_inline const struct tree_line *search_line(enum trees trees, __u32 at)
{
	if (trees == TREES_OF_TABLES)
		return table_line(at);
	return bpf_map_lookup_elem(&rule_lines, &at);
}

/*
 * The searches write the value of x to *value: that of the last key at or below x on the
 * way down. value points into a map, because the verifier forgets the history of what is
 * written there and read again. Otherwise it would follow every path that leads to it.
 * For the same reason the number of nodes is read from memory each time. The tree's lines
 * begin at first.
 */

/* Writes the number of the key, counted through all nodes. */
static __always_inline int search_key(enum trees trees, __u32 first, const volatile __u32 *nodes, __u64 x, int large,
				      volatile __u32 *value)
{
	__u32 level, rank, node = 0, key = 0;
	const struct tree_line *line;

	*value = NO_VALUE;
	for (level = 0; level < TREE_LEVELS && node < *nodes; level++) {
		line = search_line(trees, first + node);
		if (!line)
			return -1;
		rank = large ? large_rank((const struct large_node *)line, x) : small_rank((const struct small_node *)line, x);
		if (rank)
			key = node * NODE_KEYS + rank - 1;
		node = (NODE_KEYS + 1) * node + 1 + rank;
	}
	*value = key;
	return 0;
}

static __always_inline void search_small(enum trees trees, __u32 first, const volatile __u32 *nodes, __u32 x, volatile __u32 *value)
{
	const struct tree_line *line;
	__u32 key;

	if (search_key(trees, first, nodes, x, 0, value))
		return;
	key = *value;
	line = search_line(trees, first + key / NODE_KEYS);
	*value = line ? ((const struct small_node *)line)->value[key % NODE_KEYS] : NO_VALUE;
}

static __always_inline void search_large(enum trees trees, __u32 first, const volatile __u32 *nodes, __u64 x, volatile __u32 *value)
{
	const struct tree_line *line;
	__u32 key;

	if (search_key(trees, first, nodes, x, 1, value))
		return;
	key = *value;
	line = search_line(trees, first + *nodes + key / (2 * NODE_KEYS));
	*value = line ? ((const __u32 *)line)[key % (2 * NODE_KEYS)] : NO_VALUE;
}

#endif
