/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The map of IPsec policies. The garbage collection includes it without using it: its object
 * declares all tables that a load may have to make anew. */
#ifndef WEIR_ROUTE_POLICY_MAP_H
#define WEIR_ROUTE_POLICY_MAP_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "route/policy_key.h"

/* What a policy does with the packets that it selects. */
struct policy {
	__u32 priority;
	__u32 verdict; /* enum policy_verdict */
};

/* kept; written by the daemon: both tables. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_POLICIES * 2);
	__type(key, struct policy_key);
	__type(value, struct policy);
} policies SEC(".maps");

#endif
