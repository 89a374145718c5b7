// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Counts what each core does for packets in the kernel: the time of softirqs, and what
 * it receives from each interface. Counting ends by itself at a time set beforehand, so
 * a reader who gets the processor late still reads the same span.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Kernel structures: the loader takes offsets from the running kernel's type
 * information. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct napi_struct {
	struct net_device *dev;
} __attribute__((preserve_access_index));

#define VECTORS 10 /* NR_SOFTIRQS of linux/interrupt.h */

struct core {
	__u64 since;	      /* start of the running softirq; 0: none, or not counted */
	__u64 spent[VECTORS]; /* ns */
	__u64 runs;	      /* runs of these programs */
	__u64 own;	      /* ns that these programs took */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct core);
} cores SEC(".maps");

/* Time at which counting ends, CLOCK_MONOTONIC in ns; 0: not started. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} until SEC(".maps");

struct device {
	__u32 netns;   /* inode of the interface's network namespace */
	__u32 ifindex; /* 0: the stack's own backlog (RPS, tunnels, veth) */
};

struct polled {
	__u64 polls;
	__u64 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct device);
	__type(value, struct polled);
} received SEC(".maps");

static __always_inline __u64 end_of_watch(void)
{
	__u32 key = 0;
	__u64 *end = bpf_map_lookup_elem(&until, &key);

	return end ? *end : 0;
}

static __always_inline struct core *this_core(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&cores, &key);
}

static __always_inline void book(struct core *c, __u64 began)
{
	c->runs++;
	c->own += bpf_ktime_get_ns() - began;
}

SEC("tp_btf/softirq_entry")
int softirq_begins(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct core *c = this_core();

	(void)ctx;
	if (!c)
		return 0;
	c->since = now < end_of_watch() ? now : 0;
	if (c->since)
		book(c, now);
	return 0;
}

SEC("tp_btf/softirq_exit")
int softirq_ends(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns(), end = end_of_watch();
	struct core *c = this_core();
	__u32 vector = ctx[0];

	if (!c || !c->since || vector >= VECTORS)
		return 0;
	c->spent[vector] += (now < end ? now : end) - c->since;
	c->since = 0;
	book(c, now);
	return 0;
}

SEC("tp_btf/napi_poll")
int napi_polled(__u64 *ctx)
{
	const struct napi_struct *napi = (const struct napi_struct *)ctx[0];
	__u64 now = bpf_ktime_get_ns();
	struct polled fresh = {}, *r;
	struct core *c = this_core();
	struct device key = {};
	__u32 work = ctx[1];

	if (!c || now >= end_of_watch())
		return 0;
	/* A backlog has no device: this reads 0. */
	key.ifindex = napi->dev->ifindex;
	key.netns = napi->dev->nd_net.net->ns.inum;
	r = bpf_map_lookup_elem(&received, &key);
	if (!r) {
		bpf_map_update_elem(&received, &key, &fresh, BPF_NOEXIST);
		r = bpf_map_lookup_elem(&received, &key);
	}
	if (r) {
		r->polls++;
		r->packets += work;
	}
	book(c, now);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
