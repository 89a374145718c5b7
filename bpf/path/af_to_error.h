/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ICMP errors about packets that af-to has translated to the other address family. They
 * become errors of that family, with the quoted packet as its sender sent it (RFC 7915, 4.2,
 * 4.3, 5.2, 5.3). docs/packet-path.md, 20.
 */
#ifndef WEIR_PATH_AF_TO_ERROR_H
#define WEIR_PATH_AF_TO_ERROR_H

#include "packet/family_icmp.h"
#include "packet/quote.h"
#include "path/reject_packet.h"
#include "rules/embed.h"

struct family_sum {
	hook_ctx *ctx;
	__u8 *bytes;
	__u64 sum;
	__u32 at;
	__u32 end;
};

#define FAMILY_CHUNK 32

/* Adds the next bytes to a sum. 1: that was all. */
static long family_sum_step(__u32 n, void *data)
{
	struct family_sum *w = data;
	const __u32 *word = (const __u32 *)w->bytes;
	__u32 left, i;

	(void)n;
	if (w->at >= w->end)
		return 1;
	left = w->end - w->at;
	if (left >= FAMILY_CHUNK) {
		if (hook_load(w->ctx, w->at, w->bytes, FAMILY_CHUNK))
			return 1;
		for (i = 0; i < FAMILY_CHUNK / 4; i++)
			w->sum += word[i];
		w->at += FAMILY_CHUNK;
		return 0;
	}
	*(__u32 *)w->bytes = 0; /* the last odd byte is the first of a word */
	if (hook_load(w->ctx, w->at, w->bytes, 1) || (left >= 2 && hook_load(w->ctx, w->at + 1, w->bytes + 1, 1)))
		return 1;
	w->sum += word[0];
	w->at += 2;
	return 0;
}

/* Returns the sum of the packet's bytes from an offset on. */
static __noinline __u64 family_sum(hook_ctx *ctx, struct scratch *s, __u32 from)
{
	const struct packet *p = &s->packet;
	struct family_sum w = { .ctx = ctx, .bytes = s->options, .at = from, .end = p->l3_offset + p->length };

	bpf_loop((0xffff + HEADERS_MAX) / FAMILY_CHUNK + FAMILY_CHUNK, family_sum_step, &w, 0);
	return w.sum;
}

/* Reads what is in front of the quoted L4 header. weir has sent neither options nor other
 * extension headers than that of a fragment. */
static __always_inline enum reason family_error_quote(hook_ctx *ctx, struct scratch *s)
{
	struct family_error *e = &s->error;
	const struct quote *q = &s->quote;
	const struct iphdr *ip4 = (const void *)q->l3;
	const struct ipv6hdr *ip6 = (const void *)q->l3;

	e->quoted = q->l4_offset - q->l3_offset;
	if (s->packet.family == 4) {
		e->fragmented = !!(ip4->frag_off & bpf_htons(IP_MORE));
		e->size = bpf_ntohs(ip4->tot_len) - sizeof(*ip4);
		e->inner_length = sizeof(*ip6) + (e->fragmented ? sizeof(e->fragment) : 0);
		return e->quoted == sizeof(*ip4) ? UNDECIDED : REASON_ICMP_MISMATCH;
	}
	e->fragmented = 0;
	e->size = bpf_ntohs(ip6->payload_len);
	e->inner_length = sizeof(*ip4);
	if (e->quoted == sizeof(*ip6))
		return UNDECIDED;
	if (ip6->nexthdr != NEXT_FRAGMENT || e->quoted != sizeof(*ip6) + sizeof(e->fragment) ||
	    hook_load(ctx, q->l3_offset + sizeof(*ip6), &e->fragment, sizeof(e->fragment)))
		return REASON_ICMP_MISMATCH;
	e->fragmented = !!(e->fragment.offset & bpf_htons(1));
	e->size -= sizeof(e->fragment);
	return UNDECIDED;
}

/* Finds out how long the error gets. It ends where the quote ends, and where one that weir
 * makes would. */
static __always_inline void family_error_measure(struct scratch *s)
{
	struct family_error *e = &s->error;
	const struct packet *p = &s->packet;
	__u32 after = family_after(p), front = after + ICMP_HEADER + e->inner_length;
	__u32 most = p->family == 4 ? REJECT_MAX6 : REJECT_MAX4, quote = family_quote_length(p->family, &e->header);
	__u32 left = p->l3_offset + p->length - s->quote.l4_offset;

	if (quote && quote - e->quoted < left)
		left = quote - e->quoted;
	if (front + left > most)
		left = most - front;
	e->end = s->quote.l4_offset + left;
	e->length = front + left;
	e->more = (int)front - (int)(family_before(p) + ICMP_HEADER + e->quoted);
}

/* Reads an error of s->state, and decides what it becomes. UNDECIDED: it has a counterpart. */
__noinline enum reason family_error_read(hook_ctx *ctx, struct scratch *s)
{
	struct family_error *e;
	const struct packet *p;
	enum reason r;
	int none;

	if (!s)
		return REASON_INTERNAL;
	p = &s->packet;
	e = &s->error;
	if (hook_load(ctx, p->l4_offset, &e->header, sizeof(e->header)))
		return REASON_SHORT;
	r = family_error_quote(ctx, s);
	if (r != UNDECIDED)
		return r;
	family_error_measure(s);
	e->new_header = e->header;
	if (p->family == 4)
		none = family_error6(&e->new_header, (__u16)(e->size + sizeof(struct iphdr)));
	else
		none = family_error4(&e->new_header, e->quoted - e->inner_length);
	return none ? REASON_AF_TO : UNDECIDED;
}

/* Returns behind how many bits of an IPv6 address an IPv4 address is; 96 also if it is
 * nowhere. */
static __always_inline __u32 family_place(const struct addr *a, const struct addr *v4)
{
	struct addr in;
	__u32 bits;

	for (bits = 96; bits >= 32; bits -= 8)
		if (!family_extract(&in, a, bits) && addr_equal(&in, v4))
			return bits;
	return 96;
}

/*
 * Finds the error's new source. The quoted packet's destination has an address of the other
 * family in the state. Other IPv4 addresses go where the destination's is in that address,
 * IPv6 ones have no counterpart: the error comes from the destination, as in pf.
 */
static __always_inline void family_error_source(struct addr *src, const struct scratch *s)
{
	const struct packet *p = &s->packet;
	const struct addr *quoted = &s->quote.tuple.dst;

	*src = s->tuple.src;
	if (p->family == 4 && !addr_equal(&p->tuple.src, quoted))
		family_embed(src, &p->tuple.src, family_place(src, quoted));
}

/* Writes the quoted IP header. to: the tuple that its packet was sent with. */
static __always_inline void family_error_inner(struct scratch *s, const struct tuple *to)
{
	const struct ipv6hdr *ip6 = (const void *)s->quote.l3;
	const struct iphdr *ip4 = (const void *)s->quote.l3;
	struct family_error *e = &s->error;
	struct family_fields w = { .payload = (__u16)e->size, .fragmented = e->fragmented };

	if (s->packet.family == 4) {
		w.tos = ip4->tos;
		w.ttl = ip4->ttl;
		w.fragment = bpf_htons(1); /* the first, and more follow */
		w.id = bpf_htonl(bpf_ntohs(ip4->id));
		family_ip6((union family_header *)e->inner, &w, &to->src, &to->dst, to->proto);
		return;
	}
	w.tos = bpf_ntohl(*(const __be32 *)ip6) >> 20;
	w.ttl = ip6->hop_limit;
	w.fragment = bpf_htons(w.fragmented ? IP_MORE : IP_DF);
	w.id = w.fragmented ? e->fragment.id : 0;
	family_ip4((union family_header *)e->inner, &w, &to->src, &to->dst, to->proto);
}

/* Writes the quoted L4 header. */
static __always_inline void family_error_l4(struct scratch *s, const struct tuple *to)
{
	struct quote *q = &s->quote;
	__u8 family = s->packet.family;
	struct family_echo echo = {
		.from = &q->tuple, .to = to, .length = (__u16)s->error.size, .family = family, .type = q->icmp_type,
	};
	__be16 *word = (__be16 *)q->l4_new;

	if (!icmp_is(family, q->tuple.proto)) {
		quote_l4(q, to, family, csum_fold(csum_addr_diff(&q->tuple.src, &to->src) + csum_addr_diff(&q->tuple.dst, &to->dst)));
		return;
	}
	__builtin_memcpy(q->l4_new, q->l4, QUOTE_L4_MAX);
	echo.id = word[2];
	echo.new_id = echo.type == 0 || echo.type == 129 ? to->dport : to->sport;
	q->l4_new[0] = family_echo(family_other(family), echo.type);
	word[1] = csum_apply(word[1], family_echo_diff(&echo));
	word[2] = echo.new_id;
}

/* Returns the difference of the error's checksum. outer: the tuple that it leaves with. */
static __noinline __u32 family_error_diff(hook_ctx *ctx, struct scratch *s, const struct tuple *outer)
{
	const struct family_error *e = &s->error;
	const struct packet *p = &s->packet;
	struct quote *q = &s->quote;
	const __u32 *fragment = (const __u32 *)&e->fragment;
	__u64 sum = csum_word_diff(*(const __be16 *)&e->header, *(const __be16 *)&e->new_header);
	__s64 diff;

	sum += (__u64)(__u32)~e->header.rest + e->new_header.rest;
	if (p->family == 4) {
		diff = bpf_csum_diff((__be32 *)q->l3, sizeof(struct iphdr), (__be32 *)e->inner, sizeof(struct ipv6hdr), 0);
		sum += csum_pseudo(&outer->src, &outer->dst, IPPROTO_ICMPV6, e->length - sizeof(struct ipv6hdr));
		if (e->fragmented)
			sum += (__u64)e->inner[10] + e->inner[11];
	} else {
		diff = bpf_csum_diff((__be32 *)q->l3, sizeof(struct ipv6hdr), (__be32 *)e->inner, sizeof(struct iphdr), 0);
		sum += csum_pseudo_complement(&p->tuple.src, &p->tuple.dst, IPPROTO_ICMPV6, p->length - family_before(p));
		if (e->quoted > sizeof(struct ipv6hdr))
			sum += (__u64)(__u32)~fragment[0] + (__u32)~fragment[1];
	}
	diff = bpf_csum_diff((__be32 *)q->l4, QUOTE_L4_MAX, (__be32 *)q->l4_new, QUOTE_L4_MAX, (__u32)diff);
	sum += (__u32)diff;
	return csum_fold(sum + csum_finish(family_sum(ctx, s, e->end)));
}

/* Writes the error's headers and the quoted ones to the frame. */
static __always_inline int family_error_store(hook_ctx *ctx, struct scratch *s, __u32 at)
{
	struct family_error *e = &s->error;
	__u32 l4 = at + family_after(&s->packet) + ICMP_HEADER + e->inner_length;

	if (s->packet.family == 4) {
		if (hook_store(ctx, at, s->outer, sizeof(struct ipv6hdr)))
			return -1;
		at += sizeof(struct ipv6hdr) + ICMP_HEADER;
		if (e->fragmented ? hook_store(ctx, at, e->inner, sizeof(e->inner)) : hook_store(ctx, at, e->inner, sizeof(struct ipv6hdr)))
			return -1;
	} else {
		if (hook_store(ctx, at, s->outer, sizeof(struct iphdr)))
			return -1;
		at += sizeof(struct iphdr) + ICMP_HEADER;
		if (hook_store(ctx, at, e->inner, sizeof(struct iphdr)))
			return -1;
	}
	if (hook_store(ctx, at - ICMP_HEADER, &e->new_header, sizeof(e->new_header)))
		return -1;
	return s->quote.l4_length >= QUOTE_L4_MAX ? hook_store(ctx, l4, s->quote.l4_new, QUOTE_L4_MAX) :
						    hook_store(ctx, l4, s->quote.l4_new, QUOTE_MIN);
}

/* Translates the error. Like family_translate(). */
__noinline int family_error_translate(hook_ctx *ctx, struct scratch *s, __u32 layers, int *moved)
{
	struct tuple outer = {}, sent;
	struct family_fields w = {};
	struct family_error *e;
	struct packet *p;
	struct headers h;

	if (!s || !moved)
		return -1;
	p = &s->packet;
	e = &s->error;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	tuple_reverse(&sent, &s->tuple);
	family_error_inner(s, &sent);
	family_error_l4(s, &sent);
	family_error_source(&outer.src, s);
	outer.dst = s->tuple.dst;
	tuple_set_ports(&outer, bpf_htons(e->new_header.type), 0, p->family == 4 ? IPPROTO_ICMPV6 : IPPROTO_ICMP, 0);
	family_fields(&w, p, family_tos(p, &h), e->length - family_after(p), e->length);
	if (p->family == 4)
		family_ip6((union family_header *)s->outer, &w, &outer.src, &outer.dst, outer.proto);
	else
		family_ip4((union family_header *)s->outer, &w, &outer.src, &outer.dst, outer.proto);
	e->new_header.check = csum_apply(e->header.check, family_error_diff(ctx, s, &outer));
	if (hook_change_family(ctx, family_other(p->family), e->more + (int)layers - (int)p->l3_offset))
		return -1;
	*moved = 1;
	p->tuple = outer;
	if (e->end < p->l3_offset + p->length && hook_resize(ctx, layers + e->length, 0))
		return -1;
	return family_error_store(ctx, s, layers);
}

#endif
