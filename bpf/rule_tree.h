/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a packet's fields to their classes: keys, and the trees that they are
 * looked up in. rule_maps.h has the layout, internal/ruleset/tree.go makes it.
 */
#ifndef WEIR_RULE_TREE_H
#define WEIR_RULE_TREE_H

#include <linux/in.h>
#include <linux/in6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "judge.h"
#include "rule_maps.h"

#define NO_VALUE ~0u /* the tables contradict each other; no class has this number */

/* How many of a node's keys are at or below x. Without branches, which would be
 * mispredicted: each term is the borrow of x - key. */
static __always_inline __u32 node_rank(const struct rule_node *n, __u64 x)
{
	__u64 above = 0;
	int i;

	for (i = 0; i < NODE_KEYS; i++) {
		__u64 key = n->key[i];

		above += ((~x & key) | ((~x | key) & (x - key))) >> 63;
	}
	return NODE_KEYS - above;
}

/* The value of the span that x is in, of the tree in rule_nodes[first ..]. */
__noinline __u32 tree_search(__u32 first, __u32 nodes, __u64 x)
{
	__u32 level, at, rank, node = 0, found = first, slot = 0;
	const struct rule_spans *spans;
	const struct rule_node *n;

	for (level = 0; level < TREE_LEVELS && node < nodes; level++) {
		at = first + node;
		n = bpf_map_lookup_elem(&rule_nodes, &at);
		if (!n)
			return NO_VALUE;
		rank = node_rank(n, x);
		if (rank) {
			found = at;
			slot = rank - 1;
		}
		node = (NODE_KEYS + 1) * node + 1 + rank;
	}
	spans = bpf_map_lookup_elem(&rule_spans, &found);
	return spans ? spans->value[slot % NODE_KEYS] : NO_VALUE;
}

/* The value of x in a tree. */
static __always_inline __u32 tree_find(__u32 tree, __u64 x)
{
	const struct rule_tree *t = bpf_map_lookup_elem(&rule_trees, &tree);

	if (!t)
		return NO_VALUE;
	return t->nodes ? tree_search(t->first, t->nodes, x) : t->first;
}

/* The value of an address, in the trees of its side. */
static __always_inline __u32 addr_find(__u32 tree4, __u32 tree6, const struct addr *a, __u8 family)
{
	const __be64 *half = (const __be64 *)a;
	__u32 value = tree_find(family == 4 ? tree4 : tree6,
				family == 4 ? bpf_ntohl(a->word[3]) : bpf_be64_to_cpu(half[0]));

	if (value & SPAN_TREE)
		value = tree_find(value & ~SPAN_TREE, bpf_be64_to_cpu(half[1]));
	return value;
}

/* TCP flags in the order SYN ACK RST FIN PSH CWR ECE URG: what rules ask of them
 * is then a few spans, "flags S/SA" a single one. */
static __always_inline __u32 flags_key(__u8 f)
{
	return (f & TCP_SYN) << 6 | (f & TCP_ACK) << 2 | (f & TCP_RST) << 3 | (f & TCP_FIN) << 4 |
	       (f & 0x08) | (f & 0xe0) >> 5;
}

static __always_inline __u32 protocol_key(const struct judge *j)
{
	__u32 key = (j->family == 6) << 24 | j->proto << 16;

	if (j->proto == IPPROTO_TCP)
		return key | flags_key(j->tcp_flags);
	if (j->proto == (j->family == 6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return key | j->icmp_type << 8 | j->icmp_code;
	return key;
}

static __always_inline int judge_has_ports(const struct judge *j)
{
	return j->proto == IPPROTO_TCP || j->proto == IPPROTO_UDP;
}

#endif
