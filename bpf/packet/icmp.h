/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ICMP types are interpreted only here. */
#ifndef WEIR_PACKET_ICMP_H
#define WEIR_PACKET_ICMP_H

#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/in.h>

#include "packet/tuple.h"

/* Returns the request's type if type is a query of the family, else -1; *reply says
 * whether it is the reply. */
static __always_inline int icmp_query(__u8 family, __u8 type, int *reply)
{
	*reply = 0;
	if (family == 4) {
		switch (type) {
		case 0:
			*reply = 1;
			return 8;
		case 8:
		case 13:
		case 15:
		case 17:
			return type;
		case 14:
		case 16:
		case 18:
			*reply = 1;
			return type - 1;
		}
		return -1;
	}
	if (type == 128)
		return 128;
	if (type == 129) {
		*reply = 1;
		return 128;
	}
	return -1;
}

static __always_inline int icmp_is_error(__u8 family, __u8 type)
{
	if (family == 4)
		return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
	return type >= 1 && type <= 4;
}

/* Fills the ports of a tuple from an ICMP header; l4 holds at least 8 bytes for queries. */
static __always_inline void icmp_ports(struct tuple *t, __u8 family, const struct icmphdr *icmp)
{
	int reply, query = icmp_query(family, icmp->type, &reply);
	__be16 type = bpf_htons(query < 0 ? icmp->type : query);

	if (query < 0) {
		t->sport = type;
		t->dport = 0;
	} else if (reply) {
		t->sport = type;
		t->dport = icmp->un.echo.id;
	} else {
		t->sport = icmp->un.echo.id;
		t->dport = type;
	}
}

static __always_inline int icmp_is(__u8 family, __u8 proto)
{
	return proto == (family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

#define ND_FIRST  133 /* router solicitation and advertisement, neighbour solicitation and advertisement, redirect */
#define ND_LAST	  137
#define MLD_FIRST 130
#define MLD_LAST  132
#define MLD2	  143

static __always_inline int icmp_is_nd(__u8 type)
{
	return type >= ND_FIRST && type <= ND_LAST;
}

static __always_inline int icmp_is_mld(__u8 type)
{
	return (type >= MLD_FIRST && type <= MLD_LAST) || type == MLD2;
}

#endif
