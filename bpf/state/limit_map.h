/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What rules have by their number (state/limit.h): limits, timeouts, how many packets a rule
 * with max-pkt-rate has had, and whether one with once has had its packet. The rules
 * themselves need the last two. */
#ifndef WEIR_STATE_LIMIT_MAP_H
#define WEIR_STATE_LIMIT_MAP_H

#include "state/rate.h"
#include "state/state.h"

struct limit {
	/* by the daemon */
	__u64 name; /* tells rules apart; 0: nobody has this number */
	__u16 flags;
	__u16 pkt_seconds; /* of max-pkt-rate */
	__u32 max;	   /* states of the rule; 0, here and below: any number */
	__u32 max_nodes;   /* its sources */
	__u32 max_states;  /* states of one source */
	__u32 max_conn;	   /* connections of one source */
	__u32 rate;	   /* connections of one source ... */
	__u32 seconds;	   /* ... in so many seconds */
	__u32 keep;	   /* ticks that a source is kept without states */
	__u32 adaptive_start; /* states of the rule; 0: as for all states */
	__u32 adaptive_end;
	__u32 used; /* once: 1 as soon as a packet has matched the rule; by that packet */
	__u32 pkt_rate; /* max-pkt-rate; 0: none */
	__u64 pkts;	/* its threshold (state/rate.h); by packets */
	/* by packets */
	__u32 states;
	__u32 nodes;
	/* by the daemon */
	__u32 timeout[PHASE_COUNT]; /* ticks; 0: as for all states */
};
_Static_assert(sizeof(struct limit) == 128, "what packets write is in a line of its own");

/* kept; by number, 0 unused. mmapped by the daemon and by reading commands. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_LIMITS);
	__type(key, __u32);
	__type(value, struct limit);
} limits SEC(".maps");

static __always_inline struct limit *limit_get(__u32 number)
{
	return number ? bpf_map_lookup_elem(&limits, &number) : 0;
}

/* Counts a packet under the max-pkt-rate of a rule, by its number. 0: there are too many. */
static __always_inline int limit_packet(__u32 number)
{
	struct limit *l = limit_get(number);

	return l && rate_add(&l->pkts, l->pkt_seconds) <= l->pkt_rate * 1000ULL;
}

/* Whether a rule with once, by its number, has had its packet. */
static __always_inline int limit_is_used(__u32 number)
{
	const struct limit *l = limit_get(number);

	return !l || *(const volatile __u32 *)&l->used;
}

/* Lets a packet have a rule with once. 0: another packet has just been faster. */
static __always_inline int limit_use(__u32 number)
{
	struct limit *l = limit_get(number);

	return l && !__sync_val_compare_and_swap(&l->used, 0, 1);
}

#endif
