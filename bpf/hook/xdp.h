/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the other headers need from the hook, for XDP. hook/tc.h has the same names for
 * TCX. An entry file includes one of the two, and no other file knows which.
 */
#ifndef WEIR_HOOK_H
#define WEIR_HOOK_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "config.h"
#include "hook/context.h"
#include "hook/mark.h"
#include "packet/packet.h"

typedef struct xdp_md hook_ctx;

#define hook_data_meta(ctx) as_pointer((ctx)->data_meta)

#define HOOK_IS_XDP 1
#define HOOK_PASS   XDP_PASS
#define HOOK_DROP   XDP_DROP

#define hook_ifindex(ctx)   ((ctx)->ingress_ifindex)
#define hook_length(ctx)    ((__u32)bpf_xdp_get_buff_len(ctx))
#define hook_linear(ctx)    ((__u32)(hook_data_end(ctx) - hook_data(ctx)))
#define hook_mark(ctx)	    0
#define hook_gso_size(ctx)  0

/* Whether rewrite_l4_csum() moves the frame, so that pointers must be reloaded. */
#define HOOK_MOVES 0

/* Whether the frame has so many bytes, in all of its buffers. */
static __always_inline int hook_has(hook_ctx *ctx, __u32 bytes)
{
	return hook_length(ctx) >= bytes;
}

/* No bytes can be pulled into the first buffer. */
static __always_inline int hook_pull(hook_ctx *ctx)
{
	(void)ctx;
	return -1;
}

/* Whether the frame has a tag that is not among its bytes. */
static __always_inline int hook_is_tagged(hook_ctx *ctx)
{
	(void)ctx;
	return 0;
}

/* Whether a packet of an interface without Ethernet headers has one. */
static __always_inline int hook_is_framed(hook_ctx *ctx)
{
	(void)ctx;
	return 0;
}

static __always_inline int hook_load(hook_ctx *ctx, __u32 offset, void *to, __u32 length)
{
	return bpf_xdp_load_bytes(ctx, offset, to, length);
}

static __always_inline int hook_store(hook_ctx *ctx, __u32 offset, void *from, __u32 length)
{
	return bpf_xdp_store_bytes(ctx, offset, from, length);
}

/* The same: nobody has summed up the frame yet. */
static __always_inline int hook_store_summed(hook_ctx *ctx, __u32 offset, void *from, __u32 length)
{
	return hook_store(ctx, offset, from, length);
}

/* A packet that XDP redirects has no mark. */
static __always_inline void hook_set_mark(hook_ctx *ctx, __u32 mark)
{
	(void)ctx;
	(void)mark;
}

/* If the packet goes up, TCX does this: packet.qos goes with it. */
static __always_inline void hook_prioritize(hook_ctx *ctx, __u32 qos)
{
	(void)ctx;
	(void)qos;
}

/* XDP sends nothing through a qdisc. */
static __always_inline void hook_classify(hook_ctx *ctx, __u32 handle, int fallback)
{
	(void)ctx;
	(void)handle;
	(void)fallback;
}

static __always_inline void hook_tell_host(hook_ctx *ctx, __u32 number)
{
	(void)ctx;
	(void)number;
}

/* Likewise. TCX ingress does it. */
static __always_inline int hook_wait(hook_ctx *ctx, __u32 device, __u32 handle, int from_l3)
{
	(void)ctx;
	(void)device;
	(void)handle;
	(void)from_l3;
	return HOOK_PASS;
}

/* TCX ingress checks again, and knows. */
static __always_inline int hook_for_others(hook_ctx *ctx)
{
	(void)ctx;
	return 1;
}

/* XDP sees only complete checksums. */
static __always_inline int hook_partial(hook_ctx *ctx, __u32 offset)
{
	(void)ctx;
	(void)offset;
	return 0;
}

/* Cuts the frame at end, then adds room bytes in front. */
static __always_inline int hook_resize(hook_ctx *ctx, __u32 end, __u32 room)
{
	int more = (int)end - (int)hook_length(ctx);

	if (more && bpf_xdp_adjust_tail(ctx, more))
		return -1;
	return room ? bpf_xdp_adjust_head(ctx, -(int)room) : 0;
}

/* Only used for partial checksums. */
static __always_inline int hook_shrink(hook_ctx *ctx, __u32 bytes)
{
	(void)ctx;
	(void)bytes;
	return -1;
}

/* Makes the frame begin this many bytes earlier; < 0, without a change, if the driver
 * has no room. A frame that gets shorter is filled up: not every driver pads what XDP
 * sends. */
static __always_inline int hook_grow(hook_ctx *ctx, int bytes)
{
	long length = hook_data_end(ctx) - hook_data(ctx); /* other buffers only follow a long one */
	int lacks;

	asm volatile("" : "+r"(length)); /* else pointers are added as 32 bits */
	lacks = ETH_ZLEN - (int)length - bytes;
	if (bytes < 0 && lacks > 0 && bpf_xdp_adjust_tail(ctx, lacks))
		return -1;
	return bytes ? bpf_xdp_adjust_head(ctx, -bytes) : 0;
}

/* Makes more room in front of the L4 header, for a packet of a family. The caller writes all
 * that is there. < 0: the driver has no room. */
static __always_inline int hook_change_family(hook_ctx *ctx, __u8 family, int more)
{
	(void)family;
	return hook_grow(ctx, more);
}

/* The rest needs the parser's types. */
#include "packet/csum.h"
#include "packet/parse.h"

/* Takes the session off a frame: TCX ingress of its carrier gives it to the session's device as it
 * is then (bpf/pppoe.bpf.c), and the kernel may merge such frames. */
__noinline int hook_strip(hook_ctx *ctx, __u32 ifindex)
{
	int tagged = shared.interfaces[ifindex & (MAX_IFINDEX - 1)].front > sizeof(struct session);
	__u32 *data = hook_data(ctx);
	const __u8 *ip = (void *)data + sizeof(struct ethhdr) + sizeof(struct session);
	__be16 *type = (void *)data + 2 * ETH_ALEN + sizeof(struct session);

	if (tagged) {
		ip += sizeof(struct tag);
		type += sizeof(struct tag) / sizeof(*type);
	}
	if ((void *)(data + 6) > hook_data_end(ctx) || (void *)(ip + 1) > hook_data_end(ctx))
		return -1;
	*type = *ip >> 4 == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	if (tagged)
		data[5] = data[3];
	data[4] = data[2];
	data[3] = data[1];
	data[2] = data[0];
	return bpf_xdp_adjust_head(ctx, sizeof(struct session));
}

/* Makes room in front of the frame for what TCX ingress of the packet's interface needs
 * to know. NULL if the driver has no room. */
static __always_inline struct metadata *hook_front(hook_ctx *ctx, const struct packet *p)
{
	struct metadata *m;

	if (shared.interfaces[p->ifindex & (MAX_IFINDEX - 1)].line && hook_strip(ctx, p->ifindex))
		return 0;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*m)))
		return 0;
	m = (void *)(long)ctx->data_meta;
	if ((void *)(m + 1) > hook_data(ctx))
		return 0;
	m->magic = METADATA_MAGIC;
	m->ifindex = p->ifindex;
	m->qos = p->qos;
	m->out = (struct out_mark){}; /* no garbage: the kernel compares it when it merges packets */
	return m;
}

/* Passes the packet to the stack with this mark. waits: the class in which it waits on its way; 0:
 * it does not. < 0: it cannot. */
static __always_inline int hook_handoff(hook_ctx *ctx, __u32 mark, const struct packet *p, __u32 waits)
{
	struct metadata *m = hook_front(ctx, p);

	if (!m)
		return -1;
	m->mark = mark;
	m->number = waits;
	return 0;
}

/* Passes the packet to TCX ingress, which redirects it. number: of its state; 0: none,
 * then out is what it leaves with. < 0: it cannot. */
static __always_inline int hook_handoff_redirect(hook_ctx *ctx, __u32 number, const struct packet *p,
						 const struct out_mark *out)
{
	struct metadata *m = hook_front(ctx, p);

	if (!m)
		return -1;
	m->mark = p->mark;
	m->number = METADATA_REDIRECT | number;
	if (out)
		m->out = *out;
	return 0;
}

/* Sends a frame to an interface as it is: TCX ingress does. < 0: it cannot. */
static __always_inline int hook_bridge(hook_ctx *ctx, __u32 ifindex, const struct packet *p)
{
	return hook_handoff_redirect(ctx, METADATA_BRIDGE | (ifindex & (MAX_IFINDEX - 1)), p, 0) ? -1 : HOOK_PASS;
}

/* Nothing that the box itself sends comes by here. */
static __always_inline __u32 hook_priority(hook_ctx *ctx)
{
	(void)ctx;
	return 0;
}

/* Whether the frame has a tag; *tci is then the last one. */
static __always_inline int hook_tag(hook_ctx *ctx, const struct packet *p, __u16 *tci)
{
	struct {
		__be16 type;
		struct tag tag[ENCAP_LAYERS];
	} head;

	if (p->l3_offset < sizeof(struct ethhdr) + sizeof(struct tag) ||
	    hook_load(ctx, __builtin_offsetof(struct ethhdr, h_proto), &head, sizeof(head)) || !logical_is_tag(head.type))
		return 0;
	*tci = bpf_ntohs(head.tag[logical_is_tag(head.tag[0].proto)].tci);
	return 1;
}

/* The devices to which packets go after a first pass, by index, and the program of the
 * second pass (path/prefetch.h). */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, MAX_IFINDEX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
} prefetch_devices SEC(".maps");

/* Frames on their way to cores that go on with what the kernel holds. Entries are the loader's. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1); /* cores, by the loader */
	__type(key, __u32);
	__type(value, __u32);
} steer_frames SEC(".maps");

/* Has a core go on with a frame that passes to the stack. What is in front of the frame goes with it. */
static __always_inline int hook_steer(__u32 core)
{
	return core == bpf_get_smp_processor_id() ? HOOK_PASS : (int)bpf_redirect_map(&steer_frames, core, XDP_PASS);
}

/*
 * Sends the frame. The kernel runs a devmap program over all frames that one poll sends
 * to the device, or over none; the first frame decides. So if first passes are allowed,
 * all frames go through prefetch_devices.
 */
static __always_inline int hook_redirect(hook_ctx *ctx, __u32 ifindex)
{
	(void)ctx;
	if (shared.interfaces[ifindex & (MAX_IFINDEX - 1)].flags & INTERFACE_DEVMAP)
		return bpf_redirect_map(&prefetch_devices, ifindex, XDP_DROP);
	return bpf_redirect(ifindex, 0);
}

/* Sends the frame back to where it came from, by a redirect if possible: with a peer
 * that has no XDP program, veth leaves what XDP_TX sends in its ring. */
static __always_inline int hook_reply(hook_ctx *ctx, __u32 ifindex, const struct interface *i, int egress)
{
	(void)i;
	(void)egress;
	ifindex = hook_ifindex(ctx); /* not the frame's logical interface */
	return shared.interfaces[ifindex & (MAX_IFINDEX - 1)].flags & INTERFACE_TARGET ? hook_redirect(ctx, ifindex) :
											 XDP_TX;
}

/* Writes the MACs. Interfaces with XDP have Ethernet headers on both sides. */
static __always_inline int hook_frame(hook_ctx *ctx, struct headers *h, const struct nexthop *n, int from_l3,
			     __u8 family)
{
	struct ethhdr *eth = header_eth(h);
	const __u32 *mac = (const __u32 *)n->dst;
	__u32 *to = (__u32 *)eth;

	(void)ctx;
	(void)from_l3;
	(void)family;
	if (!eth)
		return -1;
	to[0] = mac[0];
	to[1] = mac[1];
	to[2] = mac[2];
	return 0;
}

/* Sends a frame to the next hop: its MACs, then the device. Returns the action, or < 0. */
static __always_inline int hook_send(hook_ctx *ctx, struct headers *h, const struct nexthop *n, int from_l3,
				     __u8 family)
{
	return hook_frame(ctx, h, n, from_l3, family) ? -1 : hook_redirect(ctx, n->ifindex);
}

/* Only TCX can. */
static __always_inline int hook_send_neighbour(hook_ctx *ctx, __u32 ifindex, struct bpf_redir_neigh *to, int from_l3,
					       __u8 family)
{
	(void)ctx;
	(void)ifindex;
	(void)to;
	(void)from_l3;
	(void)family;
	return -1;
}

static __always_inline int hook_send_again(hook_ctx *ctx, __u32 ifindex, __u32 nexthop, int from_l3, __u8 family)
{
	(void)ctx;
	(void)ifindex;
	(void)nexthop;
	(void)from_l3;
	(void)family;
	return -1;
}

#endif
