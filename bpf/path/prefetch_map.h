/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a core remembers of packets that are prefetched (path/prefetch.h). */
#ifndef WEIR_PATH_PREFETCH_MAP_H
#define WEIR_PATH_PREFETCH_MAP_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "config.h"

/* What the first passes on this core have found. */
struct prefetch {
	__u32 index[PREFETCH_BATCH]; /* states found since the last second pass */
	__u32 count;
	__u16 misses[64]; /* by interface: packets without a hint since the last one with a hint */
	__u32 pass;	  /* second passes so far */
	__u64 queued;	  /* packets that took two passes */
	__u64 spared;	  /* packets of known connections that took one, as their tuple was seen lately */
	__u32 warm;	  /* the tuple of the packet at hand was */
	__u32 pad;
	/* By hash of the tuple: the connection seen last. The upper bits are of the hash, the
	 * lowest eight of the pass for which its last packet was queued. */
	__u32 recent[PREFETCH_RECENT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct prefetch);
} prefetches SEC(".maps");

static __always_inline struct prefetch *prefetch_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&prefetches, &zero);
}

/* Counts a packet that took one pass as its tuple was seen lately. Its connection is known: it has a state. */
static __always_inline void prefetch_count_spared(void)
{
	struct prefetch *l = prefetch_get();

	if (l && l->warm) {
		l->warm = 0;
		l->spared++;
	}
}

#endif
