/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet that a reject sends: a TCP reset, or an ICMP error that quotes the blocked
 * packet, made in that packet's frame. docs/packet-path.md, 12. RFC 9293, 3.5.2; RFC
 * 1812, 4.3.2; RFC 4443, 2.4.
 */
#ifndef WEIR_PATH_REJECT_PACKET_H
#define WEIR_PATH_REJECT_PACKET_H

#include "packet/csum.h"
#include "packet/parse.h"
#include "packet/pppoe.h"
#include "rules/ruleset.h"
#include "verifier.h"

/* An IPv4 error has 576 bytes at most (RFC 1812, 4.3.2.3), an IPv6 error 1,280 (RFC
 * 4443, 2.4): every link carries these sizes. */
#define REJECT_MAX4	576
#define REJECT_MAX6	1280
/* The headers in front of the quoted packet. */
#define ICMP_HEADER	8
#define REJECT_FRONT4	(sizeof(struct iphdr) + ICMP_HEADER)
#define REJECT_FRONT6	(sizeof(struct ipv6hdr) + ICMP_HEADER)
#define REJECT_TTL	64
#define TOS_CONTROL	0xc0 /* precedence of routers' own messages (RFC 1812, 4.3.2.5) */
#define RST_LENGTH4	(sizeof(struct iphdr) + sizeof(struct tcphdr))
#define RST_LENGTH6	(sizeof(struct ipv6hdr) + sizeof(struct tcphdr))
/* Ethernet frames have at least 60 bytes, and not every driver pads what XDP sends. */
#define RST_FRAME4	(HOOK_IS_XDP ? 46 : RST_LENGTH4)
#define RST_FRAME6	RST_LENGTH6

#define ICMP_UNREACH	3
#define ICMP6_UNREACH	1

/* The kind of an ICMP error: the first bytes of its header, without the checksum. */
struct reject_what {
	__u8 type;
	__u8 code;
	__u16 mtu; /* of "fragmentation needed" and "packet too big" (RFC 1191, RFC 4443); else 0 */
};

/* Room for an Ethernet header with the most layers that a frame may have; a multiple of
 * 4. */
#define LINK_MAX	32

/* Buffer and rate limit of rejects. One per CPU. */
struct reject {
	__u32 tokens; /* rejects that may be sent now	*/
	__u32 filled; /* tick up to which tokens were added	*/
	__u8 link[LINK_MAX]; /* in front of the IP packet: MACs, tags, EtherType */
	__u8 data[REJECT_MAX6 + 8]; /* the IP packet; the last bytes are for rounding up */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reject);
} rejects SEC(".maps");

struct reject_words {
	const struct reject *reject;
	__u64 sum;
	__u32 from;
};

static long reject_word(__u32 number, struct reject_words *w)
{
	__u32 at = w->from + number * sizeof(__u32);

	if (at > sizeof(w->reject->data) - sizeof(__u32))
		return 1;
	w->sum += *(const __u32 *)&w->reject->data[at];
	return 0;
}

/* Returns the sum over length bytes of the reject, without an incomplete word at the
 * end. It goes word by word, which the verifier follows once. Rejects are rare. This is a
 * function of its own because its callers' stacks are full. */
__noinline __u64 reject_sum(const struct reject *a, __u32 from, __u32 length)
{
	struct reject_words w = { .reject = a, .from = from };

	if (!a)
		return 0;

	bpf_loop(length / sizeof(__u32), reject_word, &w, 0);
	return w.sum;
}

static __always_inline void reject_ip4(struct reject *a, const struct addr *src, const struct addr *dst, __u8 tos,
				       __u8 proto, __u8 ttl, __u32 length)
{
	struct iphdr *ip = (void *)a->data;

	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = tos;
	ip->tot_len = bpf_htons(length);
	ip->frag_off = bpf_htons(IP_DF); /* DF allows an id of 0 (RFC 6864, 4.1) */
	ip->ttl = ttl;
	ip->protocol = proto;
	ip->saddr = src->word[3];
	ip->daddr = dst->word[3];
	ip->check = csum_finish(reject_sum(a, 0, sizeof(*ip)));
}

static __always_inline void reject_ip6(struct reject *a, const struct addr *src, const struct addr *dst, __u8 proto,
				       __u8 ttl, __u32 length)
{
	struct ipv6hdr *ip = (void *)a->data;

	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 6;
	ip->payload_len = bpf_htons(length - sizeof(*ip));
	ip->nexthdr = proto;
	ip->hop_limit = ttl;
	__builtin_memcpy(&ip->saddr, src, sizeof(*src));
	__builtin_memcpy(&ip->daddr, dst, sizeof(*dst));
}

/* Writes the reset behind its IP header (RFC 9293, 3.5.2). */
static __always_inline void reject_tcp(struct reject *a, const struct packet *p, __u32 at, int partial)
{
	struct tcphdr *tcp = (void *)&a->data[at];
	__u64 pseudo = csum_pseudo(&p->tuple.src, &p->tuple.dst, IPPROTO_TCP, sizeof(*tcp));

	__builtin_memset(tcp, 0, sizeof(*tcp));
	tcp->source = p->tuple.dport;
	tcp->dest = p->tuple.sport;
	tcp->doff = sizeof(*tcp) / 4;
	tcp->rst = 1;
	if (p->tcp_flags & TCP_ACK) {
		tcp->seq = bpf_htonl(p->ack);
	} else {
		tcp->ack = 1;
		tcp->ack_seq = bpf_htonl(p->seq + p->payload + (p->tcp_flags & TCP_SYN ? 1 : 0) +
					 (p->tcp_flags & TCP_FIN ? 1 : 0));
	}
	tcp->check = partial ? ~csum_finish(pseudo) : csum_finish(pseudo + reject_sum(a, at, sizeof(*tcp)));
}

/* Writes the reject's Ethernet header and tags: back to where the frame came from. < 0:
 * the sender is no single station, or the frame was not for a single station. */
static __noinline int reject_link(hook_ctx *ctx, struct reject *a, const struct packet *p)
{
	struct ethhdr *eth = (void *)a->link;
	__u32 length = p->l3_offset;
	__u8 mac[6];

	if (!length)
		return 0;
	asm volatile("" : "+r"(length)); /* keeps the bound that was tested */
	if (length > LINK_MAX || hook_load(ctx, 0, a->link, length) || (eth->h_dest[0] | eth->h_source[0]) & 1)
		return -1;
	__builtin_memcpy(mac, eth->h_dest, sizeof(mac));
	__builtin_memcpy(eth->h_dest, eth->h_source, sizeof(mac));
	__builtin_memcpy(eth->h_source, mac, sizeof(mac));
	return 0;
}

/* Writes the length of the packet that a PPPoE session's header has. TCX sees no such header. */
static __always_inline void reject_session(struct reject *a, __u32 link, __u32 length)
{
	const __u32 size = sizeof(__be16) + PPPOE_LENGTH;
	__u32 at = link - size;
	__be16 *type;

	if (!HOOK_IS_XDP || link < sizeof(struct ethhdr) + PPPOE_LENGTH)
		return;
	asm volatile("" : "+r"(at)); /* Linux 6.12 learns the bound of what is compared alone */
	if (at > LINK_MAX - size)
		return;
	type = (void *)&a->link[at];
	if (*type == bpf_htons(ETH_P_PPP_SES))
		((struct session *)(type + 1))->length = bpf_htons(length + sizeof(__be16));
}

/* Writes stored bytes of a->data to the front of the frame, behind Ethernet header, tags and session.
 * length: of the packet. */
static __always_inline int reject_store(hook_ctx *ctx, struct reject *a, const struct packet *p, __u32 stored, __u32 length)
{
	__u32 link = p->l3_offset;

	asm volatile("" : "+r"(link));
	reject_session(a, link, length);
	if (link > LINK_MAX || (link && hook_store(ctx, 0, a->link, link)))
		return -1;
	return hook_store(ctx, link, a->data, stored);
}

/* Makes a reset in the packet's frame. Returns < 0 if that is impossible. */
__noinline int reject_rst(hook_ctx *ctx, struct reject *a, const struct packet *p, __u8 ttl)
{
	__u32 header;
	int partial;

	if (!a || !p)
		return -1;
	header = p->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	partial = hook_partial(ctx, p->l4_offset + 16);
	/* a checksum that a device will complete stays in place: what is in front of it
	 * is removed */
	if (partial && hook_shrink(ctx, p->l4_offset - p->l3_offset - header))
		return -1;
	if (hook_resize(ctx, p->l3_offset + (reread(p->family) == 4 ? RST_FRAME4 : RST_FRAME6), 0))
		return -1;
	if (reread(p->family) == 4) {
		__builtin_memset(&a->data[RST_LENGTH4], 0, RST_FRAME4 - RST_LENGTH4);
		reject_tcp(a, p, sizeof(struct iphdr), partial);
		reject_ip4(a, &p->tuple.dst, &p->tuple.src, 0, IPPROTO_TCP, ttl, RST_LENGTH4);
		return reject_store(ctx, a, p, RST_FRAME4, RST_LENGTH4);
	}
	reject_tcp(a, p, sizeof(struct ipv6hdr), partial);
	reject_ip6(a, &p->tuple.dst, &p->tuple.src, IPPROTO_TCP, ttl, RST_LENGTH6);
	return reject_store(ctx, a, p, RST_LENGTH6, RST_LENGTH6);
}

/*
 * If a device will complete the quoted packet's checksum, it sums what is quoted. So the
 * field gets a value f that this does not change, f = ~(sum + f). The error's own
 * checksum is then right before and after. Returns the field's offset in a->data, 0 if
 * there is none, < 0 if it is not quoted.
 */
static __always_inline int reject_fix_partial(hook_ctx *ctx, struct reject *a, const struct packet *p, __u32 front,
					 __u32 quoted)
{
	__u32 field = p->tuple.proto == IPPROTO_TCP ? 16 : 6, l4 = p->l4_offset - p->l3_offset;
	__u32 at = front + l4 + field, rest;

	if (reread(p->tuple.proto) != IPPROTO_TCP && reread(p->tuple.proto) != IPPROTO_UDP)
		return 0;
	if (!hook_partial(ctx, p->l4_offset + field))
		return 0;
	if (l4 > HEADERS_MAX || l4 + field + 2 > quoted)
		return -1;
	asm volatile("" : "+r"(at)); /* keeps the bounds that were tested */
	if (at > REJECT_MAX6)
		return -1;
	*(__u16 *)&a->data[at] = 0;
	/* the quote behind the IP header, modulo 2^16 - 1, and half of its negative */
	rest = csum_finish(reject_sum(a, front, quoted + 3)) + (__u16)~csum_finish(reject_sum(a, front, l4));
	rest %= 0xffff;
	*(__u16 *)&a->data[at] = rest & 1 ? (rest + 0xffff) / 2 : rest / 2;
	return at;
}

/* Writes the ICMP header and its checksum over the quote behind it. */
static __always_inline void reject_icmp(struct reject *a, __u32 at, __u32 quoted, const struct reject_what *what,
					__u64 pseudo)
{
	struct icmphdr *icmp = (void *)&a->data[at];

	__builtin_memset(icmp, 0, sizeof(*icmp));
	icmp->type = what->type;
	icmp->code = what->code;
	icmp->un.frag.mtu = bpf_htons(what->mtu); /* the lower half of IPv6's MTU, too */
	icmp->checksum = csum_finish(pseudo + reject_sum(a, at, ICMP_HEADER + quoted + 3));
}

/* Makes an ICMP error about the packet in its frame. Returns < 0 if that is impossible. */
__noinline int reject_error(hook_ctx *ctx, struct reject *a, const struct packet *p, const struct addr *src,
			    const struct reject_what *what)
{
	__u32 six, front, most, quoted;
	int settled;

	if (!a || !p || !src || !what)
		return -1;
	six = p->family >> 1 & 1; /* a number and no test: what follows is the same for both families */
	asm volatile("" : "+r"(six));
	front = REJECT_FRONT4 + six * (REJECT_FRONT6 - REJECT_FRONT4);
	most = REJECT_MAX4 + six * (REJECT_MAX6 - REJECT_MAX4) - front;
	quoted = p->length < most ? p->length : most;
	asm volatile("" : "+r"(quoted));
	if (quoted < sizeof(struct iphdr) || quoted > REJECT_MAX6 - REJECT_FRONT6)
		return -1;
	if (hook_load(ctx, p->l3_offset, &a->data[front], quoted))
		return -1;
	__builtin_memset(&a->data[front + quoted], 0, 4);
	settled = reject_fix_partial(ctx, a, p, front, quoted);
	if (settled < 0 || hook_resize(ctx, p->l3_offset + quoted, front))
		return -1;
	if (settled && hook_store(ctx, p->l3_offset + settled, &a->data[settled], 2))
		return -1;
	if (reread(p->family) == 4) {
		reject_icmp(a, sizeof(struct iphdr), quoted, what, 0);
		reject_ip4(a, src, &p->tuple.src, TOS_CONTROL, IPPROTO_ICMP, REJECT_TTL, REJECT_FRONT4 + quoted);
		return reject_store(ctx, a, p, REJECT_FRONT4, REJECT_FRONT4 + quoted);
	}
	reject_icmp(a, sizeof(struct ipv6hdr), quoted, what,
		    csum_pseudo(src, &p->tuple.src, IPPROTO_ICMPV6, ICMP_HEADER + quoted));
	reject_ip6(a, src, &p->tuple.src, IPPROTO_ICMPV6, REJECT_TTL, REJECT_FRONT6 + quoted);
	return reject_store(ctx, a, p, REJECT_FRONT6, REJECT_FRONT6 + quoted);
}

#endif
