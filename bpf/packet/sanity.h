/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The checks that the kernel no longer does for redirected packets (RFC 1812, 5.3.7 and
 * 5.3.8; RFC 4291, 2.5; RFC 6890). Only packets without a state are checked: the tuple
 * of a state was checked when the state was made.
 */
#ifndef WEIR_PACKET_SANITY_H
#define WEIR_PACKET_SANITY_H

#include "shared.h"
#include "packet/parse.h"

/* Addresses of the box: no frame may come in with them as source. kept; written by the
 * daemon. value: ifindex. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct addr);
	__type(value, __u32);
} addresses SEC(".maps");

/* Broadcast addresses of the box's networks; value: 1. kept; written by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct addr);
	__type(value, __u32);
} broadcasts SEC(".maps");

#define IPPROTO_IGMP_KERNEL 2

static __always_inline int sanity_source4(const struct packet *p)
{
	__u32 a = addr_v4(&p->tuple.src);

	if (a >> 24 == 0)
		return !(a == 0 && (addr_is_limited_broadcast(&p->tuple.dst) ||
				    p->tuple.proto == IPPROTO_IGMP_KERNEL));
	return a >> 24 == 127 || a >> 28 >= 0xe;
}

static __always_inline int sanity_source6(const struct packet *p)
{
	const struct addr *a = &p->tuple.src;

	if (addr_is_low6(a, 0))
		return !(p->tuple.proto == IPPROTO_ICMPV6 && (icmp_is_nd(p->icmp_type) || icmp_is_mld(p->icmp_type)));
	return addr_is_low6(a, 1) || addr_is_multicast(a);
}

static __always_inline int sanity_destination(const struct packet *p)
{
	const struct addr *a = &p->tuple.dst;

	if (p->family == 4)
		return addr_v4(a) >> 24 == 0 || addr_v4(a) >> 24 == 127;
	return addr_is_low6(a, 0) || addr_is_low6(a, 1);
}

/* Checks the addresses of a packet that comes in. */
static __always_inline enum reason sanity_check(const struct packet *p, const struct interface *i)
{
	if (i->flags & INTERFACE_LO)
		return UNDECIDED;
	if (addr_equal(&p->tuple.src, &p->tuple.dst))
		return REASON_LAND;
	if (p->family == 4 ? sanity_source4(p) : sanity_source6(p))
		return REASON_MARTIAN_SOURCE;
	if (bpf_map_lookup_elem(&addresses, &p->tuple.src))
		return REASON_MARTIAN_SOURCE;
	if (sanity_destination(p))
		return REASON_MARTIAN_DEST;
	return UNDECIDED;
}

#endif
