/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * af-to: the addresses of the other family that a packet gets. An IPv4 address goes into an
 * IPv6 one, or out of it, behind a prefix of 32 to 96 bits (RFC 6052, 2.2).
 */
#ifndef WEIR_RULES_EMBED_H
#define WEIR_RULES_EMBED_H

#include "rules/crossing.h"
#include "rules/pool.h"
#include "rules/ruleset.h"
#include "state/endpoint_key.h"

/* How an IPv4 address is cut behind a prefix: the first word that has some of it has this
 * many bits of it. Bits 64 to 71 stay 0. < 0: no address fits behind these bits. */
static __always_inline int family_cut(__u32 bits)
{
	switch (bits) {
	case 32:
		return 32;
	case 40:
		return 24;
	case 48:
		return 16;
	case 56:
		return 8;
	case 64:
		return 0;
	case 96:
		return 64; /* all of it is in the last word */
	}
	return -1;
}

/* Puts an IPv4 address behind the first bits of an IPv6 address. */
static __always_inline int family_embed(struct addr *to, const struct addr *from, __u32 bits)
{
	__u64 v4 = addr_v4(from), low;
	int cut = family_cut(bits);

	if (cut < 0)
		return -1;
	if (cut == 64) {
		to->word[3] = bpf_htonl(v4);
		return 0;
	}
	to->word[1] = (to->word[1] & bpf_htonl(cut == 32 ? 0 : ~0U << cut)) | bpf_htonl(cut ? v4 >> (32 - cut) : 0);
	low = cut == 32 ? 0 : v4 << cut & 0xffffffff; /* the rest, from bit 72 on */
	to->word[2] = bpf_htonl(low >> 8);
	to->word[3] = bpf_htonl(low << 24);
	return 0;
}

/* Takes it out again. */
static __always_inline int family_extract(struct addr *to, const struct addr *from, __u32 bits)
{
	__u32 low = bpf_ntohl(from->word[2]) << 8 | bpf_ntohl(from->word[3]) >> 24;
	__u32 high = bpf_ntohl(from->word[1]);
	int cut = family_cut(bits);

	if (cut < 0)
		return -1;
	if (cut == 64)
		low = bpf_ntohl(from->word[3]);
	else if (cut == 32)
		low = high;
	else if (cut)
		low = high << (32 - cut) | low >> cut;
	addr_set4(to, bpf_htonl(low));
	return 0;
}

/* Finds the new addresses of a packet. < 0: there are none. */
static __always_inline int family_addresses(struct crossing *cr, const struct rule *r)
{
	if (pool_take(r->nat_pool - 1, r->family, &cr->src, &cr->src, &cr->nat))
		return -1;
	if (r->src_bits && family_embed(&cr->nat.addr, &cr->src, r->src_bits))
		return -1;
	if (!r->rdr_pool && r->family == 4)
		return family_extract(&cr->rdr.addr, &cr->dst, r->dst_bits);
	if (!r->rdr_pool) {
		cr->rdr.addr = cr->nat.addr;
		return family_embed(&cr->rdr.addr, &cr->dst, r->dst_bits);
	}
	if (pool_take(r->rdr_pool - 1, r->family, &cr->src, &cr->dst, &cr->rdr))
		return -1;
	return r->dst_bits ? family_embed(&cr->rdr.addr, &cr->dst, r->dst_bits) : 0;
}

/* Notes af-to of the rule that decides. It begins with the packet as match rules have left
 * it, and replaces their translations. A function of its own, to save stack. */
__noinline int family_note(struct crossing *cr, const struct rule *r)
{
	if (!cr || !r)
		return 0;
	cr->flags &= ~(CROSSING_NAT | CROSSING_NAT_STATIC | CROSSING_RDR | CROSSING_RDR_PORT | CROSSING_NO_ADDRESS);
	cr->nat_ifindex = 0;
	cr->endpoint = 0;
	if (r->more & RULE_MORE_ENDPOINT)
		cr->endpoint = pool_has_choice(r->nat_pool - 1, r->family) ? ENDPOINT_ANY : ENDPOINT_ONE;
	cr->nat.states = 0;
	cr->rdr.states = 0;
	cr->nat_ports = (struct nat_ports){r->nat_low, r->nat_high, r->nat_stride, r->nat_block};
	cr->rdr_port = r->rdr_low && tuple_translates_ports(cr->proto) ? bpf_htons(r->rdr_low) : cr->dport;
	if (family_addresses(cr, r)) {
		cr->flags |= CROSSING_NO_NAT;
		return 0;
	}
	cr->flags |= CROSSING_FAMILY | (r->flags & RULE_STATIC_PORT ? CROSSING_NAT_STATIC : 0);
	return 0;
}

#endif
