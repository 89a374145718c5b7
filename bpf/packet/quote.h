/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The packet that an ICMP error quotes: reading it, and writing it as its sender sent
 * it. */
#ifndef WEIR_PACKET_QUOTE_H
#define WEIR_PACKET_QUOTE_H

#include "packet/csum.h"
#include "packet/parse.h"
#include "packet/rewrite.h"
#include "path/scratch.h"
#include "state/track.h"

#define QUOTE_MIN 8 /* bytes of the quoted L4 header (RFC 792) */

static __always_inline enum reason quote_ip4(hook_ctx *ctx, struct quote *q, struct tuple *t, __u32 rest)
{
	struct iphdr *ip = (void *)q->l3;
	__u32 header;

	if (rest < sizeof(*ip) || hook_load(ctx, q->l3_offset, q->l3, sizeof(*ip)))
		return REASON_SHORT;
	header = ip->ihl * 4;
	if (ip->version != 4 || header < sizeof(*ip))
		return REASON_MALFORMED;
	if (ip->frag_off & bpf_htons(IP_OFFSET))
		return REASON_ICMP_MISMATCH;
	addr_set4(&t->src, ip->saddr);
	addr_set4(&t->dst, ip->daddr);
	t->proto = ip->protocol;
	q->l4_offset = q->l3_offset + header;
	return UNDECIDED;
}

static __always_inline enum reason quote_ip6(hook_ctx *ctx, struct quote *q, struct tuple *t, __u32 rest)
{
	struct ipv6hdr *ip = (void *)q->l3;
	struct extension_chain e = {};

	if (rest < sizeof(*ip) || hook_load(ctx, q->l3_offset, q->l3, sizeof(*ip)))
		return REASON_SHORT;
	if (ip->version != 6)
		return REASON_MALFORMED;
	addr_set6(&t->src, &ip->saddr);
	addr_set6(&t->dst, &ip->daddr);
	e.offset = q->l3_offset + sizeof(*ip);
	e.length = rest - sizeof(*ip);
	e.next = ip->nexthdr;
	if (extension_skip(ctx, &e, IPV6_EXT_MAX_BYTES))
		return REASON_SHORT;
	if (e.fragment == FRAGMENT_LATER)
		return REASON_ICMP_MISMATCH;
	t->proto = e.next;
	q->l4_offset = e.offset;
	return UNDECIDED;
}

/* Reads the quoted packet into s->quote. */
__noinline enum reason quote_read(hook_ctx *ctx, struct scratch *s)
{
	const struct packet *p;
	struct quote *q;
	struct tuple *t;
	__u32 rest, length;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	p = &s->packet;
	q = &s->quote;
	t = &q->tuple;
	q->l3_offset = p->l4_offset + ICMPV4_QUOTE;
	rest = p->length - (q->l3_offset - p->l3_offset);
	if (p->length < q->l3_offset - p->l3_offset)
		return REASON_SHORT;
	t->pad = 0;
	t->zone = p->tuple.zone;
	r = p->family == 4 ? quote_ip4(ctx, q, t, rest) : quote_ip6(ctx, q, t, rest);
	if (r != UNDECIDED)
		return r;
	rest += q->l3_offset;
	if (q->l4_offset + QUOTE_MIN > rest)
		return REASON_SHORT;
	length = rest - q->l4_offset;
	if (length >= QUOTE_L4_MAX) {
		length = QUOTE_L4_MAX;
		if (hook_load(ctx, q->l4_offset, q->l4, QUOTE_L4_MAX))
			return REASON_SHORT;
	} else {
		length = QUOTE_MIN;
		if (hook_load(ctx, q->l4_offset, q->l4, QUOTE_MIN))
			return REASON_SHORT;
	}
	q->l4_length = length;
	q->icmp_type = q->l4[0];
	q->seq = bpf_ntohl(*(__be32 *)&q->l4[4]);
	if (tuple_has_ports(t->proto)) {
		t->sport = *(__be16 *)&q->l4[0];
		t->dport = *(__be16 *)&q->l4[2];
	} else if (icmp_is(p->family, t->proto)) {
		icmp_ports(t, p->family, (struct icmphdr *)q->l4);
	} else {
		t->sport = 0;
		t->dport = 0;
	}
	return addr_equal(&t->src, &p->tuple.dst) ? UNDECIDED : REASON_ICMP_MISMATCH;
}

/* Whether the quoted segment is in the window of its sender. */
static __always_inline int quote_in_window(const struct state *st, __u32 sender, __u32 seq)
{
	const struct flow *f = state_flow(st, sender), *t = state_flow(st, !sender);

	if (!(f->flags & FLOW_SEEN))
		return 0;
	return !seq_after(seq, f->seqlo + MAX_ACK_WINDOW) &&
	       !seq_before(seq, f->seqlo - t->max_win - MAX_ACK_WINDOW);
}

/* Writes the quoted L4 header as its sender sent it to l4_new. */
static __always_inline void quote_l4(struct quote *q, const struct tuple *to, __u8 family, __u32 addr_diff)
{
	__u32 at = rewrite_csum_at(family, q->tuple.proto);

	__builtin_memcpy(q->l4_new, q->l4, QUOTE_L4_MAX);
	rewrite_ports((__be16 *)q->l4_new, family, q->tuple.proto, q->icmp_type, to->sport, to->dport);
	if (!at || q->l4_length < at + sizeof(__u16)) /* a quote may end before it */
		return;
	rewrite_copied_csum((__u16 *)&q->l4_new[at & 31], family, q->tuple.proto, addr_diff,
			    csum_fold(csum_word_diff(q->tuple.sport, to->sport) +
				      csum_word_diff(q->tuple.dport, to->dport)));
}

/* Writes the quoted IP header as its sender sent it to l3_new. */
static __always_inline void quote_l3(struct quote *q, const struct tuple *to, __u8 family, __u32 addr_diff)
{
	__builtin_memcpy(q->l3_new, q->l3, sizeof(q->l3));
	if (family == 4)
		rewrite_ip4((struct iphdr *)q->l3_new, &to->src, &to->dst, addr_diff);
	else
		rewrite_ip6((struct ipv6hdr *)q->l3_new, &to->src, &to->dst);
}

#endif
