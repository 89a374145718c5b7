/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Maps from prefixes to numbers, of which few are there at a time. All are in one map: a program may have 64. */
#ifndef WEIR_RULES_PREFIX_MAP_H
#define WEIR_RULES_PREFIX_MAP_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "packet/packet.h"

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

/* By rule_set.changes - 1, and ROUTE_MTUS (route/route.h). Written by the daemon. */
#define ROUTE_MTUS 2
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, ROUTE_MTUS + 1);
	__type(key, __u32);
	__array(values, struct table_changed);
} table_changes SEC(".maps");

#endif
