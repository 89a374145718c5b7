/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where a destination is reached: the kernel's routes and neighbours are asked
 * by bpf_fib_lookup, seldom, and the answer is kept in shared.nexthops under a
 * number that states hold.
 */
#ifndef WEIR_ROUTE_NEXTHOP_H
#define WEIR_ROUTE_NEXTHOP_H

#include <linux/bpf.h>

#include "maps.h"
#include "packet/parse.h"

#define AF_INET_KERNEL	2
#define AF_INET6_KERNEL 10

enum route {
	ROUTE_FORWARD,	 /* number is a next hop that is valid			*/
	ROUTE_NEIGHBOUR, /* ifindex is known, the neighbour's address is not	*/
	ROUTE_FULL,	 /* likewise, because there is no number for it		*/
	ROUTE_LOCAL,	 /* the box itself, or nothing that XDP could forward	*/
	ROUTE_CLOSED,	 /* the interface has no programs of ours: nothing leaves by it */
};

/* What a look-up asks and answers. */
struct route_query {
	struct addr src;
	struct addr dst;
	__be16 sport;
	__be16 dport;
	__u32 ifindex; /* in: where the packet came in; out: where it goes	*/
	__u16 number;  /* out: index into shared.nexthops, 0: none was free	*/
	__u8 proto;
	__u8 family;
};

/* A number that is nobody's; 0: there is none. */
static __always_inline __u32 nexthop_take(void)
{
	struct nexthop *n;
	__u32 number;

	if (shared.nexthops_unused && !bpf_map_pop_elem(&nexthops_free, &number)) {
		__sync_fetch_and_add(&shared.nexthops_unused, -1);
		n = &shared.nexthops[number & (MAX_NEXTHOPS - 1)];
		n->used = shared.now;
		n->stage = NEXTHOP_LISTED;
		return number;
	}
	if (shared.nexthops_high >= MAX_NEXTHOPS - NEXTHOP_FIRST)
		return 0;
	number = __sync_fetch_and_add(&shared.nexthops_high, 1) + NEXTHOP_FIRST;
	return number < MAX_NEXTHOPS ? number : 0;
}

/* The number of (interface, gateway), made if need be; 0: the table is full. */
static __noinline __u32 nexthop_number(struct nexthop_key *key)
{
	__u32 *known, number;

	if (!key)
		return 0;
	known = bpf_map_lookup_elem(&nexthop_index, key);
	if (known)
		return *known;
	number = nexthop_take();
	if (!number)
		return 0;
	if (bpf_map_update_elem(&nexthop_index, key, &number, BPF_NOEXIST)) {
		/* another core was first: its number is the one */
		shared.nexthops[number & (MAX_NEXTHOPS - 1)].stage = NEXTHOP_FREE;
		if (!bpf_map_push_elem(&nexthops_free, &number, 0))
			__sync_fetch_and_add(&shared.nexthops_unused, 1);
		known = bpf_map_lookup_elem(&nexthop_index, key);
		return known ? *known : 0;
	}
	return number;
}

/* The same, but that the table is not asked where the hint is right. */
static __always_inline __u32 nexthop_find(struct nexthop_key *key)
{
	__u32 at = (key->gateway.word[3] ^ key->gateway.word[2] ^ key->ifindex) * 0x9e3779b1u >> 24;
	__u32 *hint = bpf_map_lookup_elem(&nexthop_cache, &at), number;
	const struct nexthop *n;

	if (!hint)
		return 0;
	number = *(volatile __u32 *)hint & (MAX_NEXTHOPS - 1); /* other cores write it, for other keys */
	n = &shared.nexthops[number];
	if (n->stage == NEXTHOP_LISTED && n->ifindex == key->ifindex && addr_equal(&n->gateway, &key->gateway))
		return number;
	number = nexthop_number(key);
	*hint = number;
	return number;
}

static __always_inline __u8 nexthop_flags(const struct interface *i)
{
	__u8 flags = NEXTHOP_VALID;

	if (i->flags & INTERFACE_TARGET)
		flags |= NEXTHOP_XDP;
	if (i->flags & INTERFACE_L3)
		flags |= NEXTHOP_L3;
	if (i->parent && shared.interfaces[i->parent & (MAX_IFINDEX - 1)].flags & INTERFACE_TARGET)
		flags |= NEXTHOP_TAGGED;
	return flags;
}

/* Notes the kernel's answer. Every core reads the line of a next hop, so it is not
 * written for each new connection, but once a tick or when something differs. */
static __always_inline void nexthop_note(struct nexthop *n, const struct bpf_fib_lookup *f,
				const struct nexthop_key *key, const struct interface *i)
{
	__u16 mtu = f->mtu_result ? f->mtu_result : i->mtu;
	const __u16 *a = (const __u16 *)n->dst, *b = (const __u16 *)f->dmac;
	__u8 flags = nexthop_flags(i);

	if (n->checked == shared.now && n->flags == flags && n->mtu == mtu && n->tag == i->tag &&
	    !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])))
		return;
	__builtin_memcpy(n->dst, f->dmac, 6);
	__builtin_memcpy(n->src, f->smac, 6);
	n->gateway = key->gateway;
	n->family = f->family == AF_INET_KERNEL ? 4 : 6;
	n->ifindex = f->ifindex;
	n->mtu = mtu;
	n->tag = i->tag;
	n->parent = i->parent;
	n->flags = flags;
	n->used = shared.now;
	n->checked = shared.now;
}

static __always_inline void route_fib(struct bpf_fib_lookup *f, const struct route_query *q)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->ifindex = q->ifindex;
	f->l4_protocol = q->proto;
	f->sport = q->sport;
	f->dport = q->dport;
	f->tot_len = 1; /* so that the route's MTU comes back */
	if (q->family == 4) {
		f->family = AF_INET_KERNEL;
		f->ipv4_src = q->src.word[3];
		f->ipv4_dst = q->dst.word[3];
	} else {
		f->family = AF_INET6_KERNEL;
		__builtin_memcpy(f->ipv6_src, &q->src, 16);
		__builtin_memcpy(f->ipv6_dst, &q->dst, 16);
	}
}

/* The neighbour that the kernel chose: the gateway, or the destination itself. */
static __always_inline void route_gateway(struct nexthop_key *key, const struct bpf_fib_lookup *f)
{
	key->ifindex = f->ifindex;
	key->pad0 = 0;
	if (f->family == AF_INET_KERNEL)
		addr_set4(&key->gateway, f->ipv4_dst);
	else
		addr_set6(&key->gateway, f->ipv6_dst);
}

/* Asks the kernel. Not before a packet needs it: 38 ns and more. */
__noinline enum route route_lookup(hook_ctx *ctx, struct route_query *q)
{
	struct bpf_fib_lookup f __attribute__((aligned(8))); /* its addresses are read by 64 bits */
	const struct interface *i;
	struct nexthop_key key;
	struct nexthop *n;
	__u32 number;
	long rc;

	if (!q)
		return ROUTE_LOCAL;
	route_fib(&f, q);
	rc = bpf_fib_lookup(ctx, &f, sizeof(f), 0);
	if (rc != BPF_FIB_LKUP_RET_SUCCESS && rc != BPF_FIB_LKUP_RET_NO_NEIGH)
		return ROUTE_LOCAL;
	q->ifindex = f.ifindex;
	q->number = 0;
	if (f.ifindex >= MAX_IFINDEX)
		return ROUTE_CLOSED;
	i = &shared.interfaces[f.ifindex];
	if (!(i->flags & INTERFACE_PRESENT))
		return ROUTE_CLOSED;
	/* devices without Ethernet header have no neighbours to know */
	if (rc == BPF_FIB_LKUP_RET_NO_NEIGH && !(i->flags & INTERFACE_L3))
		return ROUTE_NEIGHBOUR;
	route_gateway(&key, &f);
	/* so they are one next hop, however many hosts are behind them; without a
	 * neighbour the kernel leaves tot_len where it would write the MTU */
	if (i->flags & INTERFACE_L3) {
		key.gateway = (struct addr){};
		if (q->family == 4)
			addr_set4(&key.gateway, 0);
		if (rc == BPF_FIB_LKUP_RET_NO_NEIGH)
			f.mtu_result = 0;
	}
	number = nexthop_find(&key);
	if (!number || number >= MAX_NEXTHOPS)
		return ROUTE_FULL;
	n = &shared.nexthops[number];
	nexthop_note(n, &f, &key, i);
	q->number = number;
	return ROUTE_FORWARD;
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

#endif
