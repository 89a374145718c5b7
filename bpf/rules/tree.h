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
#include "verifier.h"

/* Looks a number below 2^32 up in a tree of the rules. */
static __always_inline void tree_find_small(__u32 tree, __u32 x, volatile __u32 *value)
{
	const struct rule_tree *t = bpf_map_lookup_elem(&rule_trees, &tree);

	if (!t)
		*value = NO_VALUE;
	else if (!t->nodes)
		*value = t->first;
	else
		search_small(TREES_OF_RULES, t->first, &t->nodes, x, value);
}

static __always_inline void tree_find_large(__u32 tree, __u64 x, volatile __u32 *value)
{
	const struct rule_tree *t = bpf_map_lookup_elem(&rule_trees, &tree);

	if (!t)
		*value = NO_VALUE;
	else if (!t->nodes)
		*value = t->first;
	else
		search_large(TREES_OF_RULES, t->first, &t->nodes, x, value);
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
	__u8 family = reread(cr->family), proto = reread(cr->proto);
	__u32 key = (family == 6) << 24 | proto << 16;

	if (ether_rules && cr->ether)
		return cr->ether;
	if (cr->fragment)
		return key | 1 << 25;
	if (proto == IPPROTO_TCP)
		return key | tree_flags_key(cr->tcp_flags);
	if (reread(cr->proto) == (reread(cr->family) == 6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return key | cr->icmp_type << 8 | cr->icmp_code;
	return key;
}

/* Looks up an IPv6 address: its upper half, and its lower half if that did not decide. */
__noinline int tree_find6(__u32 tree, const struct addr *a, __u32 *value)
{
	const __be64 *half = (const __be64 *)a;

	if (!a || !value)
		return 0;
	tree_find_large(tree, bpf_be64_to_cpu(half[0]), value);
	if (reread(*value) & SPAN_TREE && reread(*value) != NO_VALUE)
		tree_find_large(reread(*value) & ~SPAN_TREE, bpf_be64_to_cpu(half[1]), value);
	return 0;
}

static __always_inline void tree_classify6(struct crossing *cr, const struct rule_set *set)
{
	if (!(cr->known & 1 << FIELD_DST))
		tree_find6(set->trees_at + TREE_DST6, &cr->dst, &cr->class[FIELD_DST]);
	if (!(reread(cr->known) & 1 << FIELD_SRC))
		tree_find6(set->trees_at + TREE_SRC6, &cr->src, &cr->class[FIELD_SRC]);
	cr->known |= 1 << FIELD_DST | 1 << FIELD_SRC;
}

/* Forgets classes that were found before the rule set was replaced. */
static __always_inline void crossing_renew(struct crossing *cr, const struct rule_set *set)
{
	if (cr->epoch == set->epoch)
		return;
	cr->known = 0;
	cr->epoch = set->epoch;
}

/* Looks up the classes that are not known. All small trees are in one function, because a
 * call costs as much as a search. */
__noinline int tree_classify(struct crossing *cr, const struct rule_set *set)
{
	__u32 f;

	if (!cr || !set)
		return 0;
	if (cr->family == 6)
		tree_classify6(cr, set);
	cr->key[FIELD_DST] = bpf_ntohl(cr->dst.word[3]);
	cr->key[FIELD_SRC] = bpf_ntohl(cr->src.word[3]);
	cr->key[FIELD_DPORT] = tuple_has_ports(cr->proto) ? bpf_ntohs(cr->dport) : NO_PORT;
	cr->key[FIELD_SPORT] = tuple_has_ports(reread(cr->proto)) ? bpf_ntohs(cr->sport) : NO_PORT;
	cr->key[FIELD_PROTOCOL] = tree_protocol_key(cr);
	cr->key[FIELD_INTERFACE] = (__u32)cr->direction << 31 | cr->ifindex;
	for (f = 0; f < FIELD_TREES; f++) /* enum tree begins with these fields */
		if (!(cr->known & 1 << f))
			tree_find_small(set->trees_at + f, cr->key[f], &cr->class[f]);
	table_classify(cr, set);
	cr->known = (1 << FIELD_COUNT) - 1;
	return 0;
}

#endif
