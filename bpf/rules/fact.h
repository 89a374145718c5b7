/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What rules can ask about the routes of a packet's addresses: no-route and urpf-failed
 * (pf.conf(5); RFC 3704, 2.2). The kernel's table is asked for each crossing, before the
 * rules, once for each address that a rule asks about.
 */
#ifndef WEIR_RULES_FACT_H
#define WEIR_RULES_FACT_H

#include "rules/crossing.h"
#include "route/route.h"

/* What the kernel's table says of an address. */
enum fact_route {
	FACT_ROUTE_NONE,
	FACT_ROUTE_OWN, /* the box itself, a group or a link: no table is asked */
	FACT_ROUTE_TO,	/* an interface */
};

#define LOOPBACK_IFINDEX 1 /* of lo, in each network namespace */

/* Whether an address is the box's own, a group's or a link's. *ifindex is the interface
 * that has it; 0: no single one. */
static __always_inline int fact_is_own(const struct addr *a, __u32 *ifindex)
{
	__u32 *own = bpf_map_lookup_elem(&addresses, a);

	*ifindex = 0;
	if (own) {
		*ifindex = *own;
		return 1;
	}
	if (addr_is_low6(a, 1) || (addr_is4(a) && addr_v4(a) >> 24 == 127)) {
		*ifindex = LOOPBACK_IFINDEX;
		return 1;
	}
	return addr_is_multicast(a) || addr_is_link_local(a) || addr_is_low6(a, 0) || (addr_is4(a) && !addr_v4(a)) ||
	       bpf_map_lookup_elem(&broadcasts, a);
}

/* Finds the route to an address, for a packet that goes from there to other. */
static __always_inline enum fact_route fact_route(hook_ctx *ctx, const struct crossing *cr, const struct addr *to,
						  const struct addr *other, __u32 *ifindex)
{
	struct route_query q = {};
	struct bpf_fib_lookup f __attribute__((aligned(8)));
	long rc;

	if (fact_is_own(to, ifindex))
		return FACT_ROUTE_OWN;
	/* the kernel refuses to look up a route for these, which source routing never asks for */
	if (!addr_is_multicast(other) && !addr_is_link_local(other) && !addr_is_low6(other, 1))
		q.src = *other;
	q.dst = *to;
	q.ifindex = cr->ifindex;
	q.proto = cr->proto;
	q.family = cr->family;
	route_fib(&f, &q);
	rc = bpf_fib_lookup(ctx, &f, sizeof(f), 0);
	if (rc != BPF_FIB_LKUP_RET_SUCCESS && rc != BPF_FIB_LKUP_RET_NO_NEIGH)
		return FACT_ROUTE_NONE;
	*ifindex = f.ifindex;
	return FACT_ROUTE_TO;
}

/* Returns those of FACT_* that a crossing has, of the asked ones. Only routes that they need
 * are looked up. */
__noinline __u32 fact_find(hook_ctx *ctx, struct crossing *cr, __u32 asked)
{
	__u32 facts = 0, ifindex;

	if (!cr)
		return 0;
	if (asked & (FACT_NO_ROUTE_BACK | FACT_URPF_FAILED)) {
		switch (fact_route(ctx, cr, &cr->src, &cr->dst, &ifindex)) {
		case FACT_ROUTE_NONE:
			facts = FACT_NO_ROUTE_BACK | FACT_URPF_FAILED;
			break;
		case FACT_ROUTE_OWN:
			facts = ifindex && ifindex != cr->ifindex ? FACT_URPF_FAILED : 0;
			break;
		case FACT_ROUTE_TO:
			facts = ifindex != cr->ifindex ? FACT_URPF_FAILED : 0;
		}
	}
	if (asked & FACT_NO_ROUTE && fact_route(ctx, cr, &cr->dst, &cr->src, &ifindex) == FACT_ROUTE_NONE)
		facts |= FACT_NO_ROUTE;
	return facts;
}

#endif
