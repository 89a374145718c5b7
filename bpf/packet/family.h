/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Headers of the other address family: IPv6 to IPv4 and back (RFC 7915). What is in front
 * of the L4 header is written anew; the L4 header is corrected by differences.
 */
#ifndef WEIR_PACKET_FAMILY_H
#define WEIR_PACKET_FAMILY_H

#include "packet/csum.h"
#include "packet/parse.h"
#include "packet/rewrite.h"
#include "packet/scrub_header.h"

/* An IPv4 packet of up to this many bytes needs no more than the least MTU of IPv6: without
 * DF it can be cut on the way (RFC 7915, 5.1). */
#define FAMILY_CUTS	 1260
#define FAMILY_LEAST_MTU 1280

struct family_fragment {
	__u8 next;
	__u8 pad;
	__be16 offset;
	__be32 id;
};

#define FAMILY_WORDS 12

/* Everything in front of an L4 header, in its new family. */
union family_header {
	struct iphdr ip4;
	struct {
		struct ipv6hdr ip6;
		struct family_fragment fragment;
	};
	__u32 word[FAMILY_WORDS];
};

/* Whether a packet belongs to the state of the one that it quotes. */
static __always_inline int family_is_error(const struct packet *p)
{
	return p->flags & PACKET_ICMP_ERROR && p->fragment == FRAGMENT_NONE;
}

/* Returns the family that a packet gets. */
static __always_inline __u8 family_other(__u8 family)
{
	return family == 4 ? 6 : 4;
}

/* Returns the protocol that corresponds to one of the other family. */
static __always_inline __u8 family_proto(__u8 family, __u8 proto)
{
	if (family == 6)
		return proto == IPPROTO_ICMP ? IPPROTO_ICMPV6 : proto;
	return proto == IPPROTO_ICMPV6 ? IPPROTO_ICMP : proto;
}

/* Returns the type of an echo message in a family, from that of the other. */
static __always_inline __u8 family_echo(__u8 family, __u8 type)
{
	int reply = type == 0 || type == 129;

	if (family == 4)
		return reply ? 0 : 8;
	return reply ? 129 : 128;
}

static __always_inline int family_is_echo(__u8 family, __u8 type)
{
	return family == 4 ? type == 8 || type == 0 : type == 128 || type == 129;
}

/* Whether a packet has a counterpart in the other family. Its whole message is needed to
 * correct ICMP's checksum, because only one family's covers the length. */
static __always_inline int family_corresponds(const struct packet *p)
{
	__u8 proto = p->tuple.proto;

	if (icmp_is(p->family, proto))
		return p->fragment == FRAGMENT_NONE && family_is_echo(p->family, p->icmp_type);
	return proto != IPPROTO_ICMP && proto != IPPROTO_ICMPV6 && proto != IPPROTO_IGMP && !extension_is(proto);
}

/* Returns the bytes of the header in front of the L4 header, as it comes. */
static __always_inline __u32 family_before(const struct packet *p)
{
	return p->l4_offset - p->l3_offset;
}

/* Whether a packet has nothing in front of its L4 header but what can be translated: no
 * options, and of the extension headers only that of fragments. */
static __always_inline int family_is_plain(const struct packet *p)
{
	__u32 plain = sizeof(struct iphdr);

	if (p->family == 6)
		plain = sizeof(struct ipv6hdr) + (p->flags & PACKET_FRAGMENT_HEADER ? sizeof(struct family_fragment) : 0);
	return family_before(p) == plain;
}

/* Returns the bytes of the new header. */
static __always_inline __u32 family_after(const struct packet *p)
{
	if (p->family == 6)
		return sizeof(struct iphdr);
	return sizeof(struct ipv6hdr) + (p->fragment != FRAGMENT_NONE ? sizeof(struct family_fragment) : 0);
}

/* Returns the type of service of a packet as it leaves, with the bits of congestion. */
static __always_inline __u8 family_tos(const struct packet *p, const struct headers *h)
{
	const struct ipv6hdr *ip6 = header_ip6(h);
	const struct iphdr *ip4 = header_ip4(h);
	__u8 tos = 0;

	if (p->family == 4 && ip4)
		tos = ip4->tos;
	else if (p->family == 6 && ip6)
		tos = bpf_ntohl(*(const __be32 *)ip6) >> 20;
	if (p->scrub & SCRUB_TOS)
		tos = (tos & IP_ECN) | (SCRUB_TOS_OF(p->scrub) & ~IP_ECN);
	return tos;
}

/* What a header of either family says, besides its addresses. */
struct family_fields {
	__u32 payload; /* bytes behind it, without a fragment header */
	__be32 id;     /* of IPv6; of IPv4 its upper half is 0 */
	__be16 fragment; /* offset and flags as in the new family */
	__u8 fragmented; /* to IPv6: it gets a fragment header */
	__u8 tos;
	__u8 ttl;
};

/* Writes an IPv4 header. Whole words are written, because words are read back: a load that
 * spans several stores waits until they have reached the cache. */
static __always_inline void family_ip4(union family_header *f, const struct family_fields *w, const struct addr *from,
				       const struct addr *to, __u8 proto)
{
	__u32 length = w->payload + sizeof(struct iphdr);
	__u32 first = bpf_htonl(0x45u << 24 | (__u32)w->tos << 16 | (length > 0xffff ? 0 : length));
	__u32 second = bpf_htonl(bpf_ntohl(w->id) << 16 | bpf_ntohs(w->fragment));
	__u32 third = bpf_htonl((__u32)w->ttl << 24 | (__u32)proto << 16);
	__u32 src = from->word[3], dst = to->word[3];

	f->word[0] = first;
	f->word[1] = second;
	f->word[2] = third | bpf_htonl(bpf_ntohs(csum_finish((__u64)first + second + third + src + dst)));
	f->word[3] = src;
	f->word[4] = dst;
}

/* Writes an IPv6 header, and that of a fragment, word by word as well. */
static __always_inline void family_ip6(union family_header *f, const struct family_fields *w, const struct addr *from,
				       const struct addr *to, __u8 proto)
{
	__u32 payload = w->payload + (w->fragmented ? sizeof(struct family_fragment) : 0);
	__u32 next = w->fragmented ? NEXT_FRAGMENT : proto;

	f->word[0] = bpf_htonl(6u << 28 | (__u32)w->tos << 20);
	f->word[1] = bpf_htonl((payload > 0xffff ? 0 : payload) << 16 | next << 8 | w->ttl);
	__builtin_memcpy(&f->ip6.saddr, from, sizeof(*from));
	__builtin_memcpy(&f->ip6.daddr, to, sizeof(*to));
	if (!w->fragmented)
		return;
	f->word[10] = bpf_htonl((__u32)proto << 24 | bpf_ntohs(w->fragment));
	f->word[11] = w->id;
}

/* Fills in what becomes of a packet's own header. payload: bytes behind the new one. wire:
 * of IPv4, bytes of the longest packet that it becomes on the wire. */
static __always_inline void family_fields(struct family_fields *w, const struct packet *p, __u8 tos, __u32 payload,
					  __u32 wire)
{
	int cut = wire <= FAMILY_CUTS || (p->scrub & SCRUB_NO_DF && !scrub_keeps_df(p));

	w->payload = payload;
	w->tos = tos;
	w->ttl = scrub_ttl(p->ttl, p->scrub, SCRUB_AT_HOP);
	w->fragmented = p->fragment != FRAGMENT_NONE;
	if (p->family == 4) {
		w->id = bpf_htonl(bpf_ntohs((__be16)p->fragment_id));
		w->fragment = bpf_htons(p->fragment_offset | (p->flags & PACKET_MORE ? 1 : 0));
	} else if (w->fragmented) {
		w->id = p->fragment_id;
		w->fragment = bpf_htons(p->fragment_offset / 8 | (p->flags & PACKET_MORE ? IP_MORE : 0));
	} else {
		w->id = cut || p->scrub & SCRUB_RANDOM_ID ? bpf_htonl(bpf_ntohs(scrub_id())) : 0; /* RFC 6864, 4.1 */
		w->fragment = cut ? 0 : bpf_htons(IP_DF);
	}
}

/* Copies a new header in front of the L4 header. < 0: it is outside the frame. */
static __always_inline int family_write(void *l3, void *end, const union family_header *f, __u32 length)
{
	__u32 *to = l3, i;

	if (l3 + sizeof(f->ip4) > end)
		return -1;
	for (i = 0; i < 5; i++)
		to[i] = f->word[i];
	if (length == sizeof(f->ip4))
		return 0;
	if (l3 + sizeof(f->ip6) > end)
		return -1;
	for (i = 5; i < 10; i++)
		to[i] = f->word[i];
	if (length == sizeof(f->ip6))
		return 0;
	if (l3 + sizeof(*f) > end)
		return -1;
	to[10] = f->word[10];
	to[11] = f->word[11];
	return 0;
}

/* An echo message, for the difference of its checksum. */
struct family_echo {
	const struct tuple *from; /* its addresses and those that it gets */
	const struct tuple *to;
	__u32 length;
	__be16 id;
	__be16 new_id;
	__u8 family;
	__u8 type;
};

/* Returns that difference: the type, the id, and in IPv6 the pseudo header. */
static __always_inline __u32 family_echo_diff(const struct family_echo *e)
{
	__be16 old = bpf_htons(e->type << 8), type = bpf_htons(family_echo(family_other(e->family), e->type) << 8);
	__u64 pseudo;

	if (e->family == 4)
		pseudo = csum_pseudo(&e->to->src, &e->to->dst, IPPROTO_ICMPV6, e->length);
	else
		pseudo = csum_pseudo_complement(&e->from->src, &e->from->dst, IPPROTO_ICMPV6, e->length);
	return csum_fold(pseudo + csum_word_diff(old, type) + csum_word_diff(e->id, e->new_id));
}

#endif
