/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is between the MACs and the IP header of a frame: VLAN tags, a PPPoE session, the
 * EtherType. It is found with the next hop (nexthop.h) and written when the frame
 * leaves.
 */
#ifndef WEIR_ROUTE_ENCAP_H
#define WEIR_ROUTE_ENCAP_H

#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>

#include "packet/logical.h"
#include "packet/packet.h"
#include "shared.h"

#define TAG_LENGTH	  4
#define EXCESS_MAX	  0xff

static __always_inline __u8 encap_layer_length(__be16 type)
{
	if (!type)
		return 0;
	return type == bpf_htons(ETH_P_PPP_SES) ? PPPOE_LENGTH : TAG_LENGTH;
}

static __always_inline struct layer encap_layer(const struct interface *i)
{
	return (struct layer){ .type = i->tag_type, .id = bpf_htons(i->tag) };
}

static __always_inline struct interface *encap_carrier(__u32 ifindex)
{
	return &shared.interfaces[ifindex & (MAX_IFINDEX - 1)];
}

/* Why TCX has to send what leaves by an interface. */
#define ENCAP_STACK (INTERFACE_ETHER_OUT | INTERFACE_HOLDS)

/* Finds how XDP sends frames that leave by an interface, with packets of up to mtu
 * bytes. Returns 0 if it cannot: there are too many layers, a redirect would lose such
 * frames, or they meet ether rules or a qdisc, for which TCX has to send them. */
static __always_inline int encap_find(struct encap *e, __u32 ifindex, const struct interface *i, __u32 mtu)
{
	const struct interface *carrier = encap_carrier(i->parent);
	__u32 most;

	__builtin_memset(e, 0, sizeof(*e));
	e->device = ifindex;
	if (!i->parent || i->flags & ENCAP_STACK)
		return (i->flags & (INTERFACE_TARGET | ENCAP_STACK)) == INTERFACE_TARGET;
	e->device = i->parent;
	e->layer[0] = encap_layer(i);
	if (carrier->flags & INTERFACE_HOLDS)
		return 0;
	if (carrier->parent) {
		e->device = carrier->parent;
		e->layer[1] = e->layer[0];
		e->layer[0] = encap_layer(carrier);
		carrier = encap_carrier(carrier->parent);
	}
	e->length = encap_layer_length(e->layer[0].type) + encap_layer_length(e->layer[1].type);
	/* the kernel allows a redirect one tag more than the device's MTU */
	most = carrier->mtu + TAG_LENGTH - e->length;
	if (carrier->parent || (carrier->flags & (INTERFACE_TARGET | INTERFACE_HOLDS)) != INTERFACE_TARGET || mtu > most + EXCESS_MAX)
		return 0;
	e->excess = mtu > most ? mtu - most : 0;
	return 1;
}

static __always_inline int encap_equal(const struct encap *a, const struct encap *b)
{
	const __u32 *x = (const __u32 *)a, *y = (const __u32 *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]));
}

/* Whether a frame leaves, or came, with more than a plain Ethernet header in front of
 * its packet. */
static __always_inline int encap_needed(const struct packet *p, const struct nexthop *n)
{
	return HOOK_IS_XDP && ((p->l3_offset ^ sizeof(struct ethhdr)) | n->encap.length);
}

/*
 * Writes everything in front of an IP packet on its way to a next hop. data: the frame's
 * start, with room for it. length: of the packet. Returns < 0 if the frame is shorter.
 */
static __always_inline int encap_write(void *data, void *end, const struct nexthop *n, __u8 family, __u32 length)
{
	const __u32 *mac = (const __u32 *)n->dst;
	__u32 *to = data, i;
	__be16 *at = data + 2 * ETH_ALEN;
	struct layer l;

	if ((void *)(to + 3) > end)
		return -1;
	to[0] = mac[0];
	to[1] = mac[1];
	to[2] = mac[2];
	for (i = 0; i < ENCAP_LAYERS; i++) {
		l = n->encap.layer[i];
		if (!l.type)
			break;
		if ((void *)(at + 5) > end)
			return -1;
		at[0] = l.type;
		if (l.type == bpf_htons(ETH_P_PPP_SES)) {
			at[1] = bpf_htons(PPPOE_SESSION);
			at[2] = l.id;
			at[3] = bpf_htons(length + sizeof(__be16));
			at[4] = family == 4 ? bpf_htons(PPP_IP) : bpf_htons(PPP_IPV6);
			return 0;
		}
		at[1] = l.id;
		at += 2;
	}
	if ((void *)(at + 1) > end)
		return -1;
	*at = family == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	return 0;
}

#endif
