/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What passes before the rules, so that the box can have an address and neighbours at
 * all (set implicit-pass).
 */
#ifndef WEIR_RULES_IMPLICIT_H
#define WEIR_RULES_IMPLICIT_H

#include "shared.h"
#include "packet/parse.h"
#include "rules/ruleset.h"

/*
 * Whether DHCP passes. Queries of the box's own clients go out. Servers' replies come in
 * if the box may have its address from them. Elsewhere they come in only as replies: an
 * address without end of life may still come from DHCP.
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

/* Whether a packet must get through so that the box can have an address and neighbours
 * at all. */
static __always_inline int implicit_passes(const struct rule_set *set, const struct packet *p, const struct interface *i,
					   int in)
{
	if (set->no_implicit || p->fragment != FRAGMENT_NONE)
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
