/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Counters of the entries of tables that are defined with `counters'.
 *
 * A packet of a state counts in the state, as always. When the state is released, its
 * packets are added to the entries that its addresses are in (state/gc.h). Whoever reads
 * the counters adds those of the states that still live. Packets without a state are
 * counted when the rules are evaluated (rules/evaluate.h). Established packets do nothing.
 */
#ifndef WEIR_RULES_TABLE_COUNTER_H
#define WEIR_RULES_TABLE_COUNTER_H

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "packet/addr.h"

/* The key of an entry. The address ends in zeros behind the prefix. */
struct table_entry {
	__u32 table; /* the table's number * 2, plus 1 for IPv6; numbers are made from names */
	__u32 bits;  /* of the address as it is kept: IPv4 has 96 more */
	struct addr addr;
};

/* Indices into the arrays of struct table_counter. */
#define TABLE_OUT  2 /* the packet left; else it came in */
#define TABLE_PASS 1 /* it was passed; else it was blocked */

struct table_counter {
	__u64 packets[4];
	__u64 bytes[4];
	__u64 since; /* nanoseconds since 1970; by the daemon */
	__u32 not;   /* 1: the entry excludes its prefix */
	__u32 pad0;
};

#define TABLE_COUNTERS 1048576

/* kept; of all tables with counters. Entries by the daemon, counts by packets. It is no
 * trie, because the program that starts the timer may not use one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TABLE_COUNTERS);
	__type(key, struct table_entry);
	__type(value, struct table_counter);
} table_counters SEC(".maps");

/* The lengths that prefixes of a table have, the longest first. */
#define TABLE_LENGTHS 129
struct table_lengths {
	__u8 count;
	__u8 bits[TABLE_LENGTHS];
	__u8 pad0[2];
};

/* kept; by table_entry.table. By the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct table_lengths);
} table_lengths SEC(".maps");

/* The tables with counters that a rule names: number * 2, plus 1 for "!"; 0: none. */
struct table_rule {
	__u32 from;
	__u32 to;
};

/* kept; by global id + 1 of the rule. States of rules that are gone still count. By the
 * daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, __u32);
	__type(value, struct table_rule);
} table_rules SEC(".maps");

/* Packets to be counted, and where. */
struct table_amount {
	__u64 packets;
	__u64 bytes;
	__u32 way; /* TABLE_OUT, TABLE_PASS */
	__u32 pad0;
};

/* The search for the entry that an address is in. */
struct table_search {
	struct table_entry key;
	const struct addr *addr;
	const struct table_lengths *lengths;
	const struct table_amount *n;
	__u32 not;   /* the rule negates the table */
	__u32 found; /* the packets are counted */
};

/* Cuts an address to a prefix. */
static __always_inline void table_cut(struct addr *to, const struct addr *a, __u32 bits)
{
	const word64 *from = (const word64 *)a;
	word64 *cut = (word64 *)to;

	cut[0] = bits >= 64 ? from[0] : from[0] & bpf_cpu_to_be64(bits ? ~0ULL << (64 - bits) : 0);
	cut[1] = bits > 64 ? from[1] & bpf_cpu_to_be64(~0ULL << ((128 - bits) & 63)) : 0;
}

/* Tries the prefix of one length. The longest one decides. */
static long table_search_step(__u32 i, void *data)
{
	struct table_search *s = data;
	struct table_counter *c;

	if (i >= TABLE_LENGTHS || i >= s->lengths->count)
		return 1;
	s->key.bits = s->lengths->bits[i];
	table_cut(&s->key.addr, s->addr, s->key.bits);
	c = bpf_map_lookup_elem(&table_counters, &s->key);
	if (!c)
		return 0;
	if (c->not == s->not) {
		__sync_fetch_and_add(&c->packets[s->n->way & 3], s->n->packets);
		__sync_fetch_and_add(&c->bytes[s->n->way & 3], s->n->bytes);
		s->found = 1;
	}
	return 1;
}

/* Counts under the entry that an address is in. table: as in table_rule. 0: there is no
 * such entry. */
__noinline int table_counter_add(__u32 table, const struct addr *a, const struct table_amount *n)
{
	struct table_search s = {};

	if (!a || !n)
		return 0;
	s.key.table = (table & ~1u) | !addr_is4(a);
	s.lengths = bpf_map_lookup_elem(&table_lengths, &s.key.table);
	if (!s.lengths)
		return 0;
	s.addr = a;
	s.n = n;
	s.not = table & 1;
	bpf_loop(TABLE_LENGTHS, table_search_step, &s, 0);
	return s.found;
}

/* Counts for a rule: global id + 1. seen: the addresses as rules have
 * translated them. The entry of the untranslated address comes first. */
static __always_inline void table_count(__u32 rule, const struct addr *src, const struct addr *seen_src,
					const struct addr *dst, const struct addr *seen_dst,
					const struct table_amount *n)
{
	const struct table_rule *r = bpf_map_lookup_elem(&table_rules, &rule);

	if (!r)
		return;
	if (r->from && !table_counter_add(r->from, src, n))
		table_counter_add(r->from, seen_src, n);
	if (r->to && !table_counter_add(r->to, dst, n))
		table_counter_add(r->to, seen_dst, n);
}

#endif
