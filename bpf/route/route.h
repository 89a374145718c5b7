/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Route look-ups in the kernel. */
#ifndef WEIR_ROUTE_ROUTE_H
#define WEIR_ROUTE_ROUTE_H

#include <linux/bpf.h>

#include "packet/sanity.h"
#include "route/nexthop.h"
#include "rules/prefix_map.h"
#include "verifier.h"

enum route {
	ROUTE_FORWARD,	 /* number is a next hop that is valid			*/
	ROUTE_NEIGHBOUR, /* ifindex is known, the neighbour's address is not	*/
	ROUTE_BLIND,	 /* the same for the packet without its mark, by which the stack routes it */
	ROUTE_FULL,	 /* the same, because no number is left */
	ROUTE_LOCAL,	 /* the box itself, or nothing that XDP can forward */
	ROUTE_CLOSED,	 /* the interface has no weir programs: nothing leaves by it */
	ROUTE_LOST,	 /* the gateway that a rule has chosen cannot be reached */
};

/* The arguments and results of a route look-up. */
struct route_query {
	struct addr src;
	struct addr dst;
	__be16 sport;
	__be16 dport;
	__u32 ifindex; /* in: where the packet came in; out: where it goes	*/
	__u32 mark;    /* that it is routed by, without weir's own bits */
	__u32 choice;  /* for route_choose(): the interface that a rule names */
	__u16 number;  /* out: index into shared.nexthops, 0: none was free	*/
	__u8 proto;
	__u8 family;
	__u32 mtu;     /* for route_choose(): that counts instead of the gateway's; 0: none */
};

/* Fills the query for a packet that goes to dst. The source is the packet's own, because
 * source routing looks at the source that came in. */
static __always_inline void route_query_fill(struct route_query *q, const struct packet *p, const struct addr *dst,
					     __be16 dport)
{
	q->src = p->tuple.src;
	q->dst = *dst;
	q->sport = p->tuple.sport;
	q->dport = dport;
	q->ifindex = p->ifindex;
	q->mark = p->mark;
	q->number = 0;
	q->proto = p->tuple.proto;
	q->family = p->family;
	q->mtu = 0;
}

static __always_inline void route_fib(struct bpf_fib_lookup *f, const struct route_query *q)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->ifindex = q->ifindex;
	f->l4_protocol = q->proto;
	f->sport = q->sport;
	f->dport = q->dport;
	if (route_marks)
		f->mark = q->mark;
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

/* Returns the flags of the kernel's look-up: before Linux 6.10 it refuses a mark. */
static __always_inline __u32 route_flags(const struct route_query *q)
{
	return q->mark && route_marks ? BPF_FIB_LOOKUP_MARK : 0;
}

/* Returns why a packet whose route has no next hop goes up. */
static __always_inline enum reason route_reason(enum route route)
{
	if (route == ROUTE_BLIND)
		return REASON_UP_MARK;
	return route == ROUTE_FULL ? REASON_UP_NEXTHOP : REASON_UP_NEIGHBOUR;
}

/* Fills in the neighbour that the kernel chose: the gateway, or the destination itself. mtu: of the interface. */
static __always_inline void route_gateway(struct nexthop_key *key, const struct bpf_fib_lookup *f, __u32 mtu)
{
	key->ifindex = f->ifindex;
	key->how = f->mtu_result && f->mtu_result != mtu ? NEXTHOP_NARROW | (__u32)f->mtu_result << 16 : 0;
	if (f->family == AF_INET_KERNEL)
		addr_set4(&key->gateway, f->ipv4_dst);
	else
		addr_set6(&key->gateway, f->ipv6_dst);
}

/* Returns where packets go for which the kernel has no route to an interface: to the box
 * itself, unless their mark, which the look-up did not know, leads elsewhere. */
static __always_inline enum route route_nowhere(struct route_query *q)
{
	if (!q->mark || route_marks || bpf_map_lookup_elem(&addresses, &q->dst) ||
	    bpf_map_lookup_elem(&broadcasts, &q->dst))
		return ROUTE_LOCAL;
	q->ifindex = 0; /* not known */
	return ROUTE_BLIND;
}

/* Finds the MTU of a route to an interface without neighbours, for which the kernel leaves tot_len where it would write
 * that. q: as it came. */
__noinline int route_peer_mtu(hook_ctx *ctx, const struct route_query *q, struct bpf_fib_lookup *found)
{
	struct bpf_fib_lookup f __attribute__((aligned(8)));

	if (!q || !found)
		return 0;
	route_fib(&f, q);
	found->mtu_result = 0;
	if (bpf_fib_lookup(ctx, &f, sizeof(f), route_flags(q) | BPF_FIB_LOOKUP_SKIP_NEIGH) == BPF_FIB_LKUP_RET_SUCCESS &&
	    f.ifindex == found->ifindex)
		found->mtu_result = f.mtu_result;
	return 0;
}

/* How the key of a route with an MTU of its own says where it leads. Some ways may have one number. */
static __always_inline __u32 route_way(__u32 ifindex, const struct addr *gateway)
{
	const __u32 *w = gateway->word;

	return (((w[0] * 31 + w[1]) * 31 + w[2]) * 31 + w[3]) * 31 + ifindex;
}

/*
 * Lowers the MTU that the kernel's look-up has told to that of a route which is not locked: it does not tell that one,
 * and the kernel counts it all the same when it forwards. The daemon lists those routes, of all routing tables. It does
 * not tell the route either, so that is known by where it leads: interface, gateway, prefix of the destination. q: as it
 * came, but for its ifindex.
 */
__noinline int route_mtu_own(const struct route_query *q, struct bpf_fib_lookup *found)
{
	struct table_prefix key = { .bits = TABLE_PREFIX_BITS };
	__u32 which = ROUTE_MTUS;
	const __u32 *mtu;
	void *routes;

	if (!q || !found)
		return 0;
	routes = bpf_map_lookup_elem(&table_changes, &which);
	if (!routes)
		return 0;
	if (found->family == AF_INET_KERNEL)
		addr_set4(&key.addr, found->ipv4_dst);
	else
		addr_set6(&key.addr, found->ipv6_dst);
	if (addr_equal(&key.addr, &q->dst)) /* there is no gateway */
		key.addr = (struct addr){};
	key.family = route_way(found->ifindex, &key.addr) * 31 + q->family;
	key.addr = q->dst;
	mtu = bpf_map_lookup_elem(routes, &key);
	if (mtu && (!found->mtu_result || *mtu < found->mtu_result))
		found->mtu_result = *mtu;
	return 0;
}

/* Asks the kernel. Only when a packet needs it: it costs 38 ns and more. */
__noinline enum route route_lookup(hook_ctx *ctx, struct route_query *q)
{
	struct bpf_fib_lookup f __attribute__((aligned(8))); /* its addresses are read by 64 bits */
	const struct interface *i;
	struct nexthop_key key;
	__u32 number;
	long rc;

	if (!q)
		return ROUTE_LOCAL;
	route_fib(&f, q);
	rc = bpf_fib_lookup(ctx, &f, sizeof(f), route_flags(q));
	if (rc != BPF_FIB_LKUP_RET_SUCCESS && rc != BPF_FIB_LKUP_RET_NO_NEIGH)
		return route_nowhere(q);
	i = &shared.interfaces[f.ifindex & (MAX_IFINDEX - 1)];
	if (rc == BPF_FIB_LKUP_RET_NO_NEIGH && interface_has_one_peer(i))
		route_peer_mtu(ctx, q, &f);
	q->ifindex = f.ifindex;
	q->number = 0;
	if (f.ifindex >= MAX_IFINDEX || !(i->flags & INTERFACE_PRESENT))
		return ROUTE_CLOSED;
	if (q->mark && !route_marks)
		return ROUTE_BLIND;
	if (rc == BPF_FIB_LKUP_RET_NO_NEIGH && !interface_has_one_peer(i))
		return ROUTE_NEIGHBOUR;
	route_mtu_own(q, &f);
	route_gateway(&key, &f, i->mtu);
	if (interface_has_one_peer(i)) { /* so they are one next hop, however many hosts are behind them */
		key.gateway = (struct addr){};
		if (q->family == 4)
			addr_set4(&key.gateway, 0);
	}
	number = nexthop_find(&key);
	if (!number || number >= MAX_NEXTHOPS)
		return ROUTE_FULL;
	if (i->line)
		nexthop_peer(&f);
	nexthop_note(number, &f, &key, NEXTHOP_VALID);
	q->number = number;
	return ROUTE_FORWARD;
}

/* Whether the neighbour that the kernel's look-up found is the gateway itself. */
static __always_inline int route_is_near(const struct bpf_fib_lookup *f, const struct route_query *q)
{
	if (q->family == 4)
		return f->family == AF_INET_KERNEL && f->ipv4_dst == q->dst.word[3];
	return addr_equal((const struct addr *)f->ipv6_dst, &q->dst);
}

/*
 * Asks the kernel for a chosen gateway. q: dst is the gateway. If the rule names the
 * gateway's interface, it is fixed, and the gateway must be on its link, as in pf. Else
 * the routes lead there, for packets that come in by q's ifindex. < 0: it cannot be reached. Else f
 * says where it is; 1: and the neighbour's address is known. The kernel knows no route to a
 * link-local address, so that neighbour's address is not known here: TCX has the kernel
 * send such packets.
 */
__noinline int route_ask_gateway(hook_ctx *ctx, struct bpf_fib_lookup *f, const struct route_query *q, __u32 fixed)
{
	int valid;
	long rc;

	if (!f || !q)
		return -1;
	if (fixed && addr_is_link_local(&q->dst)) {
		f->ifindex = fixed;
		f->mtu_result = 0;
		return 0;
	}
	rc = bpf_fib_lookup(ctx, f, sizeof(*f), fixed ? BPF_FIB_LOOKUP_OUTPUT : 0);
	valid = rc == BPF_FIB_LKUP_RET_SUCCESS;
	if (rc == BPF_FIB_LKUP_RET_NO_NEIGH)
		f->mtu_result = 0; /* the kernel leaves tot_len there */
	if (rc == BPF_FIB_LKUP_RET_FWD_DISABLED && fixed) { /* a box that sends only its own packets */
		f->mtu_result = 0;
		return 0;
	}
	if (!valid && rc != BPF_FIB_LKUP_RET_NO_NEIGH)
		return -1;
	return fixed && (f->ifindex != fixed || !route_is_near(f, q)) ? -1 : valid;
}

/* Notes what was found of a chosen next hop. valid: as route_ask_gateway() returns it. */
__noinline enum route route_chosen(struct route_query *q, struct bpf_fib_lookup *f, const struct nexthop_key *key,
				   __u32 number, int valid)
{
	const struct interface *i;
	__u8 known;

	if (!q || !f || !key)
		return ROUTE_LOST;
	i = &shared.interfaces[f->ifindex & (MAX_IFINDEX - 1)];
	if (valid > 0 && (f->ifindex >= MAX_IFINDEX || !(i->flags & INTERFACE_PRESENT)))
		valid = 0;
	if (!valid && !q->choice && interface_has_one_peer(i) && i->flags & INTERFACE_PRESENT)
		valid = 1; /* it has no neighbours */
	known = valid > 0 ? NEXTHOP_VALID : 0;
	if (route_is_near(f, q))
		known |= NEXTHOP_NEAR;
	if (i->line)
		nexthop_peer(f);
	nexthop_note(number, f, key, known);
	q->number = number;
	if (valid < 0)
		return ROUTE_LOST;
	return i->flags & INTERFACE_PRESENT ? ROUTE_FORWARD : ROUTE_CLOSED;
}

/*
 * Finds the next hop that a rule has chosen. q: dst is the gateway; ifindex where the packet
 * came in; choice the interface that the rule names, 0: none. The result has a number
 * even if the gateway cannot be reached now, so that a state can remember the choice; it
 * has none if the table is full.
 */
__noinline enum route route_choose(hook_ctx *ctx, struct route_query *q)
{
	struct bpf_fib_lookup f __attribute__((aligned(8)));
	struct nexthop_key key = {};
	const struct interface *i;
	__u32 fixed, number;
	int valid = 1;

	if (!q)
		return ROUTE_LOST;
	fixed = q->choice;
	q->number = 0;
	if (fixed >= MAX_IFINDEX)
		return ROUTE_LOST;
	key.gateway = q->dst;
	key.ifindex = fixed;
	key.how = NEXTHOP_CHOSEN | (fixed ? NEXTHOP_FIXED : 0);
	if (q->mtu)
		key.how |= NEXTHOP_NARROW | q->mtu << 16;
	i = &shared.interfaces[fixed & (MAX_IFINDEX - 1)];
	q->src = (struct addr){};
	q->sport = 0;
	q->dport = 0;
	q->proto = 0;
	q->mark = 0;
	route_fib(&f, q);
	if (reread(q->choice))
		f.ifindex = fixed;
	if (reread(q->choice) && interface_has_one_peer(i)) { /* one next hop, whatever the gateway */
		key.gateway = (struct addr){};
		if (reread(q->family) == 4)
			addr_set4(&key.gateway, 0);
		f.mtu_result = 0;
	} else {
		valid = route_ask_gateway(ctx, &f, q, fixed);
		if (valid < 0) {
			f.ifindex = fixed;
			f.mtu_result = 0;
		}
	}
	if (q->mtu)
		f.mtu_result = q->mtu;
	q->ifindex = f.ifindex;
	number = nexthop_find(&key);
	if (!number || number >= MAX_NEXTHOPS)
		return ROUTE_LOST;
	return route_chosen(q, &f, &key, number, valid);
}

/*
 * Finds the gateway that one routing table has for a destination (rtable): q's dst becomes it,
 * and choice its interface, as if a rule had named both; mtu that of the route, if it has one of its own. The box's own addresses are local in
 * any table. ROUTE_LOST: the table has no route.
 */
__noinline enum route route_by_table(hook_ctx *ctx, struct route_query *q, __u32 table)
{
	struct bpf_fib_lookup f __attribute__((aligned(8)));
	const struct interface *i;
	struct nexthop_key key;
	long rc;

	if (!q)
		return ROUTE_LOST;
	if (bpf_map_lookup_elem(&addresses, &q->dst) || bpf_map_lookup_elem(&broadcasts, &q->dst))
		return ROUTE_LOCAL;
	route_fib(&f, q);
	f.tbid = table;
	/* without the neighbour: if that is not known, the kernel does not tell the MTU */
	rc = bpf_fib_lookup(ctx, &f, sizeof(f), BPF_FIB_LOOKUP_DIRECT | BPF_FIB_LOOKUP_TBID | BPF_FIB_LOOKUP_SKIP_NEIGH);
	if (rc != BPF_FIB_LKUP_RET_SUCCESS)
		return ROUTE_LOST;
	if ((f.family == AF_INET_KERNEL) != (q->family == 4)) /* a route by a gateway of the other family */
		return ROUTE_LOST;
	route_gateway(&key, &f, f.mtu_result);
	q->dst = key.gateway;
	q->choice = key.ifindex;
	i = &shared.interfaces[f.ifindex & (MAX_IFINDEX - 1)];
	q->mtu = f.mtu_result < i->mtu ? f.mtu_result : 0;
	return ROUTE_FORWARD;
}

/* Fills the query for a gateway that a rule has chosen, for a packet that came in by an
 * interface. The gateway of an IPv4 packet may be one of IPv6 (prefer-ipv6-nexthop). */
static __always_inline void route_choice_fill(struct route_query *q, const struct packet *p, const struct addr *gateway,
					      __u32 named)
{
	*q = (struct route_query){};
	q->dst = *gateway;
	q->ifindex = p->ifindex;
	q->family = addr_is4(gateway) ? 4 : 6;
	q->choice = named;
}

/* Returns where the destination leads before any route look-up. */
static __always_inline enum reason route_class(const struct packet *p, const struct addr *dst)
{
	if (addr_is_multicast(dst) || addr_is_limited_broadcast(dst))
		return REASON_UP_MULTICAST;
	if (p->family == 4 && addr_v4(dst) >> 28 == 0xf)
		return REASON_MARTIAN_DEST;
	if (p->tuple.zone == ZONE_SOCKET) /* its addresses and ports are those of a socket's connection */
		return REASON_TUPLE_TAKEN;
	if (p->flags & PACKET_GROUP || p->tuple.zone)
		return REASON_LOCAL;
	return UNDECIDED;
}

#endif
