/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The pages that hold the search trees of tables. */
#ifndef WEIR_RULES_TABLE_PAGE_H
#define WEIR_RULES_TABLE_PAGE_H

#include <bpf/bpf_helpers.h>

#include "rules/ruleset.h"

#define TABLE_PAGE_LINES 4096
#define TABLE_PAGES	 1024 /* for one tree: there are twice as many, for the next one */

/* A page. All have one size, so that the kernel's look-up is compiled into the program
 * (with BPF_F_INNER_MAP it would be a call). */
struct table_page {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLE_PAGE_LINES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct tree_line));
};

/* The pages of the present trees and of the next ones. Line n of a set's trees is line
 * rule_set.tables_at + n. Written by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2 * TABLE_PAGES);
	__type(key, __u32);
	__array(values, struct table_page);
} table_pages SEC(".maps");

static __always_inline const struct tree_line *table_line(__u32 at)
{
	__u32 page = at / TABLE_PAGE_LINES, line = at % TABLE_PAGE_LINES;
	void *lines = bpf_map_lookup_elem(&table_pages, &page);

	return lines ? bpf_map_lookup_elem(lines, &line) : 0;
}

#endif
