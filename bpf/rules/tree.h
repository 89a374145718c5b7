/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a packet's fields to their classes: keys, and the trees in which they are looked
 * up. rules/ruleset.h has the layout, internal/fw/ruleset/tree.go makes it.
 */
#ifndef WEIR_RULES_TREE_H
#define WEIR_RULES_TREE_H

#include <linux/in.h>
#include <linux/in6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "rules/crossing.h"
#include "rules/ruleset.h"
#include "rules/search.h"
#include "rules/table.h"

/*
 * Writes the value of x in a tree to *value: that of the last key at or below x on the
 * way down. value points into a map, because the verifier forgets the history of what is
 * written there and read again. Otherwise it would follow every path that leads to it.
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
		rank = tree_rank(n, x);
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

/* Returns TCP flags in the order SYN ACK RST FIN PSH CWR ECE URG. So conditions of rules
 * are only a few spans; "flags S/SA" is a single one. */
static __always_inline __u32 tree_flags_key(__u8 f)
{
	return (f & TCP_SYN) << 6 | (f & TCP_ACK) << 2 | (f & TCP_RST) << 3 | (f & TCP_FIN) << 4 |
	       (f & 0x08) | (f & 0xe0) >> 5;
}

static __always_inline __u32 tree_protocol_key(const struct crossing *cr)
{
	__u32 key = (cr->family == 6) << 24 | cr->proto << 16;

	if (cr->proto == IPPROTO_TCP)
		return key | tree_flags_key(cr->tcp_flags);
	if (cr->proto == (cr->family == 6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return key | cr->icmp_type << 8 | cr->icmp_code;
	return key;
}

static __always_inline int crossing_has_ports(const struct crossing *cr)
{
	return cr->proto == IPPROTO_TCP || cr->proto == IPPROTO_UDP;
}

/* A field's tree, and the value to look up in it. */
struct tree_query {
	__u64 value;
	__u64 tree;
};

static __always_inline void tree_query_address(struct tree_query *q, const struct addr *a, __u32 tree4, __u32 tree6,
					__u8 family)
{
	const __be64 *half = (const __be64 *)a;

	q->tree = family == 4 ? tree4 : tree6;
	q->value = family == 4 ? bpf_ntohl(a->word[3]) : bpf_be64_to_cpu(half[0]);
}

/* Looks up the lower half of an address if the upper half did not decide. */
__noinline int tree_classify_low(struct crossing *cr)
{
	if (!cr)
		return 0;
	if (cr->class[FIELD_DST] & SPAN_TREE)
		tree_find(cr->class[FIELD_DST] & ~SPAN_TREE, bpf_be64_to_cpu(((const __be64 *)&cr->dst)[1]),
			  &cr->class[FIELD_DST]);
	if (cr->class[FIELD_SRC] & SPAN_TREE)
		tree_find(cr->class[FIELD_SRC] & ~SPAN_TREE, bpf_be64_to_cpu(((const __be64 *)&cr->src)[1]),
			  &cr->class[FIELD_SRC]);
	return 0;
}

/* Forgets classes that were found before the rule set was replaced. */
static __always_inline void crossing_renew(struct crossing *cr, const struct rule_set *set)
{
	if (cr->epoch == set->epoch)
		return;
	cr->known = 0;
	cr->epoch = set->epoch;
}

/* Looks up the classes that are not known. All trees are in one function, because a call
 * costs as much as a search. */
__noinline int tree_classify(struct crossing *cr, const struct rule_set *set)
{
	struct tree_query q[FIELD_TREES];
	__u32 f;

	if (!cr || !set)
		return 0;
	tree_query_address(&q[FIELD_DST], &cr->dst, TREE_DST4, TREE_DST6, cr->family);
	tree_query_address(&q[FIELD_SRC], &cr->src, TREE_SRC4, TREE_SRC6, cr->family);
	q[FIELD_DPORT].tree = TREE_DPORT;
	q[FIELD_DPORT].value = crossing_has_ports(cr) ? bpf_ntohs(cr->dport) : NO_PORT;
	q[FIELD_SPORT].tree = TREE_SPORT;
	q[FIELD_SPORT].value = crossing_has_ports(cr) ? bpf_ntohs(cr->sport) : NO_PORT;
	q[FIELD_PROTOCOL].tree = TREE_PROTOCOL;
	q[FIELD_PROTOCOL].value = tree_protocol_key(cr);
	q[FIELD_INTERFACE].tree = TREE_INTERFACE;
	q[FIELD_INTERFACE].value = (__u64)cr->direction << 32 | cr->ifindex;
	for (f = 0; f < FIELD_TREES; f++)
		if (!(cr->known & 1 << f))
			tree_find(set->trees_at + q[f].tree, q[f].value, &cr->class[f]);
	if (cr->family == 6 && (cr->class[FIELD_DST] | cr->class[FIELD_SRC]) & SPAN_TREE)
		tree_classify_low(cr);
	tree_classify_tables(cr, set, q[FIELD_DST].value, q[FIELD_SRC].value);
	cr->known = (1 << FIELD_COUNT) - 1;
	return 0;
}

#endif
