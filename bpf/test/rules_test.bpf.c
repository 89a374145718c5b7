// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Asks the rules alone, to compare their answers and to measure them. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rules/match.h"

const volatile __u32 rule_base;
const volatile __u32 rule_chunks = 64;
const volatile __u32 crossing_count = 1;
const volatile __u8 never_alike; /* give each crossing a tag of its own, so that no answer is remembered */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct judge);
} judges SEC(".maps");

/* What is measured: crossings, of which each run takes one at random. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct judge);
} crossings SEC(".maps");

/* The frame is a struct judge, which comes back answered. */
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

static __always_inline struct judge *crossing_draw(void)
{
	__u32 zero = 0, key = bpf_get_prandom_u32() % crossing_count;
	const struct judge *drawn = bpf_map_lookup_elem(&crossings, &key);
	struct judge *j = bpf_map_lookup_elem(&judges, &zero);

	if (!j || !drawn)
		return 0;
	*j = *drawn;
	if (never_alike)
		j->tag = bpf_get_prandom_u32() | 0x8000;
	return j;
}

SEC("tc")
int judge_drawn(struct __sk_buff *skb)
{
	struct judge *j = crossing_draw();

	(void)skb;
	return j ? rules_judge(j) : -1;
}

/* What of this is the drawing. */
SEC("tc")
int draw(struct __sk_buff *skb)
{
	struct judge *j = crossing_draw();

	(void)skb;
	return j ? j->proto : -1;
}

char dual_licence[] SEC("license") = "Dual BSD/GPL";
