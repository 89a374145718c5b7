/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The interface that a frame belongs to under XDP: the device that it came in by, or a
 * VLAN device or PPPoE session on that one. The daemon enters those whose frames XDP may
 * handle. All other frames are left to the stack, and to the TCX programs of the device
 * that the stack gives them to.
 *
 * An entry is one word, so that it changes at once: carrying interface << 48 | EtherType
 * as in the frame << 32 | id << 16 | logical interface.
 */
#ifndef WEIR_PACKET_LOGICAL_H
#define WEIR_PACKET_LOGICAL_H

#include <linux/if_ether.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>

#include "packet/pppoe.h"
#include "shared.h"

#define VLAN_ID_MASK 0x0fff

/* A tag, as it follows the EtherType that announces it. */
struct tag {
	__be16 tci;
	__be16 proto; /* EtherType of what follows */
};

static __always_inline int logical_is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* Returns the first index of the bucket in which an entry is searched. */
static __always_inline __u32 logical_bucket(__u64 entry)
{
	__u64 hash = (entry >> 16) * 0x9e3779b97f4a7c15ULL;

	return (hash >> 32) & (MAX_LOGICALS - LOGICAL_BUCKET);
}

/* Returns the logical interface for an interface and a tag; 0: none. */
static __always_inline __u32 logical_find(__u32 carrier, __be16 type, __u16 id)
{
	__u64 want = (__u64)carrier << 48 | (__u64)type << 32 | (__u32)id << 16, entry;
	__u32 bucket = logical_bucket(want), i;

	for (i = 0; i < LOGICAL_BUCKET; i++) {
		entry = *(volatile __u64 *)&shared.logicals[(bucket + i) & (MAX_LOGICALS - 1)];
		if (!((entry ^ want) >> 16))
			return entry & 0xffff;
	}
	return 0;
}

/* An interface, and the EtherType of a packet that came in by it. */
#define BELONGS(ifindex, proto) ((__u64)(proto) << 32 | (ifindex))
#define BELONGS_TO(found)	((__u32)(found))
#define BELONGS_PROTO(found)	((__be16)((found) >> 32))

/* Returns the interface whose MAC is that of the concentrator of a PPPoE interface's session. */
static __always_inline const struct interface *logical_line(__u32 ifindex, const struct interface *i)
{
	return &shared.interfaces[(ifindex + i->line) & (MAX_IFINDEX - 1)];
}

/* Whether a frame of a session is from its concentrator. */
static __always_inline int logical_is_from(const struct ethhdr *eth, __u32 ifindex)
{
	const struct interface *i = &shared.interfaces[ifindex & (MAX_IFINDEX - 1)];
	const __u16 *mac = (const __u16 *)logical_line(ifindex, i)->mac, *src = (const __u16 *)eth->h_source;

	return i->line && !((src[0] ^ mac[0]) | (src[1] ^ mac[1]) | (src[2] ^ mac[2]));
}

/* Notes that a packet of a PPPoE interface's session has come: each second, not for each packet. */
static __always_inline void logical_hear(__u32 ifindex)
{
	const struct interface *i = &shared.interfaces[ifindex & (MAX_IFINDEX - 1)];
	struct interface *line = (struct interface *)logical_line(ifindex, i);

	if (shared.now - line->asked >= TICKS_PER_SECOND)
		line->asked = shared.now;
}

/*
 * Closes the session of a PPPoE interface: XDP takes none of its frames and makes none. What comes meets
 * weir_pppoe_in, and what leaves goes through TCX to weir_pppoe_out (bpf/pppoe.bpf.c), which drop it. The
 * daemon opens the next one.
 */
static __always_inline void logical_close(__u32 ifindex)
{
	struct interface *i = &shared.interfaces[ifindex & (MAX_IFINDEX - 1)];

	i->line = 0;
	i->parent = 0;
	__sync_fetch_and_add(&shared.route_generation, 1);
}

/* Returns the EtherType of the packet in a session's frame; 0: the stack handles the
 * frame, because it has no IP packet, or its lengths contradict each other. */
static __always_inline __be16 logical_session(const struct session *s, const void *end)
{
	const __be16 *ip = (const void *)(s + 1);
	long rest = end - (const void *)s, room = bpf_ntohs(s->length);

	asm volatile("" : "+r"(rest)); /* else clang adds pointers as 32 bits */
	if (s->kind != bpf_htons(PPPOE_SESSION) || (const void *)(ip + 3) > end ||
	    rest < room + (long)(sizeof(*s) - sizeof(s->proto)) || room < (long)sizeof(s->proto))
		return 0;
	room -= sizeof(s->proto);
	if (s->proto == bpf_htons(PPP_IP) && bpf_ntohs(ip[1]) <= room)
		return bpf_htons(ETH_P_IP);
	if (s->proto == bpf_htons(PPP_IPV6) && (long)sizeof(struct ipv6hdr) + bpf_ntohs(ip[2]) <= room)
		return bpf_htons(ETH_P_IPV6);
	return 0;
}

/*
 * Returns what a frame belongs to that came in by ifindex and is no plain IP packet. It
 * is a global function and returns one number, so that the verifier follows it once, and
 * what follows once, for any number of tags and sessions.
 */
__noinline __u64 logical_of(hook_ctx *ctx, __u32 ifindex)
{
	const struct ethhdr *eth = hook_data(ctx);
	const struct tag *tag = (const void *)(eth + 1);
	const struct session *session;
	__u32 found = ifindex, inner, layer;
	__be16 type, proto;

	if ((const void *)tag > hook_data_end(ctx))
		return BELONGS(ifindex, 0);
	type = eth->h_proto;
	for (layer = 0; layer < ENCAP_LAYERS && logical_is_tag(type); layer++, tag++) {
		if ((const void *)(tag + 1) > hook_data_end(ctx))
			return BELONGS(ifindex, eth->h_proto);
		found = logical_find(found, type, bpf_ntohs(tag->tci) & VLAN_ID_MASK);
		if (!found)
			return BELONGS(ifindex, eth->h_proto);
		type = tag->proto;
	}
	if (type == bpf_htons(ETH_P_PPP_SES) && layer < ENCAP_LAYERS) {
		session = (const void *)tag;
		proto = 0;
		if ((const void *)(session + 1) <= hook_data_end(ctx))
			proto = logical_session(session, hook_data_end(ctx));
		inner = proto ? logical_find(found, type, bpf_ntohs(session->id)) : 0;
		if (inner && logical_is_from(eth, inner)) {
			logical_hear(inner);
			found = inner;
			type = proto;
		}
	}
	if (!(shared.interfaces[found & (MAX_IFINDEX - 1)].flags & INTERFACE_PRESENT))
		return BELONGS(ifindex, eth->h_proto);
	return BELONGS(found, type);
}

#endif
