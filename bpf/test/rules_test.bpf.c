// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Asks the rules alone: the frame is a struct judge, which comes back answered. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rules.h"

const volatile __u32 rule_base;
const volatile __u32 rule_chunks = 1;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct judge);
} judges SEC(".maps");

SEC("tc")
int judge(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct judge *j = bpf_map_lookup_elem(&judges, &zero);
	enum reason r;

	if (!j || bpf_skb_load_bytes(skb, 0, j, sizeof(*j)))
		return -1;
	r = rules_judge(j);
	bpf_skb_store_bytes(skb, 0, j, sizeof(*j), 0);
	return r;
}

char dual_licence[] SEC("license") = "Dual BSD/GPL";
