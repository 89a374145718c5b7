/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From bytes to struct packet. The frame's bounds are checked only here: by parse(), and
 * by headers_reload() after anything that may have moved the frame. docs/packet-path.md,
 * step 1, is the specification.
 */
#ifndef WEIR_PACKET_PARSE_H
#define WEIR_PACKET_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "shared.h"
#include "packet/extension.h"
#include "packet/icmp.h"
#include "packet/logical.h"
#include "packet/packet.h"
#include "observe/reason.h"

/* Pointers into the frame; valid until something moves it. */
struct headers {
	struct ethhdr *eth; /* l3 if there is no Ethernet header */
	void *l3;
	void *l4;
	void *end;
};

#define IP_DF		 0x4000 /* do not fragment */
#define IP_FRAGMENT_MASK 0x3fff /* more fragments, offset */
#define IP_MORE		 0x2000
#define IP_OFFSET	 0x1fff
#define ICMPV4_QUOTE	 8 /* bytes before the quoted packet, both families */

/* Whether the frame ends before a header that it must have. */
static __always_inline enum reason parse_short(const struct packet *p)
{
	return p->fragment == FRAGMENT_FIRST ? REASON_FRAGMENT_SHORT : REASON_SHORT;
}

/* Checks the flags of a segment with SYN. As in pf, its FIN is cleared: here for the rules,
 * in the frame by path/scrub.h. */
static __always_inline enum reason parse_syn(struct packet *p)
{
	if (p->tcp_flags & TCP_FIN) {
		p->tcp_flags &= ~TCP_FIN;
		p->flags |= PACKET_FIN;
	}
	if (p->tcp_flags & TCP_RST || (!(p->tcp_flags & TCP_ACK) && (p->tcp_flags & TCP_CONTROL) != TCP_SYN))
		return REASON_TCP_FLAGS;
	return UNDECIDED;
}

/* Checks that TCP can send these flags together (RFC 9293, 3.10). */
static __always_inline enum reason parse_flags(struct packet *p)
{
	if (p->tcp_flags & TCP_SYN)
		return parse_syn(p);
	if (!(p->tcp_flags & TCP_ACK) && (p->tcp_flags & TCP_CONTROL) != TCP_RST)
		return REASON_TCP_FLAGS;
	return UNDECIDED;
}

static __always_inline enum reason parse_tcp(struct packet *p, struct headers *h, __u32 rest)
{
	struct tcphdr *tcp = h->l4;
	__u32 header;

	if (rest < sizeof(*tcp) || (void *)(tcp + 1) > h->end)
		return parse_short(p);
	header = tcp->doff * 4;
	if (header < sizeof(*tcp) || (header > rest && p->fragment == FRAGMENT_NONE))
		return REASON_MALFORMED;
	if (header > rest)
		return REASON_FRAGMENT_SHORT;
	tuple_set_ports(&p->tuple, tcp->source, tcp->dest, IPPROTO_TCP, p->tuple.zone);
	p->tcp_flags = ((__u8 *)tcp)[13];
	p->tcp_header = header;
	p->payload = rest - header;
	p->seq = bpf_ntohl(tcp->seq);
	p->ack = bpf_ntohl(tcp->ack_seq);
	p->window = bpf_ntohs(tcp->window);
	return parse_flags(p);
}

static __always_inline enum reason parse_udp(struct packet *p, struct headers *h, __u32 rest)
{
	struct udphdr *udp = h->l4;
	__u32 length;

	if (rest < sizeof(*udp) || (void *)(udp + 1) > h->end)
		return parse_short(p);
	length = bpf_ntohs(udp->len);
	if (p->fragment == FRAGMENT_NONE && (length < sizeof(*udp) || length > rest) && !p->gso)
		return REASON_MALFORMED;
	if (!udp->dest) /* no port, as in pf */
		return REASON_MALFORMED;
	tuple_set_ports(&p->tuple, udp->source, udp->dest, IPPROTO_UDP, p->tuple.zone);
	return UNDECIDED;
}

/* SCTP's common header (RFC 9260, 3.1): ports, verification tag, checksum. */
struct sctp_header {
	__be16 source;
	__be16 dest;
	__be32 tag;
	__be32 check;
};

static __always_inline enum reason parse_sctp(struct packet *p, struct headers *h, __u32 rest)
{
	struct sctp_header *sctp = h->l4;

	if (rest < sizeof(*sctp) || (void *)(sctp + 1) > h->end)
		return parse_short(p);
	tuple_set_ports(&p->tuple, sctp->source, sctp->dest, IPPROTO_SCTP, p->tuple.zone);
	return UNDECIDED;
}

static __always_inline enum reason parse_icmp(struct packet *p, struct headers *h, __u32 rest)
{
	struct icmphdr *icmp = h->l4;
	int reply;

	/* 8 bytes; 4 for ICMPv6 messages that are neither query nor error */
	if (rest < 4 || h->l4 + 4 > h->end)
		return parse_short(p);
	p->icmp_type = icmp->type;
	p->icmp_code = icmp->code;
	if (icmp_is_error(p->family, icmp->type))
		p->flags |= PACKET_ICMP_ERROR;
	if (p->family == 4 || p->flags & PACKET_ICMP_ERROR ||
	    icmp_query(p->family, icmp->type, &reply) >= 0) {
		if (rest < sizeof(*icmp) || (void *)(icmp + 1) > h->end)
			return parse_short(p);
		icmp_ports(&p->tuple, p->family, icmp);
		return UNDECIDED;
	}
	p->tuple.sport = bpf_htons(icmp->type);
	p->tuple.dport = 0;
	return UNDECIDED;
}

static __always_inline enum reason parse_l4(struct packet *p, struct headers *h)
{
	__u32 rest = p->length - (p->l4_offset - p->l3_offset);

	tuple_set_ports(&p->tuple, 0, 0, p->tuple.proto, p->tuple.zone);
	if (p->fragment == FRAGMENT_LATER)
		return UNDECIDED;
	if (p->tuple.proto == IPPROTO_TCP)
		return parse_tcp(p, h, rest);
	if (p->tuple.proto == IPPROTO_UDP)
		return parse_udp(p, h, rest);
	if (icmp_is(p->family, p->tuple.proto))
		return parse_icmp(p, h, rest);
	if (p->tuple.proto == IPPROTO_SCTP)
		return parse_sctp(p, h, rest);
	return UNDECIDED;
}

/* How fragments meet the rules: enum fragment_rules. Volatile: else clang has each packet read it, before
 * it knows whether that is a fragment. */
static __always_inline __u32 fragment_rules_now(void)
{
	return *(const volatile __u32 *)&shared.fragments;
}

/* Whether fragments meet the rules each for itself, and so have no first one. What the box sends
 * was whole before, and what the stack forwards may have been. */
static __always_inline int fragment_is_alone(const struct packet *p)
{
	return fragment_rules_now() == FRAGMENTS_ALONE && !(p->flags & PACKET_EGRESS);
}

/* Whether a scrub rule says if the packet is a fragment that meets the rules for itself. */
static __always_inline int fragment_is_listed(const struct packet *p)
{
	return p->fragment != FRAGMENT_NONE && fragment_rules_now() == FRAGMENTS_LISTED && !(p->flags & PACKET_EGRESS);
}

/* Makes a fragment one that meets the rules for itself. */
static __always_inline void fragment_stand_alone(struct packet *p)
{
	p->fragment = FRAGMENT_LATER;
	p->flags &= ~(PACKET_ICMP_ERROR | PACKET_FIN);
	p->tcp_flags = 0;
	p->icmp_type = 0;
	p->icmp_code = 0;
	tuple_set_ports(&p->tuple, 0, 0, p->tuple.proto, p->tuple.zone);
}

/* The checks for a fragment of either family; payload is what it carries. */
static __always_inline enum reason parse_fragment(struct packet *p, __u16 offset, int more, __u32 payload)
{
	p->fragment = offset || fragment_is_alone(p) ? FRAGMENT_LATER : FRAGMENT_FIRST;
	p->fragment_offset = offset;
	p->fragment_length = payload;
	p->flags |= more ? PACKET_MORE : 0;
	if ((more && payload & 7) || offset + payload > 65535)
		return REASON_MALFORMED;
	return UNDECIDED;
}

/*
 * Whether the checksum of a header without options is right (RFC 1812, 5.2.2). The stack
 * checks a header with options itself: all such packets go there. It has checked those of
 * a super-packet, and made those of the box's own packets.
 */
static __always_inline int parse_csum_fits(const struct packet *p, const struct iphdr *ip)
{
	const __u32 *word = (const __u32 *)ip;
	__u64 sum;

	if (p->flags & PACKET_EGRESS || p->gso)
		return 1;
	sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16); /* below 2^17: its upper half may be 2^16 */
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Whether a packet is longer than its frame. frame: bytes of the first buffer behind the
 * MACs and tags. */
static __always_inline int parse_is_cut(hook_ctx *ctx, struct packet *p, __u32 length, __u32 frame)
{
	if (length <= frame)
		return 0;
	p->flags |= PACKET_SCATTERED;
	return !hook_has(ctx, p->l3_offset + length);
}

static __always_inline enum reason parse_ip4(hook_ctx *ctx, struct packet *p, struct headers *h, __u32 frame)
{
	struct iphdr *ip = h->l3;
	__u32 header, length;
	__u16 fragment;

	if ((void *)(ip + 1) > h->end)
		return REASON_SHORT;
	if (ip->version != 4 || ip->ihl < 5)
		return REASON_MALFORMED;
	header = ip->ihl * 4;
	length = bpf_ntohs(ip->tot_len);
	if (!length && p->gso)
		length = frame; /* BIG TCP: more than the field holds */
	if (length < header || parse_is_cut(ctx, p, length, frame))
		return REASON_MALFORMED;
	if (header > sizeof(*ip)) {
		p->flags |= PACKET_OPTIONS;
		if (h->l3 + header > h->end)
			return REASON_SHORT;
	} else if (!parse_csum_fits(p, ip)) {
		return REASON_IP_CHECKSUM;
	}
	p->length = length;
	p->family = 4;
	p->ttl = ip->ttl;
	p->tos = ip->tos;
	p->tuple.proto = ip->protocol;
	addr_set4(&p->tuple.src, ip->saddr);
	addr_set4(&p->tuple.dst, ip->daddr);
	p->l4_offset = p->l3_offset + header;
	h->l4 = h->l3 + header;
	fragment = bpf_ntohs(ip->frag_off);
	if (fragment & IP_FRAGMENT_MASK) {
		p->fragment_id = ip->id;
		return parse_fragment(p, (fragment & IP_OFFSET) * 8, fragment & IP_MORE, length - header);
	}
	return UNDECIDED;
}

static __always_inline enum reason parse_extensions(hook_ctx *ctx, struct packet *p, struct headers *h)
{
	struct extension_chain e = {};
	enum reason r;

	e.offset = p->l4_offset;
	e.length = p->length - sizeof(struct ipv6hdr);
	e.next = p->tuple.proto;
	r = extension_walk(ctx, &e);
	p->fragment = e.fragment == FRAGMENT_FIRST && fragment_is_alone(p) ? FRAGMENT_LATER : e.fragment;
	p->flags |= e.flags | (e.more ? PACKET_MORE : 0);
	if (r != UNDECIDED)
		return r;
	p->fragment_id = e.fragment_id;
	p->fragment_offset = e.fragment_offset;
	p->fragment_length = e.fragment_length;
	p->tuple.proto = e.next;
	if (e.offset > HEADERS_MAX)
		return REASON_EXTENSION_CHAIN;
	p->l4_offset = e.offset;
	h->l4 = (void *)h->eth + e.offset;
	return UNDECIDED;
}

static __always_inline enum reason parse_ip6(hook_ctx *ctx, struct packet *p, struct headers *h,
					     __u32 frame)
{
	struct ipv6hdr *ip = h->l3;
	__u32 length;

	if ((void *)(ip + 1) > h->end)
		return REASON_SHORT;
	if (ip->version != 6)
		return REASON_MALFORMED;
	length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	if (length == sizeof(*ip) && p->gso)
		length = frame;
	if (parse_is_cut(ctx, p, length, frame))
		return REASON_MALFORMED;
	p->length = length;
	p->family = 6;
	p->ttl = ip->hop_limit;
	p->tos = bpf_ntohs(*(__be16 *)ip) >> 4 & 0xfc;
	p->tuple.proto = ip->nexthdr;
	addr_set6(&p->tuple.src, &ip->saddr);
	addr_set6(&p->tuple.dst, &ip->daddr);
	/* else the tuple would be an IPv4 packet's, and find its state */
	if (addr_is4(&p->tuple.src))
		return REASON_MARTIAN_SOURCE;
	if (addr_is4(&p->tuple.dst))
		return REASON_MARTIAN_DEST;
	if (addr_is_link_local(&p->tuple.src) || addr_is_link_local(&p->tuple.dst))
		p->tuple.zone = p->ifindex;
	p->l4_offset = p->l3_offset + sizeof(*ip);
	h->l4 = h->l3 + sizeof(*ip);
	if (extension_is(ip->nexthdr))
		return parse_extensions(ctx, p, h);
	return UNDECIDED;
}

/*
 * Parses Ethernet and tags. Sets *i and p->ifindex to the interface that the frame
 * belongs to, and l3_offset. Returns UNDECIDED with *proto, or the reason to leave the
 * frame to the stack.
 */
static __always_inline enum reason parse_eth(hook_ctx *ctx, struct packet *p, struct headers *h,
					     const struct interface **i, int in, __be16 *proto)
{
	const __u16 *mac, *dst;
	__u64 found;

	if ((void *)(h->eth + 1) > h->end)
		return REASON_SHORT;
	*proto = h->eth->h_proto;
	if (HOOK_IS_XDP && *proto != bpf_htons(ETH_P_IP) && *proto != bpf_htons(ETH_P_IPV6)) {
		found = logical_of(ctx, p->ifindex);
		p->ifindex = BELONGS_TO(found);
		*proto = BELONGS_PROTO(found);
		*i = &shared.interfaces[p->ifindex & (MAX_IFINDEX - 1)];
	}
	/* for plain frames too, this is read from the interface: the verifier then
	 * follows the rest once, and not again for each number of tags */
	p->l3_offset = sizeof(struct ethhdr) + (HOOK_IS_XDP ? (*i)->front : 0);
	mac = (const __u16 *)(*i)->mac;
	dst = (const __u16 *)h->eth->h_dest;
	if (in && !((*i)->flags & INTERFACE_LO)) {
		if (h->eth->h_dest[0] & 1)
			p->flags |= PACKET_GROUP;
		else if (((dst[0] ^ mac[0]) | (dst[1] ^ mac[1]) | (dst[2] ^ mac[2])) && hook_for_others(ctx))
			return REASON_OTHER_MAC;
	}
	return UNDECIDED;
}

/* Whether what comes or leaves by an interface has no Ethernet header. */
static __always_inline int parse_is_bare(hook_ctx *ctx, const struct interface *i)
{
	return i->flags & INTERFACE_L3 && !(i->flags & INTERFACE_FRAMED && hook_is_framed(ctx));
}

/* i: the interface of p->ifindex; both become those of the logical interface that the
 * frame belongs to. proto: the EtherType if the frame does not have it. in: at ingress.
 * gso: a super-packet, whose length fields may not hold its length. */
static __always_inline enum reason parse(hook_ctx *ctx, struct packet *p, struct headers *h,
					 const struct interface **i, __be16 proto, int in, int gso)
{
	__u32 frame = hook_linear(ctx);
	enum reason r;

	p->l3_offset = 0;
	p->qos = 0;
	p->scrub = 0;
	p->mark = hook_mark(ctx);
	p->fragment = FRAGMENT_NONE;
	p->flags = in ? 0 : PACKET_EGRESS;
	p->gso = gso;
	p->tcp_flags = 0;
	p->icmp_type = 0;
	p->icmp_code = 0;
	p->tuple.pad = 0;
	p->tuple.zone = 0;
	h->eth = hook_data(ctx);
	h->l3 = h->eth;
	h->end = hook_data_end(ctx);
	if (!((*i)->flags & INTERFACE_L3)) {
		r = parse_eth(ctx, p, h, i, in, &proto);
		if (r != UNDECIDED)
			return r;
		h->l3 = (void *)h->eth + p->l3_offset;
		frame -= p->l3_offset;
	} else if ((*i)->flags & INTERFACE_FRAMED && hook_is_framed(ctx)) {
		p->l3_offset = sizeof(struct ethhdr); /* of the frame that it came in: says nothing here */
		h->l3 = (void *)h->eth + sizeof(struct ethhdr);
		frame -= sizeof(struct ethhdr);
	}
	if (proto == bpf_htons(ETH_P_IP))
		r = parse_ip4(ctx, p, h, frame);
	else if (proto == bpf_htons(ETH_P_IPV6))
		r = parse_ip6(ctx, p, h, frame);
	else
		return REASON_IMPLICIT;
	return r == UNDECIDED ? parse_l4(p, h) : r;
}

/*
 * Views of a header: NULL if it is outside the frame. After parse() and headers_reload()
 * that cannot happen for headers that the packet has. The tests keep the bounds in this
 * file and satisfy the verifier.
 */
static __always_inline struct iphdr *header_ip4(const struct headers *h)
{
	struct iphdr *ip = h->l3;

	return (void *)(ip + 1) > h->end ? 0 : ip;
}

static __always_inline struct ipv6hdr *header_ip6(const struct headers *h)
{
	struct ipv6hdr *ip = h->l3;

	return (void *)(ip + 1) > h->end ? 0 : ip;
}

static __always_inline struct tcphdr *header_tcp(const struct headers *h)
{
	struct tcphdr *tcp = h->l4;

	return (void *)(tcp + 1) > h->end ? 0 : tcp;
}

/* Returns the first 8 bytes behind the IP header: ports, or an ICMP header. */
static __always_inline void *header_8(const struct headers *h)
{
	return h->l4 + 8 > h->end ? 0 : h->l4;
}

static __always_inline struct ethhdr *header_eth(const struct headers *h)
{
	return (void *)(h->eth + 1) > h->end ? 0 : h->eth;
}

/* Sets the pointers to headers at these offsets. < 0: no packet has them there. */
static __always_inline int headers_at(struct headers *h, void *data, void *end, __u32 l3, __u32 l4)
{
	if (l3 > HEADERS_MAX || l4 > HEADERS_MAX)
		return -1;
	h->eth = data;
	h->l3 = data + l3;
	h->l4 = data + l4;
	h->end = end;
	return 0;
}

/*
 * Reloads the pointers. Returns < 0 if the offsets cannot be ours, which cannot happen
 * after parse().
 */
static __always_inline int headers_reload(struct headers *h, const struct packet *p, void *data, void *end)
{
	return headers_at(h, data, end, p->l3_offset, p->l4_offset);
}

#endif
