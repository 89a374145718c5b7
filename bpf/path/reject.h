/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the sender of a blocked packet is told, if the rule says so: a TCP reset, or an
 * ICMP error "unreachable" that quotes the packet. The reject is made in the packet's
 * frame and goes back the way that the packet came. docs/packet-path.md, 12. RFC 9293,
 * 3.5.2; RFC 1812, 4.3.2; RFC 4443, 2.4.
 */
#ifndef WEIR_PATH_REJECT_H
#define WEIR_PATH_REJECT_H

#include "observe/count.h"
#include "observe/rule_path.h"
#include "packet/csum.h"
#include "packet/parse.h"
#include "packet/sanity.h"
#include "path/scratch.h"
#include "rules/ruleset.h"

/* The box's addresses, as rejects need them. kept; written by the daemon. The first
 * kind: the address that rejects come from, by interface; 0 is for interfaces without
 * one. */
enum reject_source_kind {
	REJECT_SOURCE_IP4 = 4,
	REJECT_SOURCE_IP6 = 6,
	REJECT_SOURCE_LINK_LOCAL = 10,
};

struct reject_source_key {
	__u32 ifindex;
	__u32 kind;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct reject_source_key);
	__type(value, struct addr);
} reject_sources SEC(".maps");

/* Broadcast addresses of the box's networks; value: 1. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct addr);
	__type(value, __u32);
} broadcasts SEC(".maps");

/* The fate of blocked packets whose rule rejects. kept; read by info. */
enum rejected {
	REJECTED_RST,
	REJECTED_ICMP,
	REJECTED_LAST_GIVEN = REJECTED_ICMP,
	REJECTED_LIMIT, /* not rejected, because of REJECT_RATE */
	REJECTED_NOT,	/* not rejected, because it could not be made or sent */
	REJECTED_COUNT,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REJECTED_COUNT);
	__type(key, __u32);
	__type(value, struct counter);
} reject_counters SEC(".maps");

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
#define IP_DF		0x4000
#define RST_LENGTH4	(sizeof(struct iphdr) + sizeof(struct tcphdr))
#define RST_LENGTH6	(sizeof(struct ipv6hdr) + sizeof(struct tcphdr))
/* Ethernet frames have at least 60 bytes, and not every driver pads what XDP sends. */
#define RST_FRAME4	(HOOK_IS_XDP ? 46 : RST_LENGTH4)
#define RST_FRAME6	RST_LENGTH6

#define ICMP_UNREACH	3
#define ICMP6_UNREACH	1

enum reject_kind {
	REJECT_NONE,
	REJECT_RST,
	REJECT_ICMP,
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

static __always_inline void reject_count(__u32 what, __u32 bytes)
{
	count_add(bpf_map_lookup_elem(&reject_counters, &what), bytes);
}

/* Whether an ICMP message may be rejected: it neither reports an error nor redirects
 * (RFC 1122, 3.2.2; RFC 4443, 2.4). */
static __always_inline int reject_icmp_informs(__u8 family, __u8 type)
{
	if (family == 4)
		return type == 0 || (type >= 8 && type <= 10) || (type >= 13 && type <= 18);
	return type >= 128 && type != ND_LAST;
}

/* Whether an address belongs to one host. Nothing is sent to other addresses, nor about
 * packets for them (RFC 1122, 3.2.2; RFC 4443, 2.4). */
static __always_inline int reject_is_host(const struct addr *a)
{
	__u32 v4 = addr_v4(a);

	if (addr_is_multicast(a) || bpf_map_lookup_elem(&broadcasts, a))
		return 0;
	if (addr_is4(a))
		return v4 >> 24 != 0 && v4 >> 28 != 0xf;
	return !addr_is_low6(a, 0);
}

/* Returns how the rule rejects this packet. */
static __always_inline enum reject_kind reject_kind(const struct packet *p, const struct rule *r)
{
	enum reject_kind kind = r->flags & RULE_RETURN_ICMP ? REJECT_ICMP : REJECT_NONE;

	if (p->tuple.proto == IPPROTO_TCP && r->flags & RULE_RETURN_RST)
		kind = p->tcp_flags & TCP_RST ? REJECT_NONE : REJECT_RST;
	else if (icmp_is(p->family, p->tuple.proto) && !reject_icmp_informs(p->family, p->icmp_type))
		kind = REJECT_NONE;
	if (kind == REJECT_NONE || p->fragment == FRAGMENT_LATER || p->flags & PACKET_GROUP)
		return REJECT_NONE;
	return reject_is_host(&p->tuple.src) && reject_is_host(&p->tuple.dst) ? kind : REJECT_NONE;
}

/* Takes a token for one reject: REJECT_RATE a second, REJECT_BURST at once. */
static __always_inline int reject_allowed(struct reject *a)
{
	__u32 ticks = shared.now - a->filled;

	a->filled = shared.now;
	if (ticks >= REJECT_BURST * TICKS_PER_SECOND / REJECT_RATE)
		a->tokens = REJECT_BURST;
	else
		a->tokens += ticks * (REJECT_RATE / TICKS_PER_SECOND);
	if (a->tokens > REJECT_BURST)
		a->tokens = REJECT_BURST;
	if (!a->tokens)
		return 0;
	a->tokens--;
	return 1;
}

/*
 * Returns the address that an ICMP error comes from. It is the packet's destination if
 * that is the box, or if the box has sent the packet (the box takes its own addresses
 * for martians). Else it is an address of the interface that the packet came in by (RFC
 * 1812, 4.3.2.4), or of the box if the interface has none. NULL: there is none.
 */
static __always_inline const struct addr *reject_source(const struct packet *p, const struct interface *i)
{
	const struct addr *own;
	struct reject_source_key key = { .ifindex = p->ifindex, .kind = REJECT_SOURCE_IP4 };

	if (p->flags & PACKET_EGRESS || i->flags & INTERFACE_LO || bpf_map_lookup_elem(&addresses, &p->tuple.dst))
		return &p->tuple.dst;
	if (p->family == 6)
		key.kind = addr_is_link_local(&p->tuple.src) ? REJECT_SOURCE_LINK_LOCAL : REJECT_SOURCE_IP6;
	own = bpf_map_lookup_elem(&reject_sources, &key);
	if (own)
		return own;
	key.ifindex = 0;
	return bpf_map_lookup_elem(&reject_sources, &key);
}

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
 * end. It goes word by word, which the verifier follows once. Rejects are rare. */
static __always_inline __u64 reject_sum(const struct reject *a, __u32 from, __u32 length)
{
	struct reject_words w = { .reject = a, .from = from };

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
static __always_inline int reject_link(hook_ctx *ctx, struct reject *a, const struct packet *p)
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

/* Writes a->data to the front of the frame, behind Ethernet header and tags. */
static __always_inline int reject_store(hook_ctx *ctx, struct reject *a, const struct packet *p, __u32 length)
{
	__u32 link = p->l3_offset;

	asm volatile("" : "+r"(link));
	if (link > LINK_MAX || (link && hook_store(ctx, 0, a->link, link)))
		return -1;
	return hook_store(ctx, link, a->data, length);
}

/* Makes a reset in the packet's frame. Returns < 0 if that is impossible. */
static __always_inline int reject_rst(hook_ctx *ctx, struct reject *a, const struct packet *p, __u8 ttl)
{
	__u32 header = p->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	int partial = hook_partial(ctx, p->l4_offset + 16);

	/* a checksum that a device will complete stays in place: what is in front of it
	 * is removed */
	if (partial && hook_narrow(ctx, p->l4_offset - p->l3_offset - header))
		return -1;
	if (hook_resize(ctx, p->l3_offset + (p->family == 4 ? RST_FRAME4 : RST_FRAME6), 0))
		return -1;
	if (p->family == 4) {
		__builtin_memset(&a->data[RST_LENGTH4], 0, RST_FRAME4 - RST_LENGTH4);
		reject_tcp(a, p, sizeof(struct iphdr), partial);
		reject_ip4(a, &p->tuple.dst, &p->tuple.src, 0, IPPROTO_TCP, ttl, RST_LENGTH4);
		return reject_store(ctx, a, p, RST_FRAME4);
	}
	reject_tcp(a, p, sizeof(struct ipv6hdr), partial);
	reject_ip6(a, &p->tuple.dst, &p->tuple.src, IPPROTO_TCP, ttl, RST_LENGTH6);
	return reject_store(ctx, a, p, RST_LENGTH6);
}

/*
 * If a device will complete the quoted packet's checksum, it sums what is quoted. So the
 * field gets a value f that this does not change, f = ~(sum + f). The error's own
 * checksum is then right before and after. Returns the field's offset in a->data, 0 if
 * there is none, < 0 if it is not quoted.
 */
static __always_inline int reject_settle(hook_ctx *ctx, struct reject *a, const struct packet *p, __u32 front,
					 __u32 quoted)
{
	__u32 field = p->tuple.proto == IPPROTO_TCP ? 16 : 6, l4 = p->l4_offset - p->l3_offset;
	__u32 at = front + l4 + field, rest;

	if (p->tuple.proto != IPPROTO_TCP && p->tuple.proto != IPPROTO_UDP)
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
static __always_inline void reject_icmp(struct reject *a, __u32 at, __u32 quoted, __u8 type, __u8 code, __u64 pseudo)
{
	struct icmphdr *icmp = (void *)&a->data[at];

	__builtin_memset(icmp, 0, sizeof(*icmp));
	icmp->type = type;
	icmp->code = code;
	icmp->checksum = csum_finish(pseudo + reject_sum(a, at, ICMP_HEADER + quoted + 3));
}

/* Makes an ICMP error about the packet in its frame. Returns < 0 if that is impossible. */
static __always_inline int reject_error(hook_ctx *ctx, struct reject *a, const struct packet *p,
					const struct addr *src, const struct rule *r)
{
	__u32 front = p->family == 4 ? REJECT_FRONT4 : REJECT_FRONT6;
	__u32 most = p->family == 4 ? REJECT_MAX4 - REJECT_FRONT4 : REJECT_MAX6 - REJECT_FRONT6;
	__u32 quoted = p->length < most ? p->length : most;
	int settled;

	asm volatile("" : "+r"(quoted));
	if (quoted < sizeof(struct iphdr) || quoted > REJECT_MAX6 - REJECT_FRONT6)
		return -1;
	if (hook_load(ctx, p->l3_offset, &a->data[front], quoted))
		return -1;
	__builtin_memset(&a->data[front + quoted], 0, 4);
	settled = reject_settle(ctx, a, p, front, quoted);
	if (settled < 0 || hook_resize(ctx, p->l3_offset + quoted, front))
		return -1;
	if (settled && hook_store(ctx, p->l3_offset + settled, &a->data[settled], 2))
		return -1;
	if (p->family == 4) {
		reject_icmp(a, sizeof(struct iphdr), quoted, ICMP_UNREACH, r->return_code4, 0);
		reject_ip4(a, src, &p->tuple.src, TOS_CONTROL, IPPROTO_ICMP, REJECT_TTL, REJECT_FRONT4 + quoted);
		return reject_store(ctx, a, p, REJECT_FRONT4);
	}
	reject_icmp(a, sizeof(struct ipv6hdr), quoted, ICMP6_UNREACH, r->return_code6,
		    csum_pseudo(src, &p->tuple.src, IPPROTO_ICMPV6, ICMP_HEADER + quoted));
	reject_ip6(a, src, &p->tuple.src, IPPROTO_ICMPV6, REJECT_TTL, REJECT_FRONT6 + quoted);
	return reject_store(ctx, a, p, REJECT_FRONT6);
}

/* Turns the packet into its reject and returns the result; REJECTED_COUNT: no reject is
 * due. */
static __always_inline enum rejected reject_make(hook_ctx *ctx, struct reject *a, const struct packet *p,
						 const struct interface *i, const struct rule *r)
{
	enum reject_kind kind = reject_kind(p, r);
	const struct addr *src = 0;

	if (kind == REJECT_NONE || reject_link(ctx, a, p))
		return REJECTED_COUNT;
	if (kind == REJECT_ICMP) {
		src = reject_source(p, i);
		if (!src)
			return REJECTED_NOT;
	}
	if (!reject_allowed(a))
		return REJECTED_LIMIT;
	if (kind == REJECT_RST)
		return reject_rst(ctx, a, p, r->return_ttl ? r->return_ttl : REJECT_TTL) ? REJECTED_NOT : REJECTED_RST;
	return reject_error(ctx, a, p, src, r) ? REJECTED_NOT : REJECTED_ICMP;
}

/* Ends a packet that the rule s->blocked has blocked. */
__noinline int reject(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *i;
	const struct packet *p;
	const struct rule *r;
	enum rejected what;
	struct reject *a;
	__u32 index, zero = 0;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	index = s->blocked - 1 - rule_base;
	r = bpf_map_lookup_elem(&rules, &index);
	a = bpf_map_lookup_elem(&rejects, &zero);
	if (!r || !a)
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, REASON_BLOCK, p->length);
	if (!(r->flags & (RULE_RETURN_RST | RULE_RETURN_ICMP)))
		return HOOK_DROP;
	what = reject_make(ctx, a, p, i, r);
	if (what < REJECTED_COUNT)
		reject_count(what, p->length);
	if (what > REJECTED_LAST_GIVEN)
		return HOOK_DROP;
	return hook_reply(ctx, p->ifindex, i, p->flags & PACKET_EGRESS);
}

/* Counts and notes what the rules blocked at the last crossing. */
static __always_inline void reject_note(struct scratch *s, enum reason r, __u8 crossed)
{
	if (r != REASON_BLOCK && r != REASON_UNLOADED)
		return;
	count_path(rule_path_index(s, crossed), s->packet.length);
	s->blocked = crossed & STATE_OUT ? s->out.rule : s->in.rule;
}

/* Ends a packet that goes no further. If rules blocked it, they count it and say whether
 * its sender is told. */
static __always_inline int reject_or_drop(hook_ctx *ctx, struct scratch *s, const struct interface *i, enum reason r,
				  __u8 crossed)
{
	reject_note(s, r, crossed);
	return r == REASON_BLOCK ? reject(ctx, s) : count_verdict(i, r, s->packet.length);
}

#endif
