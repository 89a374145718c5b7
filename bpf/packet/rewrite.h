/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Changes a packet's addresses, ports, checksums and TTL. What is in front of the packet is
 * written by hook/ and route/encap.h, a reject by path/reject_packet.h, what an ICMP error
 * quotes by path/icmp_error.h. */
#ifndef WEIR_PACKET_REWRITE_H
#define WEIR_PACKET_REWRITE_H

#include "packet/csum.h"
#include "packet/parse.h"
#include "packet/scrub_header.h"
#include "state/state.h"

/*
 * Corrects the checksum at off behind the L4 header. udp: 0 means that there is none. At
 * TCX the kernel knows whether the checksum is complete or left to the device; under XDP
 * it is complete.
 */
static __always_inline void rewrite_csum(hook_ctx *ctx, void *l4, __u32 l4_offset, __u32 off, __u32 addr_diff,
					 __u32 port_diff, int udp)
{
	__u64 flags = udp ? BPF_F_MARK_MANGLED_0 : 0;

	if (HOOK_IS_XDP) {
		csum_replace(l4 + off, addr_diff + port_diff, udp);
		return;
	}
	if (addr_diff)
		bpf_l4_csum_replace((void *)ctx, l4_offset + off, 0, addr_diff, BPF_F_PSEUDO_HDR | flags);
	if (port_diff)
		bpf_l4_csum_replace((void *)ctx, l4_offset + off, 0, port_diff, flags);
}

/* Where the checksum is in an L4 header. */
enum csum_at {
	CSUM_AT_ICMP = 2,
	CSUM_AT_UDP = 6,
	CSUM_AT_TCP = 16,
};

/* 0: the protocol has none. */
static __always_inline __u32 rewrite_csum_at(__u8 family, __u8 proto)
{
	if (proto == IPPROTO_TCP)
		return CSUM_AT_TCP;
	if (proto == IPPROTO_UDP)
		return CSUM_AT_UDP;
	return icmp_is(family, proto) ? CSUM_AT_ICMP : 0;
}

/* Corrects the L4 checksum in a copy of a header, at *check. */
static __always_inline void rewrite_copied_csum(__u16 *check, __u8 family, __u8 proto, __u32 addr_diff,
						__u32 port_diff)
{
	if (family == 4 && proto == IPPROTO_ICMP) /* covers no pseudo header */
		addr_diff = 0;
	csum_replace(check, addr_diff + port_diff, proto == IPPROTO_UDP);
}

/* Corrects the L4 checksum; addr_diff only if it covers a pseudo header. */
static __always_inline void rewrite_l4_csum(hook_ctx *ctx, struct headers *h, const struct packet *p,
			       __u32 addr_diff, __u32 port_diff)
{
	switch (p->tuple.proto) {
	case IPPROTO_TCP:
		if (header_tcp(h))
			rewrite_csum(ctx, h->l4, p->l4_offset, CSUM_AT_TCP, addr_diff, port_diff, 0);
		return;
	case IPPROTO_UDP:
		if (header_8(h))
			rewrite_csum(ctx, h->l4, p->l4_offset, CSUM_AT_UDP, addr_diff, port_diff, 1);
		return;
	case IPPROTO_ICMP:
		if (p->family == 4 && header_8(h))
			rewrite_csum(ctx, h->l4, p->l4_offset, CSUM_AT_ICMP, 0, port_diff, 0);
		return;
	case IPPROTO_ICMPV6:
		if (p->family == 6 && header_8(h))
			rewrite_csum(ctx, h->l4, p->l4_offset, CSUM_AT_ICMP, addr_diff, port_diff, 0);
		return;
	}
}

static __always_inline void rewrite_ip4(struct iphdr *ip, const struct addr *src, const struct addr *dst,
					__u32 addr_diff)
{
	ip->saddr = src->word[3];
	ip->daddr = dst->word[3];
	ip->check = csum_apply(ip->check, addr_diff);
}

static __always_inline void rewrite_ip6(struct ipv6hdr *ip, const struct addr *src, const struct addr *dst)
{
	__builtin_memcpy(&ip->saddr, src, sizeof(*src));
	__builtin_memcpy(&ip->daddr, dst, sizeof(*dst));
}

static __always_inline void rewrite_addresses(struct headers *h, const struct packet *p, const struct addr *src,
				   const struct addr *dst, __u32 addr_diff)
{
	struct ipv6hdr *ip6;
	struct iphdr *ip4;

	if (p->family == 4) {
		ip4 = header_ip4(h);
		if (ip4)
			rewrite_ip4(ip4, src, dst, addr_diff);
	} else {
		ip6 = header_ip6(h);
		if (ip6)
			rewrite_ip6(ip6, src, dst);
	}
}

/* Writes ports, or the id of an ICMP query, in the first 8 bytes of an L4 header. */
static __always_inline void rewrite_ports(__be16 *port, __u8 family, __u8 proto, __u8 icmp_type, __be16 sport,
					  __be16 dport)
{
	int reply;

	if (tuple_translates_ports(proto)) {
		port[0] = sport;
		port[1] = dport;
	} else if (icmp_is(family, proto) && icmp_query(family, icmp_type, &reply) >= 0) {
		port[2] = reply ? dport : sport;
	}
}

/*
 * Translates a packet. The differences lead from its present addresses and ports to the
 * new ones. Returns < 0 if the frame is gone, which cannot happen.
 */
static __always_inline int rewrite_translate(hook_ctx *ctx, struct headers *h, const struct packet *p,
			    const struct addr *src, const struct addr *dst, __be16 sport, __be16 dport,
			    __u32 addr_diff, __u32 port_diff)
{
	__be16 *port;

	if (p->fragment != FRAGMENT_LATER) {
		rewrite_l4_csum(ctx, h, p, addr_diff, port_diff);
		if (HOOK_MOVES && headers_reload(h, p, hook_data(ctx), hook_data_end(ctx)))
			return -1;
	}
	rewrite_addresses(h, p, src, dst, addr_diff);
	port = p->fragment != FRAGMENT_LATER ? header_8(h) : 0;
	if (port)
		rewrite_ports(port, p->family, p->tuple.proto, p->icmp_type, sport, dport);
	return 0;
}

/* The same if the differences are not known. */
static __always_inline int rewrite_translate_to(hook_ctx *ctx, struct headers *h, const struct packet *p,
			       const struct addr *src, const struct addr *dst, __be16 sport, __be16 dport)
{
	const struct tuple *t = &p->tuple;
	__u64 addr = csum_addr_diff(&t->src, src) + csum_addr_diff(&t->dst, dst);
	__u32 ports = csum_word_diff(t->sport, sport) + csum_word_diff(t->dport, dport);

	return rewrite_translate(ctx, h, p, src, dst, sport, dport, csum_fold(addr), csum_fold(ports));
}

/* RFC 1812, 5.3.1; RFC 1141 for the checksum. */
static __always_inline void rewrite_ttl(struct headers *h, const struct packet *p)
{
	if (p->family == 4) {
		struct iphdr *ip = header_ip4(h);
		__u32 sum;

		if (!ip)
			return;
		ip->ttl--;
		sum = ip->check + bpf_htons(0x0100);
		ip->check = sum + (sum >= 0xffff);
	} else {
		struct ipv6hdr *ip = header_ip6(h);

		if (ip)
			ip->hop_limit--;
	}
}

/* Writes what changes in an IP header when a packet is sent on. */
static __always_inline void rewrite_hop(struct headers *h, const struct packet *p)
{
	if (p->scrub)
		scrub_header(h, p, SCRUB_AT_HOP);
	else
		rewrite_ttl(h, p);
}

/* Writes what changes in a packet of a live state, except its MACs. < 0: it cannot. */
static __always_inline int rewrite_packet(hook_ctx *ctx, struct headers *h, const struct packet *p,
					 const struct state *s, __u32 number)
{
	const struct course *own, *other;

	if (s->flags & STATE_NAT) {
		own = STATE_DIRECTION(number) ? &s->back : &s->forth;
		other = STATE_DIRECTION(number) ? &s->forth : &s->back;
		if (rewrite_translate(ctx, h, p, &other->tuple.dst, &other->tuple.src, other->tuple.dport,
			      other->tuple.sport, own->csum_addr, own->csum_port))
			return -1;
	}
	rewrite_hop(h, p);
	return 0;
}

#endif
