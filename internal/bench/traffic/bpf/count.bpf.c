// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The counting sink, and the programs at the router's device: both forms of the bare
 * redirect, the same with a PPPoE session on the far wire, and a program that only passes.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "flow.h"
#include "frame.h"

const volatile __u16 ethertype; /* host order */
const volatile __u8 protocol;	/* others are not counted */
const volatile __u32 tag_len;	/* bytes of a VLAN tag in front of the EtherType, or of a PPPoE session */

/* IPv4: frames are numbered, and those of a flow have to arrive in order. */
const volatile __u8 numbered;
const volatile __u8 back; /* from the far end to the near one */

/* redirect: the device by which frames leave, and their new MAC addresses. */
const volatile __u32 leave_by;
const volatile __u64 addresses_low;  /* the first 8 bytes of the frame */
const volatile __u32 addresses_high; /* the next 4 */
const volatile __u16 session;	     /* number of the PPPoE session on the far wire */

/* The time is read once in this many frames. A rate is measured between the first and
 * the last time, so the start and the end of a run do not count. */
#define STAMP_MASK 1023

struct counter {
	__u64 frames;
	__u64 first_frames;
	__u64 first_ns;
	__u64 last_frames;
	__u64 last_ns;
	__u64 disordered;
	__u64 unused[2]; /* one cache line for each core */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct counter);
	__uint(max_entries, 1); /* set to the number of cores */
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} devices SEC(".maps");

/* The number of each flow's last frame, and that there is one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1); /* set to the number of flows */
} numbers SEC(".maps");

static __always_inline void check_order(const void *frame, const void *end, struct counter *c)
{
	__u32 flow, number, *last;

	if (frame + IP4_L4 + 4 > end)
		return;
	flow = flow_number(get32(frame + (back ? IP4_SOURCE : IP4_TARGET)), get16(frame + IP4_L4 + (back ? 0 : 2)));
	last = bpf_map_lookup_elem(&numbers, &flow);
	if (!last)
		return;
	number = get16(frame + IP4_ID);
	if (*last && (__s16)(number - *last) <= 0)
		c->disordered++;
	*last = number | 1 << 16;
}

static __always_inline void count_one(const void *frame, const void *end)
{
	__u32 core = bpf_get_smp_processor_id();
	struct counter *c = bpf_map_lookup_elem(&counters, &core);

	if (!c)
		return;
	c->frames++;
	if (numbered)
		check_order(frame, end, c);
	if (c->frames & STAMP_MASK)
		return;
	c->last_ns = bpf_ktime_get_ns();
	c->last_frames = c->frames;
	if (!c->first_ns) {
		c->first_ns = c->last_ns;
		c->first_frames = c->frames;
	}
}

SEC("xdp")
int count(struct xdp_md *ctx)
{
	const void *frame = (void *)(long)ctx->data + tag_len, *end = (void *)(long)ctx->data_end;

	if (!is_ours(frame, end, ethertype, protocol))
		return XDP_PASS;
	count_one(frame, end);
	return XDP_DROP;
}

SEC("tcx/egress")
int count_egress(struct __sk_buff *skb)
{
	const void *frame = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (!is_ours(frame, end, ethertype, protocol))
		return TCX_NEXT;
	count_one(frame, end);
	return TCX_DROP;
}

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

static __always_inline int readdress(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (!is_ours(frame + tag_len, end, ethertype, protocol))
		return 0;
	*(__u64 *)frame = addresses_low;
	*(__u32 *)(frame + 8) = addresses_high;
	return 1;
}

SEC("xdp")
int redirect(struct xdp_md *ctx)
{
	return readdress(ctx) ? bpf_redirect(leave_by, 0) : XDP_PASS;
}

SEC("xdp")
int redirect_map(struct xdp_md *ctx)
{
	return readdress(ctx) ? bpf_redirect_map(&devices, 0, 0) : XDP_PASS;
}

/* What a frame of a session has in front of an IPv4 packet. */
struct session_head {
	__u64 addresses_low;
	__u32 addresses_high;
	__be16 type, kind, id, length, proto;
} __attribute__((packed));

#define SESSION_BYTES 8

/* Puts the session in front of a frame's IPv4 packet. Nothing else that a router does. */
static __always_inline int enter_session(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct session_head *h;
	__u16 length;

	if (!is_ours(frame, end, 0x0800, protocol))
		return 0;
	length = get16(frame + IP4_LEN);
	if (bpf_xdp_adjust_head(ctx, -SESSION_BYTES))
		return 0;
	h = (void *)(long)ctx->data;
	if ((void *)(h + 1) > (void *)(long)ctx->data_end)
		return 0;
	h->addresses_low = addresses_low;
	h->addresses_high = addresses_high;
	h->type = bpf_htons(0x8864);
	h->kind = bpf_htons(0x1100);
	h->id = bpf_htons(session);
	h->length = bpf_htons(length + sizeof(h->proto));
	h->proto = bpf_htons(0x0021);
	return 1;
}

/* Takes the session off a frame. */
static __always_inline int leave_session(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (!is_ours(frame + SESSION_BYTES, end, 0x0021, protocol) || bpf_xdp_adjust_head(ctx, SESSION_BYTES))
		return 0;
	frame = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (frame + ETH_LEN > end)
		return 0;
	*(__u64 *)frame = addresses_low;
	*(__u32 *)(frame + 8) = addresses_high;
	*(__be16 *)(frame + 12) = bpf_htons(0x0800);
	return 1;
}

static __always_inline int move(struct xdp_md *ctx)
{
	return back ? leave_session(ctx) : enter_session(ctx);
}

SEC("xdp")
int redirect_session(struct xdp_md *ctx)
{
	return move(ctx) ? bpf_redirect(leave_by, 0) : XDP_PASS;
}

SEC("xdp")
int redirect_map_session(struct xdp_md *ctx)
{
	return move(ctx) ? bpf_redirect_map(&devices, 0, 0) : XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
