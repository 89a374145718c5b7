/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The only code that writes into frames: addresses, ports, checksums, TTL, MACs.
 * And the ways out: redirect, or up to the stack.
 */
#ifndef WEIR_PACKET_REWRITE_H
#define WEIR_PACKET_REWRITE_H

#include "observe/count.h"
#include "packet/csum.h"
#include "path/handoff.h"
#include "state/lookup.h"
#include "packet/parse.h"
#include "packet/sanity.h"

/* The L4 checksum; addr_diff only where a pseudo header is in its range. */
static __always_inline void rewrite_l4_csum(hook_ctx *ctx, struct headers *h, const struct packet *p,
			       __u32 addr_diff, __u32 port_diff)
{
	switch (p->tuple.proto) {
	case IPPROTO_TCP:
		if (header_tcp(h))
			hook_l4_csum(ctx, h->l4, p->l4_offset, 16, addr_diff, port_diff, 0);
		return;
	case IPPROTO_UDP:
		if (header_8(h))
			hook_l4_csum(ctx, h->l4, p->l4_offset, 6, addr_diff, port_diff, 1);
		return;
	case IPPROTO_ICMP:
		if (p->family == 4 && header_8(h))
			hook_l4_csum(ctx, h->l4, p->l4_offset, 2, 0, port_diff, 0);
		return;
	case IPPROTO_ICMPV6:
		if (p->family == 6 && header_8(h))
			hook_l4_csum(ctx, h->l4, p->l4_offset, 2, addr_diff, port_diff, 0);
		return;
	}
}

static __always_inline void rewrite_addresses(struct headers *h, const struct packet *p, const struct addr *src,
				   const struct addr *dst, __u32 addr_diff)
{
	if (p->family == 4) {
		struct iphdr *ip = header_ip4(h);

		if (!ip)
			return;
		ip->saddr = src->word[3];
		ip->daddr = dst->word[3];
		ip->check = csum_apply(ip->check, addr_diff);
	} else {
		struct ipv6hdr *ip = header_ip6(h);

		if (!ip)
			return;
		__builtin_memcpy(&ip->saddr, src, sizeof(*src));
		__builtin_memcpy(&ip->daddr, dst, sizeof(*dst));
	}
}

static __always_inline void rewrite_ports(struct headers *h, const struct packet *p, __be16 sport, __be16 dport)
{
	__be16 *port = header_8(h);
	int reply;

	if (!port)
		return;
	if (p->tuple.proto == IPPROTO_TCP || p->tuple.proto == IPPROTO_UDP) {
		port[0] = sport;
		port[1] = dport;
	} else if (icmp_is(p->family, p->tuple.proto) &&
		   icmp_query(p->family, p->icmp_type, &reply) >= 0) {
		port[2] = reply ? dport : sport; /* the id */
	}
}

/*
 * Translates a packet. The differences are those from its present addresses
 * and ports to the new ones. Returns < 0 if the frame is gone, which cannot
 * happen.
 */
static __always_inline int rewrite_translate(hook_ctx *ctx, struct headers *h, const struct packet *p,
			    const struct addr *src, const struct addr *dst, __be16 sport, __be16 dport,
			    __u32 addr_diff, __u32 port_diff)
{
	if (p->fragment != FRAGMENT_LATER) {
		rewrite_l4_csum(ctx, h, p, addr_diff, port_diff);
		if (HOOK_MOVES && headers_reload(h, p, hook_data(ctx), hook_data_end(ctx)))
			return -1;
	}
	rewrite_addresses(h, p, src, dst, addr_diff);
	if (p->fragment != FRAGMENT_LATER)
		rewrite_ports(h, p, sport, dport);
	return 0;
}

/* The same where the differences are not at hand. */
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

/* The length that must fit the next hop's MTU: of one segment, for a super-packet. */
static __always_inline __u32 nexthop_wire_length(hook_ctx *ctx, const struct packet *p)
{
	__u32 headers;

	(void)ctx;
	if (!hook_gso_size(ctx))
		return p->length;
	headers = p->l4_offset - p->l3_offset +
		  (p->tuple.proto == IPPROTO_TCP ? p->tcp_header : sizeof(struct udphdr));
	return headers + hook_gso_size(ctx);
}

/*
 * Up to the stack, with the mark that TCX ingress is to set. A driver without room
 * for that may not have XDP: what XDP has decided would be decided again. So the
 * packet is dropped, and from now on TCX judges what comes in there.
 */
static __always_inline int handoff_pass(hook_ctx *ctx, const struct interface *i, __u32 mark, enum reason why,
			  __u32 length)
{
	if (hook_handoff(ctx, mark)) {
		__sync_fetch_and_or(&((struct interface *)i)->flags, INTERFACE_BARE);
		return count_verdict(i, REASON_METADATA, length);
	}
	return count_verdict(i, why, length);
}

/*
 * Makes a packet of a translated state what the stack is to forward, or to answer:
 * the destination is translated, the source is not (a source that is our own
 * address would be a martian). Apart from what is not translated, so that this
 * does not pay for it in stack. Returns < 0 if the frame is gone.
 */
__noinline int handoff_translate(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	const struct tuple *t, *other;
	const struct state *s;
	struct headers h;

	if (!p)
		return -1;
	s = state_get(STATE_INDEX(number));
	if (!s || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	t = &p->tuple;
	other = STATE_DIRECTION(number) ? &s->forth.tuple : &s->back.tuple;
	if (addr_equal(&other->src, &t->dst) && other->sport == t->dport)
		return 0;
	/* no error is about a later fragment, whose ports are not there to be found by */
	if (p->fragment != FRAGMENT_LATER && (!addr_equal(&other->dst, &t->src) || other->dport != t->sport))
		handoff_note(t, other, number);
	return rewrite_translate_to(ctx, &h, p, &t->src, &other->src, t->sport, other->sport);
}

/* Up to the stack, to be forwarded by it; the mark tells TCX egress and the guard
 * what was decided. */
static __always_inline int handoff_forward(hook_ctx *ctx, const struct packet *p, const struct interface *i,
				   const struct state *s, __u32 number, enum reason why)
{
	__u32 mark = MARK_MAGIC | STATE_INDEX(number) | (STATE_DIRECTION(number) ? MARK_REPLY : 0);

	if (p->flags & PACKET_GROUP)
		return handoff_pass(ctx, i, 0, REASON_LOCAL, p->length);
	if (s && s->flags & STATE_NAT && handoff_translate(ctx, p, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	return handoff_pass(ctx, i, mark, why, p->length);
}

/* The mark of a packet for the box itself: the stack may route it on if it is for a
 * group, but not off a link to which its source is local. */
static __always_inline __u32 handoff_local_mark(const struct packet *p, const struct addr *dst)
{
	return addr_is_multicast(dst) && !p->tuple.zone ? MARK_MULTICAST : 0;
}

/* Up to the box itself. */
static __always_inline int handoff_local(hook_ctx *ctx, struct headers *h, const struct packet *p,
			     const struct interface *i, const struct state *s, __u32 number,
			     enum reason why)
{
	const struct addr *dst = &p->tuple.dst;
	const struct tuple *other;

	if (s && s->flags & STATE_NAT) {
		other = STATE_DIRECTION(number) ? &s->forth.tuple : &s->back.tuple;
		dst = &other->src;
		if (rewrite_translate_to(ctx, h, p, &other->dst, dst, other->dport, other->sport))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	return handoff_pass(ctx, i, handoff_local_mark(p, dst), why, p->length);
}

/* Up to the stack because no route leads on: it answers, quoting what the client
 * sent but for the destination; without our mark it cannot forward the packet. */
static __always_inline int handoff_unreached(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					  const struct state *s, __u32 number)
{
	if (s->flags & STATE_NAT && handoff_translate(ctx, p, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	return handoff_pass(ctx, i, 0, REASON_UP_ROUTE, p->length);
}

/* Onto the wire. The frame is whole but for its MACs. */
static __always_inline int output_send(hook_ctx *ctx, struct headers *h, const struct packet *p,
		       const struct interface *i, const struct nexthop *n, enum reason why)
{
	if (hook_frame(ctx, h, n, i->flags & INTERFACE_L3, p->family))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(n->ifindex);
}

/* Why a packet of a state cannot be redirected at once; UNDECIDED if it can. */
static __always_inline enum reason nexthop_obstacle(hook_ctx *ctx, const struct packet *p,
					   const struct nexthop *n)
{
	if (p->flags & PACKET_OPTIONS)
		return REASON_UP_OPTIONS;
	if (p->ttl <= 1)
		return REASON_UP_TTL;
	if (nexthop_wire_length(ctx, p) > n->mtu)
		return REASON_UP_MTU;
	if (!(n->flags & NEXTHOP_VALID))
		return REASON_UP_NEIGHBOUR;
	if (HOOK_IS_XDP && !(n->flags & NEXTHOP_XDP))
		return REASON_UP_DEVICE;
	return UNDECIDED;
}

/*
 * Towards a VLAN device, which XDP cannot reach: its parent can be, by a frame
 * with the tag in it. number: of the packet's state, 0: none. Apart from output(),
 * so that frames without a tag do not pay for it. Returns < 0, and nothing is
 * changed, if the frame has no room for a tag.
 */
__noinline int output_tagged(hook_ctx *ctx, const struct packet *p, __u32 number,
			      const struct nexthop *n, enum reason why)
{
	const struct interface *i;
	const struct tuple *other;
	const struct state *s = 0;
	struct headers h;

	if (!p || !n)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (number)
		s = state_get(STATE_INDEX(number));
	if (!i || (number && !s))
		return HOOK_DROP;
	if (hook_tag_room(ctx))
		return -1;
	/* the tag's room is in front of what has been parsed */
	if (headers_reload(&h, p, hook_data(ctx) + TAG_LENGTH, hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (s && s->flags & STATE_NAT) {
		other = STATE_DIRECTION(number) ? &s->forth.tuple : &s->back.tuple;
		if (rewrite_translate_to(ctx, &h, p, &other->dst, &other->src, other->dport, other->sport))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	rewrite_ttl(&h, p);
	if (hook_frame_tagged(ctx, n))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(n->parent);
}

/* Whether output_tagged() takes a packet that this hook cannot redirect. */
static __always_inline int output_wants_tag(const struct packet *p, const struct nexthop *n, enum reason obstacle)
{
	return HOOK_IS_XDP && obstacle == REASON_UP_DEVICE && n->flags & NEXTHOP_TAGGED &&
	       !(p->flags & PACKET_GROUP);
}

/* A packet of a live state cannot be redirected: up to the stack it goes. */
static __always_inline int output_up(hook_ctx *ctx, const struct packet *p,
			     const struct interface *i, const struct state *s, __u32 number,
			     enum reason why)
{
	if (why == REASON_UP_OPTIONS && !(s->flags & STATE_OPTIONS))
		return count_verdict(i, REASON_OPTIONS, p->length);
	if (why != REASON_UP_DEVICE || p->flags & PACKET_GROUP)
		return handoff_forward(ctx, p, i, s, number, why);
	return handoff_pass(ctx, i, MARK_MAGIC | MARK_REDIRECT | STATE_INDEX(number) |
				       (STATE_DIRECTION(number) ? MARK_REPLY : 0), why, p->length);
}

/* Writes what changes in a packet of a live state, but for its MACs. < 0: it cannot be. */
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
	rewrite_ttl(h, p);
	return 0;
}

/* A packet of a live state to a known next hop: the end of the hit path. */
static __always_inline int output(hook_ctx *ctx, struct headers *h, const struct packet *p,
			  const struct interface *i, const struct state *s, __u32 number,
			  const struct nexthop *n, enum reason why)
{
	enum reason r = nexthop_obstacle(ctx, p, n);
	int action;

	if (output_wants_tag(p, n, r)) {
		action = output_tagged(ctx, p, number, n, why);
		if (action >= 0)
			return action;
		if (headers_reload(h, p, hook_data(ctx), hook_data_end(ctx)))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	if (r != UNDECIDED || p->flags & PACKET_GROUP)
		return output_up(ctx, p, i, s, number, r);
	if (rewrite_packet(ctx, h, p, s, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	return output_send(ctx, h, p, i, n, why);
}

#endif
