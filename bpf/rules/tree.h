/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a packet's fields to their classes: keys, and the trees that they are
 * looked up in. rules/ruleset.h has the layout, internal/fw/ruleset/tree.go makes it.
 */
#ifndef WEIR_RULES_TREE_H
#define WEIR_RULES_TREE_H

#include <linux/in.h>
#include <linux/in6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/ruleset.h"

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

/*
 * Puts the value of x in a tree into *value: that of the last key at or below x on
 * the way down. value points into a map: what is written there and read again has
 * no history for the verifier, which would follow every way that leads to it.
 */
static __always_inline void tree_find(__u32 tree, __u64 x, volatile __u32 *value)
{
	const struct rule_tree *t = bpf_map_lookup_elem(&rule_trees, &tree);
	__u32 level, at, rank, node = 0, key = 0;
	const struct rule_spans *spans;
	const struct rule_node *n;

	*value = NO_VALUE;
	if (!t)
		return;
	if (!t->nodes) {
		*value = t->first;
		return;
	}
	for (level = 0; level < TREE_LEVELS && node < t->nodes; level++) {
		at = t->first + node;
		n = bpf_map_lookup_elem(&rule_nodes, &at);
		if (!n)
			return;
		rank = node_rank(n, x);
		if (rank)
			key = at * NODE_KEYS + rank - 1;
		node = (NODE_KEYS + 1) * node + 1 + rank;
	}
	*value = key;
	key = *value;
	at = key / NODE_KEYS;
	spans = bpf_map_lookup_elem(&rule_spans, &at);
	*value = spans ? spans->value[key % NODE_KEYS] : NO_VALUE;
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

/* A field's tree, and the value that is looked up in it. */
struct question {
	__u64 value;
	__u64 tree;
};

static __always_inline void ask_address(struct question *q, const struct addr *a, __u32 tree4, __u32 tree6,
					__u8 family)
{
	const __be64 *half = (const __be64 *)a;

	q->tree = family == 4 ? tree4 : tree6;
	q->value = family == 4 ? bpf_ntohl(a->word[3]) : bpf_be64_to_cpu(half[0]);
}

/* Where the upper half of an address did not decide, its lower half does. */
__noinline int classify_low(struct judge *j)
{
	if (!j)
		return 0;
	if (j->class[FIELD_DST] & SPAN_TREE)
		tree_find(j->class[FIELD_DST] & ~SPAN_TREE, bpf_be64_to_cpu(((const __be64 *)&j->dst)[1]),
			  &j->class[FIELD_DST]);
	if (j->class[FIELD_SRC] & SPAN_TREE)
		tree_find(j->class[FIELD_SRC] & ~SPAN_TREE, bpf_be64_to_cpu(((const __be64 *)&j->src)[1]),
			  &j->class[FIELD_SRC]);
	return 0;
}

/* The set of tables that an address is in. value: what an IPv4 address, or the
 * upper half of an IPv6 address, is looked up by. */
__noinline int tables_find(struct judge *j, __u32 field, __u64 value)
{
	volatile __u32 *set;
	const struct addr *a;

	if (!j)
		return 0;
	set = field == FIELD_DST_TABLES ? &j->class[FIELD_DST_TABLES] : &j->class[FIELD_SRC_TABLES];
	a = field == FIELD_DST_TABLES ? &j->dst : &j->src;
	tree_find(j->family == 4 ? TREE_TABLES4 : TREE_TABLES6, value, set);
	if (*set & SPAN_TREE && *set != NO_VALUE)
		tree_find(*set & ~SPAN_TREE, bpf_be64_to_cpu(((const __be64 *)a)[1]), set);
	return 0;
}

/* Cost without rules that ask for tables: one test for each side. */
static __always_inline void classify_tables(struct judge *j, const struct rule_set *set, __u64 dst, __u64 src)
{
	if (!(j->known & 1 << FIELD_DST_TABLES)) {
		j->class[FIELD_DST_TABLES] = 0;
		if (set->asks_tables & 1 << (FIELD_DST_TABLES - FIELD_TREES))
			tables_find(j, FIELD_DST_TABLES, dst);
		j->class[FIELD_DST_TABLES] += set->dst_tables_at;
	}
	if (!(j->known & 1 << FIELD_SRC_TABLES)) {
		j->class[FIELD_SRC_TABLES] = 0;
		if (set->asks_tables & 1 << (FIELD_SRC_TABLES - FIELD_TREES))
			tables_find(j, FIELD_SRC_TABLES, src);
		j->class[FIELD_SRC_TABLES] += set->src_tables_at;
	}
}

/* Looks up the classes that are not known. All trees in one function: a call
 * costs as much as a search. */
__noinline int judge_classify(struct judge *j, const struct rule_set *set)
{
	struct question q[FIELD_TREES];
	__u32 f;

	if (!j || !set)
		return 0;
	ask_address(&q[FIELD_DST], &j->dst, TREE_DST4, TREE_DST6, j->family);
	ask_address(&q[FIELD_SRC], &j->src, TREE_SRC4, TREE_SRC6, j->family);
	q[FIELD_DPORT].tree = TREE_DPORT;
	q[FIELD_DPORT].value = judge_has_ports(j) ? bpf_ntohs(j->dport) : NO_PORT;
	q[FIELD_SPORT].tree = TREE_SPORT;
	q[FIELD_SPORT].value = judge_has_ports(j) ? bpf_ntohs(j->sport) : NO_PORT;
	q[FIELD_PROTOCOL].tree = TREE_PROTOCOL;
	q[FIELD_PROTOCOL].value = protocol_key(j);
	q[FIELD_INTERFACE].tree = TREE_INTERFACE;
	q[FIELD_INTERFACE].value = (__u64)j->direction << 32 | j->ifindex;
	for (f = 0; f < FIELD_TREES; f++)
		if (!(j->known & 1 << f))
			tree_find(q[f].tree, q[f].value, &j->class[f]);
	if (j->family == 6 && (j->class[FIELD_DST] | j->class[FIELD_SRC]) & SPAN_TREE)
		classify_low(j);
	classify_tables(j, set, q[FIELD_DST].value, q[FIELD_SRC].value);
	j->known = (1 << FIELD_COUNT) - 1;
	return 0;
}

#endif
