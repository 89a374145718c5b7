// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The sink that measures how long frames were under way. Frames carry the time at which
 * they were sent, from the same clock that is read here.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "frame.h"

const volatile __u16 ethertype; /* host order */
const volatile __u8 protocol;	/* others are not counted */
const volatile __u32 stamp_at;	/* offset of the stamp */

/* Times up to 2^40 ns are sorted into steps of 1/32 of their power of two. */
#define STEP_BITS 5
#define STEPS	  (1 << STEP_BITS)
#define TIMES	  (36 * STEPS)

struct seen {
	__u64 frames;
	__u64 illegal; /* frames that should not have arrived */
	__u64 sum_ns;
	__u64 min_ns; /* 0: none */
	__u64 max_ns;
	__u64 unused[3];
	__u64 times[TIMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct seen);
	__uint(max_entries, 1); /* set to the number of cores */
} arrivals SEC(".maps");

static __always_inline __u32 power_of_two(__u64 value)
{
	__u32 power = 0;

#pragma unroll
	for (int bits = 32; bits; bits /= 2) {
		if (value >> bits) {
			power += bits;
			value >>= bits;
		}
	}
	return power;
}

/* Returns the step of a time. latency.go has the inverse. */
static __always_inline __u32 place_of(__u64 ns)
{
	__u32 power, place;

	if (ns < STEPS)
		return ns;
	power = power_of_two(ns);
	place = (power - STEP_BITS + 1) * STEPS + (__u32)((ns >> (power - STEP_BITS)) & (STEPS - 1));
	return place < TIMES ? place : TIMES - 1;
}

static __always_inline void note(struct seen *s, __u64 sent_ns)
{
	__u64 now = bpf_ktime_get_ns(), ns;
	__u32 place;

	if (sent_ns == 1) {
		s->illegal++;
		return;
	}
	s->frames++;
	ns = now > sent_ns ? now - sent_ns : 0;
	s->sum_ns += ns;
	if (!s->min_ns || ns < s->min_ns)
		s->min_ns = ns;
	if (ns > s->max_ns)
		s->max_ns = ns;
	place = place_of(ns);
	if (place < TIMES)
		s->times[place]++;
}

SEC("xdp")
int measure(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 core = bpf_get_smp_processor_id();
	struct seen *s;

	if (!is_ours(frame, end, ethertype, protocol))
		return XDP_PASS;
	s = bpf_map_lookup_elem(&arrivals, &core);
	if (s && frame + stamp_at + STAMP_LEN <= end)
		note(s, get64(frame + stamp_at));
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
