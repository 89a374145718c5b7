/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A next hop: where packets go, and whether one may go there now. The kernel is asked
 * seldom (route/route.h), and its answer is kept in shared.nexthops under a number that
 * states hold.
 */
#ifndef WEIR_ROUTE_NEXTHOP_H
#define WEIR_ROUTE_NEXTHOP_H

#include <linux/bpf.h>

#include "route/encap.h"
#include "route/nexthop_index.h"
#include "packet/parse.h"

#define AF_INET_KERNEL	2
#define AF_INET6_KERNEL 10

/* Notes the kernel's answer. Every core reads the line of a next hop, so it is not
 * written for each new connection, but once a tick or when something differs. */
static __always_inline void nexthop_note(struct nexthop *n, const struct bpf_fib_lookup *f,
				const struct nexthop_key *key, const struct interface *i)
{
	__u16 mtu = f->mtu_result ? f->mtu_result : i->mtu;
	const __u16 *a = (const __u16 *)n->dst, *b = (const __u16 *)f->dmac;
	__u8 flags = NEXTHOP_VALID;
	struct encap encap;

	if (encap_find(&encap, f->ifindex, i, mtu))
		flags |= NEXTHOP_XDP;
	if (i->flags & INTERFACE_L3)
		flags |= NEXTHOP_L3;
	if (n->checked == shared.now && n->flags == flags && n->mtu == mtu && encap_equal(&n->encap, &encap) &&
	    !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])))
		return;
	__builtin_memcpy(n->dst, f->dmac, 6);
	__builtin_memcpy(n->src, f->smac, 6);
	n->gateway = key->gateway;
	n->family = f->family == AF_INET_KERNEL ? 4 : 6;
	n->ifindex = f->ifindex;
	n->mtu = mtu;
	n->encap = encap;
	n->flags = flags;
	n->used = shared.now;
	n->checked = shared.now;
}

/* A state's next hop must be looked up (again) before it is used. */
static __always_inline int nexthop_stale(const struct course *c, const struct nexthop *n)
{
	return c->nexthop_generation != (__u16)shared.route_generation ||
	       shared.now - n->checked >= NEXTHOP_FRESH;
}

static __always_inline struct nexthop *nexthop_get(__u16 number)
{
	return &shared.nexthops[number & (MAX_NEXTHOPS - 1)];
}

/*
 * Without the daemon nobody tells the kernel that a neighbour is in use, so it
 * would never notice that the neighbour changed its MAC: one packet goes by the
 * stack each NEXTHOP_PROBE.
 */
static __always_inline int nexthop_probe(struct nexthop *n)
{
	__u32 last = n->probed;

	if (!daemon_is_dead() || shared.now - last < NEXTHOP_PROBE)
		return 0;
	return __sync_val_compare_and_swap(&n->probed, last, shared.now) == last;
}

/* The length that must fit the next hop's MTU: of one segment, for a super-packet. */
static __always_inline __u32 nexthop_wire_length(hook_ctx *ctx, const struct packet *p)
{
	__u32 headers;

	(void)ctx;
	if (!hook_gso_size(ctx))
		return p->length;
	headers = p->l4_offset - p->l3_offset +
		  (p->tuple.proto == IPPROTO_TCP ? p->tcp_header : sizeof(struct udphdr));
	return headers + hook_gso_size(ctx);
}

/* Why a packet of a state cannot be redirected at once; UNDECIDED if it can. */
static __always_inline enum reason nexthop_obstacle(hook_ctx *ctx, const struct packet *p,
					   const struct nexthop *n)
{
	if (p->flags & PACKET_OPTIONS)
		return REASON_UP_OPTIONS;
	if (p->ttl <= 1)
		return REASON_UP_TTL;
	if (nexthop_wire_length(ctx, p) + (HOOK_IS_XDP ? n->encap.excess : 0) > n->mtu)
		return REASON_UP_MTU;
	if (!(n->flags & NEXTHOP_VALID))
		return REASON_UP_NEIGHBOUR;
	if (HOOK_IS_XDP && !(n->flags & NEXTHOP_XDP))
		return REASON_UP_DEVICE;
	return UNDECIDED;
}

#endif
