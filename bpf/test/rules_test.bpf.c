// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Evaluates the rules alone, to compare their results and to measure them. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rules/match.h"
#include "shared.h"

struct shared shared; /* the time, for max-pkt-rate */

const volatile __u32 rule_base;
const volatile __u64 pool_secret;
const volatile __u32 rule_chunks = 64;
const volatile __u8 af_to;
const volatile __u8 ether_rules = 0;
const volatile __u8 limiters_defined;
const volatile __u8 least_states = 1;
const volatile __u8 flows_exported = 1;
const volatile __u32 crossing_count = 1;
const volatile __u8 never_alike; /* give each crossing a tag of its own, so that no result comes from the cache */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct crossing);
} evaluated SEC(".maps");

/* What is measured: crossings, of which each run takes one at random. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct crossing);
} crossings SEC(".maps");

/* There is no packet, so no rule has a source limiter. */
__noinline int evaluate_source_limiter(__u32 id)
{
	(void)id;
	return LIMITER_MISSING;
}

/* The frame is a struct crossing, which comes back with its result. */
SEC("tc")
int evaluate_frame(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct crossing *cr = bpf_map_lookup_elem(&evaluated, &zero);
	enum reason r;

	if (!cr || bpf_skb_load_bytes(skb, 0, cr, sizeof(*cr)))
		return -1;
	r = match_rules(cr, rule_set_get());
	bpf_skb_store_bytes(skb, 0, cr, sizeof(*cr), 0);
	return r;
}

static __always_inline struct crossing *crossing_draw(void)
{
	__u32 zero = 0, key = bpf_get_prandom_u32() % crossing_count;
	const struct crossing *drawn = bpf_map_lookup_elem(&crossings, &key);
	struct crossing *cr = bpf_map_lookup_elem(&evaluated, &zero);

	if (!cr || !drawn)
		return 0;
	*cr = *drawn;
	if (never_alike)
		cr->tag = bpf_get_prandom_u32() | 0x8000;
	return cr;
}

SEC("tc")
int evaluate_drawn(struct __sk_buff *skb)
{
	struct crossing *cr = crossing_draw();

	(void)skb;
	return cr ? match_rules(cr, rule_set_get()) : -1;
}

/* What of this is the drawing. */
SEC("tc")
int draw(struct __sk_buff *skb)
{
	struct crossing *cr = crossing_draw();

	(void)skb;
	return cr ? cr->proto : -1;
}

char dual_licence[] SEC("license") = "Dual BSD/GPL";
