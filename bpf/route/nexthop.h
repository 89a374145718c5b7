/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A next hop: where packets go, and whether one may go there now. The kernel is asked
 * rarely (route/route.h). Its answer is kept in shared.nexthops, under a number that
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

/* Whether the next hop that a state holds must be looked up (again) before it is used.
 * generation: of the routes that it was found with. */
static __always_inline int nexthop_is_stale(const struct nexthop *n, __u16 generation)
{
	return generation != (__u16)shared.route_generation || shared.now - n->checked >= NEXTHOP_FRESH;
}

/* Replaces the MACs in what the kernel's look-up found by those of a PPPoE session: the kernel
 * knows no neighbours in it. A function of its own, to save stack. */
__noinline int nexthop_peer(struct bpf_fib_lookup *f)
{
	const struct interface *i;

	if (!f)
		return 0;
	i = &shared.interfaces[f->ifindex & (MAX_IFINDEX - 1)];
	__builtin_memcpy(f->dmac, logical_line(f->ifindex, i)->mac, 6);
	__builtin_memcpy(f->smac, i->mac, 6);
	return 0;
}

/* Stores what the kernel's look-up found. Every core reads the line of a next hop, so it is not
 * written for each new connection, but once a tick or when something differs. known:
 * NEXTHOP_VALID if the neighbour's address is known, and NEXTHOP_NEAR. Without it, each
 * packet looks it up again. A function of its own: inlined, the verifier would follow it once
 * for each way that leads here. */
__noinline int nexthop_note(__u32 number, const struct bpf_fib_lookup *f, const struct nexthop_key *key, __u32 known)
{
	const struct interface *i;
	const __u16 *a, *b;
	struct encap encap;
	struct nexthop *n;
	__u8 flags;
	__u16 mtu;

	if (!f || !key || number >= MAX_NEXTHOPS)
		return 0;
	i = &shared.interfaces[f->ifindex & (MAX_IFINDEX - 1)];
	n = &shared.nexthops[number];
	mtu = f->mtu_result ? f->mtu_result : i->mtu;
	a = (const __u16 *)n->dst;
	b = (const __u16 *)f->dmac;
	flags = key->how | known;
	if (encap_find(&encap, f->ifindex, i, mtu))
		flags |= NEXTHOP_XDP;
	if (shared.interfaces[encap.device & (MAX_IFINDEX - 1)].flags & INTERFACE_SCATTERED)
		flags |= NEXTHOP_SCATTERED;
	if (i->flags & INTERFACE_L3)
		flags |= NEXTHOP_L3;
	if (n->checked == shared.now && n->flags == flags && n->mtu == mtu && n->ifindex == f->ifindex &&
	    encap_equal(&n->encap, &encap) && !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])))
		return 0;
	__builtin_memcpy(n->dst, f->dmac, 6);
	__builtin_memcpy(n->src, f->smac, 6);
	n->gateway = key->gateway;
	n->family = f->family == AF_INET_KERNEL ? 4 : 6;
	n->ifindex = f->ifindex;
	n->mtu = mtu;
	n->encap = encap;
	n->flags = flags;
	n->used = shared.now;
	n->checked = known & NEXTHOP_VALID ? shared.now : shared.now - NEXTHOP_FRESH;
	return 0;
}

/*
 * Without the daemon nobody tells the kernel that a neighbour is in use, so it would
 * never notice that the neighbour changed its MAC. So one packet each NEXTHOP_PROBE goes
 * through the stack.
 */
static __always_inline int nexthop_probe(struct nexthop *n)
{
	__u32 last = n->probed;

	if (!daemon_is_dead() || shared.now - last < NEXTHOP_PROBE)
		return 0;
	return __sync_val_compare_and_swap(&n->probed, last, shared.now) == last;
}

#endif
