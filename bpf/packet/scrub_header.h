/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What scrub changes in an IP header: DF, the id, the TTL and the type of service (docs/packet-path.md, 16).
 * packet.scrub says what to change. path/scrub.h sets it, and lowers the MSS of SYNs.
 */
#ifndef WEIR_PACKET_SCRUB_HEADER_H
#define WEIR_PACKET_SCRUB_HEADER_H

#include "packet/csum.h"
#include "packet/parse.h"

/* Where a packet is when its header is changed. */
enum scrub_at {
	SCRUB_AT_HOP, /* it is redirected: its TTL falls by one, too	    */
	SCRUB_AT_UP,  /* it goes up to the stack, which may forward it	    */
	SCRUB_AT_OUT, /* it leaves the box: the stack has done all else	    */
};

/* Returns a packet's new TTL. pf raises it before it falls, where the packet comes in, and
 * afterwards, where it leaves. What goes up is raised for both: a packet without a state
 * is not found again where it leaves. A TTL that ends here is not raised for later. */
static __always_inline __u32 scrub_ttl(__u32 ttl, __u32 word, enum scrub_at at)
{
	__u32 enters = SCRUB_ENTERS(word), leaves = SCRUB_LEAVES(word);

	if (at != SCRUB_AT_OUT && ttl < enters)
		ttl = enters;
	if (at == SCRUB_AT_HOP)
		ttl--;
	if (at == SCRUB_AT_UP) {
		if (ttl <= 1)
			return ttl;
		leaves += leaves && leaves < 255;
	}
	return ttl < leaves ? leaves : ttl;
}

/* Whether DF stays although no-df is set. GRO joins segments that have DF and one id for
 * all. The kernel cannot cut such a packet if it has no DF (inet_gso_segment). */
static __always_inline int scrub_keeps_df(const struct packet *p)
{
	return p->gso && p->tuple.proto == IPPROTO_TCP;
}

/* Returns an id that is not 0. */
static __always_inline __be16 scrub_id(void)
{
	return ((bpf_get_prandom_u32() & 0xffff) * 0xffffu >> 16) + 1;
}

/* Fields are changed in registers: a load that spans a store just made would wait for it. */
static __always_inline void scrub_ip4(struct iphdr *ip, const struct packet *p, enum scrub_at at)
{
	__be16 *first = (__be16 *)ip, *life = (__be16 *)&ip->ttl; /* version and tos; TTL and protocol */
	__be16 old_first = *first, old_id = ip->id, old_fragment = ip->frag_off, old_life = *life;
	__be16 new_first = old_first, new_id = old_id, new_fragment = old_fragment, new_life;
	__u32 diff;

	if (p->scrub & SCRUB_NO_DF && !scrub_keeps_df(p))
		new_fragment &= ~bpf_htons(IP_DF);
	new_life = (old_life & bpf_htons(0xff)) | bpf_htons(scrub_ttl(bpf_ntohs(old_life) >> 8, p->scrub, at) << 8);
	diff = csum_word_diff(old_fragment, new_fragment) + csum_word_diff(old_life, new_life);
	if (p->scrub & (SCRUB_TOS | SCRUB_RANDOM_ID)) {
		if (p->scrub & SCRUB_TOS)
			new_first = (old_first & bpf_htons(0xff00 | IP_ECN)) | bpf_htons(SCRUB_TOS_OF(p->scrub));
		if (p->scrub & SCRUB_RANDOM_ID && p->fragment == FRAGMENT_NONE)
			new_id = scrub_id();
		diff += csum_word_diff(old_first, new_first) + csum_word_diff(old_id, new_id);
		*first = new_first;
		ip->id = new_id;
	}
	ip->frag_off = new_fragment;
	*life = new_life;
	ip->check = csum_apply(ip->check, csum_fold(diff));
}

/* Sets the traffic class of IPv6, except for the bits of congestion. */
static __always_inline void scrub_ip6_tos(struct ipv6hdr *ip, __u32 tos)
{
	__be32 *first = (__be32 *)ip;

	*first = (*first & ~bpf_htonl((0xffu & ~IP_ECN) << 20)) | bpf_htonl(tos << 20);
}

/* Changes a packet's header as packet.scrub says. */
static __always_inline void scrub_header(struct headers *h, const struct packet *p, enum scrub_at at)
{
	struct ipv6hdr *ip6;
	struct iphdr *ip4;

	if (p->family == 4) {
		ip4 = header_ip4(h);
		if (ip4)
			scrub_ip4(ip4, p, at);
	} else {
		ip6 = header_ip6(h);
		if (!ip6)
			return;
		ip6->hop_limit = scrub_ttl(ip6->hop_limit, p->scrub, at);
		if (p->scrub & SCRUB_TOS)
			scrub_ip6_tos(ip6, SCRUB_TOS_OF(p->scrub));
	}
}

#endif
