/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel no longer checks for us (RFC 1812, 5.3.7 and 5.3.8; RFC 4291,
 * 2.5; RFC 6890), and what passes before the rules. Asked of packets without a
 * state only: a state's tuple went through here when it was made.
 */
#ifndef WEIR_PACKET_SANITY_H
#define WEIR_PACKET_SANITY_H

#include "maps.h"
#include "packet/parse.h"

#define IPPROTO_IGMP_KERNEL 2

#define ND_FIRST  133 /* router solicitation, advertisement, neighbour ones, redirect */
#define ND_LAST	  137
#define MLD_FIRST 130
#define MLD_LAST  132
#define MLD2	  143

static __always_inline __u32 addr_v4(const struct addr *a)
{
	return bpf_ntohl(a->word[3]);
}

static __always_inline int icmp_is_mld(__u8 type)
{
	return (type >= MLD_FIRST && type <= MLD_LAST) || type == MLD2;
}

static __always_inline int icmp_is_nd(__u8 type)
{
	return type >= ND_FIRST && type <= ND_LAST;
}

static __always_inline int addr_is_limited_broadcast(const struct addr *a)
{
	return addr_is4(a) && a->word[3] == 0xffffffff;
}

static __always_inline int addr_is_multicast(const struct addr *a)
{
	if (addr_is4(a))
		return (addr_v4(a) >> 28) == 0xe;
	return (a->word[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000);
}

static __always_inline int addr_is_low6(const struct addr *a, __u32 last)
{
	return !(a->word[0] | a->word[1] | a->word[2]) && a->word[3] == bpf_htonl(last);
}

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

/* The addresses of a packet that comes in. */
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

/*
 * What the box's own DHCP clients ask goes out. What servers say comes in where the box
 * may have its address from them; elsewhere only as an answer: that an address has no
 * end of life does not tell who set it.
 */
static __always_inline int implicit_dhcp(const struct packet *p, const struct interface *i, int in)
{
	__u16 client = bpf_ntohs(in ? p->tuple.dport : p->tuple.sport);
	__u16 server = bpf_ntohs(in ? p->tuple.sport : p->tuple.dport);
	__u32 fixed = p->family == 4 ? INTERFACE_STATIC4 : INTERFACE_STATIC6, asked = i->asked;

	if (p->tuple.proto != IPPROTO_UDP)
		return 0;
	if (p->family == 4 ? client != 68 || server != 67 :
			     client != 546 || server != 547 || !addr_is_link_local(&p->tuple.src))
		return 0;
	if (in)
		return !(i->flags & fixed) || (asked && shared.now - asked < DHCP_PATIENCE);
	((struct interface *)i)->asked = shared.now;
	return 1;
}

/* What must get through for the box to have an address and neighbours at all. */
static __always_inline int implicit_passes(const struct packet *p, const struct interface *i, int in)
{
	if (!implicit_pass || p->fragment != FRAGMENT_NONE)
		return 0;
	if (p->family == 4 && p->tuple.proto == IPPROTO_IGMP_KERNEL)
		return p->ttl == 1;
	if (p->family == 6 && p->tuple.proto == IPPROTO_ICMPV6) {
		if (icmp_is_nd(p->icmp_type))
			return p->ttl == 255 && !p->icmp_code;
		return icmp_is_mld(p->icmp_type) && p->ttl == 1 &&
		       (addr_is_link_local(&p->tuple.src) || addr_is_low6(&p->tuple.src, 0));
	}
	return implicit_dhcp(p, i, in);
}

#endif
