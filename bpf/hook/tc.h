/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the other headers need from the hook, for TCX; see hook/xdp.h. */
#ifndef WEIR_HOOK_H
#define WEIR_HOOK_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "config.h"
#include "hook/context.h"
#include "hook/mark.h"
#include "hook/note.h"
#include "packet/packet.h"

typedef struct __sk_buff hook_ctx;

#define HOOK_IS_XDP 0
#define HOOK_PASS   TCX_NEXT /* other programs see it too */
#define HOOK_DROP   TCX_DROP

#define hook_ifindex(ctx)  ((ctx)->ifindex)
#define hook_length(ctx)   ((ctx)->len)
#define hook_linear(ctx)   ((ctx)->len) /* the kernel hides where the bytes are */
#define hook_mark(ctx)	   ((ctx)->mark & ~mark_mask)
#define hook_gso_size(ctx) ((ctx)->gso_size)

#define HOOK_MOVES 1

/* Whether the frame has so many bytes that hook_linear() does not count: never. */
static __always_inline int hook_has(hook_ctx *ctx, __u32 bytes)
{
	(void)ctx;
	(void)bytes;
	return 0;
}

/* Sends the frame through TCX egress of its device, which lets it through. */
static __always_inline int hook_redirect(hook_ctx *ctx, __u32 ifindex)
{
	note_write(ctx, ifindex);
	return bpf_redirect(ifindex, 0);
}

/* Makes the headers linear. Returns < 0 if the frame has no more bytes than are linear. */
#define PULL_LENGTH 768
static __always_inline int hook_pull(hook_ctx *ctx)
{
	__u32 want = ctx->len < PULL_LENGTH ? ctx->len : PULL_LENGTH;

	if (hook_data(ctx) + want <= hook_data_end(ctx))
		return -1;
	return bpf_skb_pull_data(ctx, want);
}

/* Whether the frame has a tag that is not among its bytes. */
static __always_inline int hook_is_tagged(hook_ctx *ctx)
{
	return ctx->vlan_present;
}

/*
 * Whether a packet of an interface without Ethernet headers has one: that of the frame which it
 * came in, encrypted. The kernel does not say how many bytes it has put in front of the IP header.
 * But it reads from there: with nothing in front, the last linear byte is as far from there as
 * from the start.
 */
static __always_inline int hook_is_framed(hook_ctx *ctx)
{
	__u64 last = hook_data_end(ctx) - hook_data(ctx);
	__u8 byte;

	asm volatile("" : "+r"(last)); /* else clang computes ~data, which the verifier refuses */
	last--;
	return bpf_skb_load_bytes_relative(ctx, last, &byte, sizeof(byte), BPF_HDR_START_NET) != 0;
}

static __always_inline int hook_load(hook_ctx *ctx, __u32 offset, void *to, __u32 length)
{
	return bpf_skb_load_bytes(ctx, offset, to, length);
}

static __always_inline int hook_store(hook_ctx *ctx, __u32 offset, void *from, __u32 length)
{
	return bpf_skb_store_bytes(ctx, offset, from, length, 0);
}

/* The same for bytes that no checksum of the headers covers, so that the card's sum over the
 * frame stays right. */
static __always_inline int hook_store_summed(hook_ctx *ctx, __u32 offset, void *from, __u32 length)
{
	return bpf_skb_store_bytes(ctx, offset, from, length, BPF_F_RECOMPUTE_CSUM);
}

/* Sets the priority and queue of a QOS_* word. A priority replaces what was set. A queue
 * alone leaves the lower half, where priorities are. */
static __noinline void hook_prioritize(hook_ctx *ctx, __u32 qos)
{
	__u32 low = qos & QOS_PRIO ? qos & QOS_PRIO_MASK : ctx->priority & 0xffff;

	if (qos) {
		ctx->priority = qos >> QOS_QUEUE_SHIFT << QOS_QUEUE_SHIFT | low;
		note_priority(ctx);
	}
}

/* Names the class of a qdisc that takes the packet where it leaves. fallback: it would without a
 * name, too; so the priority stays unless it looks like the name of another. */
static __always_inline void hook_classify(hook_ctx *ctx, __u32 handle, int fallback)
{
	if (!fallback || (ctx->priority ^ handle) >> 16 == 0)
		ctx->priority = handle;
	note_priority(ctx);
}

/* Tells queues that share among hosts the number of the packet's: TELL_HOST and so on. */
static __always_inline void hook_tell_host(hook_ctx *ctx, __u32 number)
{
	ctx->tc_index = number;
}

/* A packet that has waited where it came in still has the name of its class there. It means nothing
 * where it leaves. */
static __always_inline void hook_leave_class(hook_ctx *ctx)
{
	if (queues && ctx->priority >> 16 == QUEUE_HANDLE >> 16)
		ctx->priority = 0;
}

/* Sends a packet to a class of the qdisc of an IFB. The kernel takes it from there back to where it
 * came in, behind TCX ingress, and to the stack. Every frame there has an Ethernet header. */
static __always_inline int hook_wait(hook_ctx *ctx, __u32 device, __u32 handle, int from_l3)
{
	if (from_l3 && bpf_skb_change_head(ctx, sizeof(struct ethhdr), 0))
		return HOOK_DROP;
	ctx->priority = handle;
	return bpf_redirect(device, 0);
}

/* Returns the number that a socket or the stack has set as the packet's priority. */
static __always_inline __u32 hook_priority(hook_ctx *ctx)
{
	return ctx->priority & 0xffff;
}

/* Whether the frame came with a tag that the kernel has taken out; *tci is then the tag. */
static __always_inline int hook_tag(hook_ctx *ctx, const struct packet *p, __u16 *tci)
{
	(void)p;
	return note_is_tag(ctx, tci);
}

static __always_inline void hook_set_mark(hook_ctx *ctx, __u32 mark)
{
	ctx->mark = mark;
}

/* TCX runs where the mark can be set at once; the priority is already set. */
static __always_inline int hook_handoff(hook_ctx *ctx, __u32 mark, const struct packet *p, __u32 waits)
{
	(void)p;
	(void)waits;
	hook_set_mark(ctx, mark);
	return 0;
}

/* Only XDP leaves a redirect to another program. */
static __always_inline int hook_handoff_redirect(hook_ctx *ctx, __u32 number, const struct packet *p,
						 const struct out_mark *out)
{
	(void)ctx;
	(void)number;
	(void)p;
	(void)out;
	return -1;
}

/* Only XDP has a frame before the stack's work. */
static __always_inline int hook_steer(__u32 core)
{
	(void)core;
	return HOOK_PASS;
}

/* Sends a frame to an interface as it is. */
static __always_inline int hook_bridge(hook_ctx *ctx, __u32 ifindex, const struct packet *p)
{
	(void)p;
	ctx->mark &= ~mark_mask;
	note_write(ctx, ifindex);
	ctx->cb[3] = NOTE_BRIDGE;
	return bpf_redirect(ifindex, 0);
}

/* Returns what XDP left in front of the frame for this interface; < 0: nothing. The
 * kernel keeps it when it takes a tag out of the frame (skb_reorder_vlan_header). */
static __always_inline int hook_metadata(hook_ctx *ctx, struct metadata *to)
{
	struct metadata *m = (void *)(long)ctx->data_meta;

	if ((void *)(m + 1) > hook_data(ctx) || m->magic != METADATA_MAGIC || m->ifindex != ctx->ifindex)
		return -1;
	*to = *m;
	return 0;
}

/* Whether the stack, too, takes a frame for another station's. The destination is not
 * the address that weir knows for the device. But a bridge also has its ports'
 * addresses, a bond may have its links', and a device's own address may just have
 * changed. */
static __always_inline int hook_for_others(hook_ctx *ctx)
{
	return ctx->pkt_type == PACKET_OTHERHOST;
}

/* Whether a checksum, at offset, is left for the device to complete. Then the kernel
 * does not correct it for changes outside the pseudo header. */
__noinline int hook_partial(hook_ctx *ctx, __u32 offset)
{
	__u16 before, after;

	if (bpf_skb_load_bytes(ctx, offset, &before, sizeof(before)) ||
	    bpf_l4_csum_replace(ctx, offset, 0, 1, sizeof(before)) ||
	    bpf_skb_load_bytes(ctx, offset, &after, sizeof(after)) ||
	    bpf_skb_store_bytes(ctx, offset, &before, sizeof(before), 0))
		return 0;
	return before == after;
}

/* Cuts the frame at end, then adds room bytes in front of the IP header. The result is
 * one segment, whatever it was before. */
static __always_inline int hook_resize(hook_ctx *ctx, __u32 end, __u32 room)
{
	if (bpf_skb_change_tail(ctx, end, 0))
		return -1;
	return room ? bpf_skb_adjust_room(ctx, room, BPF_ADJ_ROOM_MAC, 0) : 0;
}

/* Removes bytes between the Ethernet header and the end of the IP header. */
static __always_inline int hook_shrink(hook_ctx *ctx, __u32 bytes)
{
	return bytes ? bpf_skb_adjust_room(ctx, -(__s32)bytes, BPF_ADJ_ROOM_MAC, 0) : 0;
}

/* Makes more room in front of the L4 header, for a packet of a family. The caller writes all
 * that is there, and the EtherType. */
static __always_inline int hook_change_family(hook_ctx *ctx, __u8 family, int more)
{
	const int headers = 20; /* by which the kernel makes room: IPv6's header is longer */

	if (bpf_skb_change_proto(ctx, family == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6), 0))
		return -1;
	more -= family == 4 ? -headers : headers;
	return more ? bpf_skb_adjust_room(ctx, more, BPF_ADJ_ROOM_MAC, 0) : 0;
}

/* The rest needs the parser's types. */
#include "packet/csum.h"
#include "packet/parse.h"

/* Sends the frame back to where it came from: out, or up to the box's own socket. On lo
 * it goes out of lo, which brings it back together with its route. Without the route the
 * stack would take such addresses for martians. */
static __always_inline int hook_reply(hook_ctx *ctx, __u32 ifindex, const struct interface *i, int egress)
{
	note_write(ctx, ifindex);
	return bpf_redirect(ifindex, egress && !(i->flags & INTERFACE_LO) ? BPF_F_INGRESS : 0);
}

/* Writes the MACs. A packet from a device without Ethernet header gets one. */
static __always_inline int hook_frame(hook_ctx *ctx, struct headers *h, const struct nexthop *n, int from_l3,
			     __u8 family)
{
	const __u32 *mac = (const __u32 *)n->dst;
	struct ethhdr *eth;
	__u32 *to;

	if (n->flags & NEXTHOP_L3)
		return 0;
	if (from_l3) {
		if (bpf_skb_change_head(ctx, sizeof(*eth), 0))
			return -1;
		h->eth = hook_data(ctx);
		h->end = hook_data_end(ctx);
	}
	eth = header_eth(h);
	if (!eth)
		return -1;
	to = (__u32 *)eth;
	to[0] = mac[0];
	to[1] = mac[1];
	to[2] = mac[2];
	if (from_l3)
		eth->h_proto = family == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	return 0;
}

/* Sends a frame to the next hop: its MACs, then the device. Returns the action, or < 0. */
static __always_inline int hook_send(hook_ctx *ctx, struct headers *h, const struct nexthop *n, int from_l3,
				     __u8 family)
{
	return hook_frame(ctx, h, n, from_l3, family) ? -1 : hook_redirect(ctx, n->ifindex);
}

/* Gives a packet from a device without Ethernet header room for one, with the type of its family. */
static __always_inline int hook_begin_frame(hook_ctx *ctx, __u8 family)
{
	__be16 type = family == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);

	return bpf_skb_change_head(ctx, sizeof(struct ethhdr), 0) ||
	       bpf_skb_store_bytes(ctx, __builtin_offsetof(struct ethhdr, h_proto), &type, sizeof(type), 0);
}

/* Has the kernel send a finished packet to a neighbour of an interface, whose address it
 * resolves; without one, as its own routes of the interface say. Returns the action, or < 0. */
static __always_inline int hook_send_neighbour(hook_ctx *ctx, __u32 ifindex, struct bpf_redir_neigh *to, int from_l3,
					       __u8 family)
{
	if (from_l3 && hook_begin_frame(ctx, family))
		return -1;
	note_write(ctx, ifindex);
	return bpf_redirect_neigh(ifindex, to, to ? sizeof(*to) : 0, 0);
}

/* Has TCX ingress of an interface do that, for a packet of the box itself: there it has no
 * route any more. If it had, the kernel would write the MACs of the route's own neighbour
 * once it knows the address (neigh_update). */
static __always_inline int hook_send_again(hook_ctx *ctx, __u32 ifindex, __u32 nexthop, int from_l3, __u8 family)
{
	if (from_l3 && hook_begin_frame(ctx, family))
		return -1;
	note_send(ctx, ifindex, nexthop, ctx->priority);
	return bpf_redirect(ifindex, BPF_F_INGRESS);
}

/* Sends a copy of the frame to a next hop, by TCX ingress of its interface. */
static __always_inline void hook_copy(hook_ctx *ctx, __u32 ifindex, __u32 nexthop)
{
	__u32 before[5] = {ctx->cb[0], ctx->cb[1], ctx->cb[2], ctx->cb[3], ctx->cb[4]};

	note_send(ctx, ifindex, nexthop, 0);
	bpf_clone_redirect(ctx, ifindex, BPF_F_INGRESS);
	ctx->cb[0] = before[0];
	ctx->cb[1] = before[1];
	ctx->cb[2] = before[2];
	ctx->cb[3] = before[3];
	ctx->cb[4] = before[4];
}

/* TCX redirects to logical interfaces themselves, and the kernel adds the tag. */
static __always_inline int hook_grow(hook_ctx *ctx, int bytes)
{
	(void)ctx;
	(void)bytes;
	return -1;
}

/* Whether a tag is in the skb, not in the frame. The VLAN device's own hooks handle such
 * frames. */
static __always_inline int tc_is_tagged(const struct __sk_buff *skb)
{
	return skb->vlan_present && skb->vlan_tci & VLAN_ID_MASK;
}

/* Whether the frame has another tag behind a priority tag in the skb. The stack removes
 * both without asking TCX again. Only a frame whose tag has an id goes to a VLAN device,
 * whose hooks handle it. */
static __always_inline int tc_is_tagged_twice(struct __sk_buff *skb)
{
	__be16 tci;

	if (!skb->vlan_present ||
	    (skb->protocol != bpf_htons(ETH_P_8021Q) && skb->protocol != bpf_htons(ETH_P_8021AD)))
		return 0;
	return hook_load(skb, sizeof(struct ethhdr), &tci, sizeof(tci)) || !(tci & bpf_htons(VLAN_ID_MASK));
}

#endif
