/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The short way of nearly all packets that af-to translates: TCP and UDP of a state whose
 * next hop is known, where nothing is unusual. XDP translates and redirects them where their
 * state was found, without a tail call. All others take the way in path/af_to.h, which does
 * the same to these. docs/packet-path.md, 20.
 *
 * Cost when no rule says af-to: none (af_to).
 */
#ifndef WEIR_PATH_AF_TO_PLAIN_H
#define WEIR_PATH_AF_TO_PLAIN_H

#include "observe/count.h"
#include "packet/family.h"
#include "route/encap.h"
#include "route/nexthop.h"
#include "state/bound.h"
#include "state/state.h"

/* Whether a state asks for nothing but a translation, and knows where its packets go. */
static __always_inline int family_state_is_plain(const struct state *st, __u32 d, const struct course *c,
						 const struct nexthop *n)
{
	if (st->flags & STATE_LOG || st->qos & KEPT_SCRUB || st->entered & KEPT_ROUTE(d) || bound_is_side(st, 0))
		return 0;
	return c->nexthop >= NEXTHOP_FIRST && !nexthop_is_stale(n, c->nexthop_generation) &&
	       (n->flags & (NEXTHOP_VALID | NEXTHOP_XDP)) == (NEXTHOP_VALID | NEXTHOP_XDP);
}

/* Whether a packet needs nothing else either. more: bytes by which it gets longer. */
static __always_inline int family_packet_is_plain(const struct packet *p, const struct nexthop *n, int more)
{
	if (p->fragment != FRAGMENT_NONE || p->flags || p->ttl <= 1 || !tuple_translates_ports(p->tuple.proto))
		return 0;
	return family_is_plain(p) && p->length + more + n->encap.excess <= n->mtu;
}

/* Whether its L4 header has a checksum to correct. */
static __always_inline int family_is_summed(const struct packet *p, const struct headers *h)
{
	__u16 *l4;

	if (p->tuple.proto == IPPROTO_TCP)
		return header_tcp(h) != 0;
	l4 = header_8(h);
	return l4 && (p->family == 6 || l4[CSUM_AT_UDP / 2]);
}

/* Writes the headers of a frame that has the room for them. < 0: it has not, which cannot happen. */
static __always_inline int family_plain_write(hook_ctx *ctx, const struct packet *p, const struct state *st, __u32 d,
					      const struct nexthop *n, const struct family_fields *w)
{
	const struct tuple *from = d ? &st->forth.tuple : &st->back.tuple; /* of its replies */
	const struct course *own = d ? &st->back : &st->forth;
	__u32 after = family_after(p), at = (sizeof(struct ethhdr) + n->encap.length) & (HEADERS_MAX - 1);
	struct headers h;
	__be16 *port;

	if (encap_write(hook_data(ctx), hook_data_end(ctx), n, family_other(p->family), w->payload + after) ||
	    headers_at(&h, hook_data(ctx), hook_data_end(ctx), at, at + after))
		return -1;
	if (p->family == 6 && header_ip4(&h))
		family_ip4(h.l3, w, &from->dst, &from->src, from->proto);
	else if (header_ip6(&h))
		family_ip6(h.l3, w, &from->dst, &from->src, from->proto);
	if (p->tuple.proto == IPPROTO_TCP && header_tcp(&h))
		rewrite_csum(ctx, h.l4, at + after, CSUM_AT_TCP, own->csum_addr, own->csum_port, 0);
	else if (header_8(&h))
		rewrite_csum(ctx, h.l4, at + after, CSUM_AT_UDP, own->csum_addr, own->csum_port, 1);
	if (!header_8(&h))
		return -1;
	port = h.l4;
	port[0] = from->dport;
	port[1] = from->sport;
	return 0;
}

/* Sends a tracked packet of a state. < 0: it takes the other way, and is as it was. */
__noinline int family_plain(hook_ctx *ctx, struct packet *p, __u32 number)
{
	__u32 d = STATE_DIRECTION(number);
	struct family_fields w = {};
	const struct interface *i;
	const struct nexthop *n;
	const struct course *c;
	struct state *st;
	struct headers h;
	int more;

	if (!af_to || !p || queues || shared.policies)
		return -1;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(number));
	if (!i || !st)
		return -1;
	c = state_course(st, d);
	n = nexthop_get(c->nexthop);
	more = (int)family_after(p) - (int)family_before(p);
	if (!family_state_is_plain(st, d, c, n) || !family_packet_is_plain(p, n, more) ||
	    headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) || !family_is_summed(p, &h))
		return -1;
	p->scrub = 0;
	family_fields(&w, p, family_tos(p, &h), p->length - family_before(p), p->length + more);
	w.fragmented = 0; /* known; for the verifier */
	if (hook_grow(ctx, more + (int)sizeof(struct ethhdr) + n->encap.length - (int)p->l3_offset))
		return -1;
	if (family_plain_write(ctx, p, st, d, n, &w))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_forwarded(i, REASON_STATE, st->path, d, p->length);
	return hook_redirect(ctx, n->encap.device);
}

#endif
