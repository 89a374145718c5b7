/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The source address of a translation to `(if)`. A daemon writes the interface's
 * addresses into the pool. If no daemon is alive, the kernel is asked about each new
 * connection. docs/packet-path.md, 6.
 */
#ifndef WEIR_ROUTE_NAT_SOURCE_H
#define WEIR_ROUTE_NAT_SOURCE_H

#include "route/route.h"
#include "path/scratch.h"

/* Whether the box has lost an address: the kernel would send packets for it elsewhere.
 * If the kernel knows no route at all, the result is the same as for an address that the
 * box has. */
static __always_inline int nat_source_lost(hook_ctx *ctx, const struct scratch *s)
{
	struct bpf_fib_lookup f __attribute__((aligned(8)));
	struct route_query q = {};
	long rc;

	q.dst = s->out.nat.addr;
	if (s->packet.family == 4)
		addr_set4(&q.src, 0);
	q.ifindex = s->out.ifindex;
	q.proto = s->packet.tuple.proto;
	q.family = s->packet.family;
	route_fib(&f, &q);
	rc = bpf_fib_lookup(ctx, &f, sizeof(f), 0);
	return rc >= 0 && rc != BPF_FIB_LKUP_RET_NOT_FWDED && rc != BPF_FIB_LKUP_RET_FWD_DISABLED;
}

/* Finds the address from which the box itself would send to the packet's destination. <
 * 0: none of that interface; or the kernel, before 6.7, does not say. */
static __always_inline int nat_source_by_route(hook_ctx *ctx, const struct scratch *s, struct addr *to)
{
	struct bpf_fib_lookup f __attribute__((aligned(8)));
	struct route_query q;
	long rc;

	route_query_fill(&q, &s->packet, &s->tuple.dst, s->tuple.dport);
	q.mark = s->in.mark;
	route_fib(&f, &q);
	rc = bpf_fib_lookup(ctx, &f, sizeof(f), BPF_FIB_LOOKUP_SRC | route_flags(&q));
	if ((rc != BPF_FIB_LKUP_RET_SUCCESS && rc != BPF_FIB_LKUP_RET_NO_NEIGH) || f.ifindex != s->out.ifindex)
		return -1;
	if (s->packet.family == 4)
		addr_set4(to, f.ipv4_src);
	else
		addr_set6(to, f.ipv6_src);
	return addr_is_link_local(to) ? -1 : 0;
}

/* Follows the address of the translation that s->out has found. s->tuple.dst: where the
 * packet goes. */
__noinline int nat_source_follow(hook_ctx *ctx, struct scratch *s)
{
	struct addr now;

	if (!s || !(s->out.flags & CROSSING_NAT) || !s->out.nat_ifindex || s->out.nat_ifindex != s->out.ifindex ||
	    !daemon_is_dead())
		return 0;
	if (nat_source_lost(ctx, s) && !nat_source_by_route(ctx, s, &now))
		s->out.nat.addr = now;
	return 0;
}

#endif
