/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a pool gives, and the states at addresses of pools with least-states
 * (state/pool_count.h). */
#ifndef WEIR_RULES_POOL_LOAD_H
#define WEIR_RULES_POOL_LOAD_H

#include <bpf/bpf_helpers.h>

#include "packet/addr.h"

/* What a pool gives. */
struct pool_choice {
	struct addr addr;
	__u32 ifindex; /* as in struct pool_address */
	__u32 states;  /* of POOL_LEAST: pools with this number count states together; 0: it counts none */
};

/* The states at an address. */
struct pool_load {
	__u32 states; /* and POOL_LOAD_GONE */
};

#define POOL_LOAD_GONE 0x80000000u /* the entry is being removed */

/* Addresses that have states at once. An entry takes memory only while it is there. */
#define MAX_POOL_LOADS 131072

/* kept; the states at each address of pools with least-states. state/pool_count.h counts them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_POOL_LOADS);
	__type(key, struct pool_choice);
	__type(value, struct pool_load);
} pool_loads SEC(".maps");

#endif
