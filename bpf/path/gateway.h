/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets for a next hop that a rule has chosen (route-to, reply-to) which cannot be
 * redirected at once. The stack must not forward them: it would take the route of its own.
 * XDP leaves them to TCX ingress of the same device. There the kernel is given the finished
 * packet and its next hop; it resolves the neighbour. What needs an ICMP error gets it from
 * weir, as in pf (docs/packet-path.md, 10).
 */
#ifndef WEIR_PATH_GATEWAY_H
#define WEIR_PATH_GATEWAY_H

#include "packet/rewrite.h"
#include "path/queue_packet.h"
#include "path/reject.h"
#include "route/route.h"

static __always_inline int gateway_is_chosen(const struct nexthop *n)
{
	return n->flags & NEXTHOP_CHOSEN;
}

/* Finds the next hop that the rules have chosen for replies: the in crossing's, else the
 * out crossing's. It is kept even if the gateway cannot be reached now. UNDECIDED: done. */
__noinline enum reason gateway_reply(hook_ctx *ctx, struct scratch *s)
{
	const struct pool_choice *hop;
	struct route_query q;

	if (!s)
		return REASON_INTERNAL;
	hop = s->in.route == ROUTES_REPLY ? &s->in.hop : &s->out.hop;
	if (hop->ifindex == HOP_NONE)
		return REASON_GATEWAY;
	route_choice_fill(&q, &s->packet, hop_gateway(hop, &s->packet.tuple.src), hop->ifindex);
	route_choose(ctx, &q);
	s->reply_nexthop = q.number;
	return q.number ? UNDECIDED : REASON_GATEWAY;
}

/* Looks up again what a rule has chosen for a direction of a state. The number that the
 * state has says what that was. */
__noinline enum route gateway_refresh(hook_ctx *ctx, const struct packet *p, struct course *c)
{
	const struct nexthop *n;
	struct route_query q;
	__u16 generation;
	enum route r;

	if (!p || !c)
		return ROUTE_LOST;
	generation = shared.route_generation; /* read before the look-up: routes may change meanwhile */
	n = nexthop_get(c->nexthop);
	if (c->nexthop < NEXTHOP_FIRST || !gateway_is_chosen(n))
		return ROUTE_LOST; /* the garbage collection does not let this happen */
	route_choice_fill(&q, p, &n->gateway, n->flags & NEXTHOP_FIXED ? n->ifindex : 0);
	if (n->flags & NEXTHOP_NARROW && n->mtu < shared.interfaces[n->ifindex & (MAX_IFINDEX - 1)].mtu)
		q.mtu = n->mtu; /* of the route that rtable has found */
	r = route_choose(ctx, &q);
	if (!q.number)
		return ROUTE_LOST;
	c->nexthop = q.number;
	c->nexthop_generation = generation;
	return r;
}

/* Finds the neighbour of a chosen gateway, the next hop with this number, and gives the kernel
 * the finished packet for it. Returns the action; < 0: the gateway cannot be reached. */
__noinline int gateway_send(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	const struct nexthop *n = nexthop_get(number);
	__u32 fixed = n->flags & NEXTHOP_FIXED ? n->ifindex : 0;
	struct scratch *s = scratch_get();
	const struct interface *i, *o;
	struct bpf_redir_neigh *to;
	struct bpf_fib_lookup *f;
	struct route_query q;

	if (!p || !s)
		return -1;
	f = (void *)s->fib; /* in the scratch, because the stack is full */
	to = (void *)s->neighbour;
	i = interface_get(p->ifindex);
	route_choice_fill(&q, p, &n->gateway, fixed);
	route_fib(f, &q);
	if (fixed)
		f->ifindex = fixed;
	o = interface_get(fixed);
	if ((!fixed || (o && !(o->flags & INTERFACE_L3))) && route_ask_gateway(ctx, f, &q, fixed) < 0)
		return -1;
	o = interface_get(f->ifindex);
	if (!i || !interface_is_present(o))
		return -1;
	if (o->flags & INTERFACE_L3)
		return hook_redirect(ctx, f->ifindex);
	if (p->flags & PACKET_EGRESS)
		return hook_send_again(ctx, f->ifindex, number, packet_is_bare(p), p->family);
	to->nh_family = f->family;
	__builtin_memcpy(to->ipv6_nh, f->ipv6_dst, sizeof(to->ipv6_nh)); /* of IPv4 the first word */
	return hook_send_neighbour(ctx, f->ifindex, to, packet_is_bare(p), p->family);
}

/* Drops a packet that cannot go to its gateway. mtu: towards it, for REASON_GATEWAY_MTU. */
static __always_inline int gateway_refuse(hook_ctx *ctx, const struct packet *p, __u32 mtu, enum reason why)
{
	struct scratch *s = scratch_get();

	if (!p || !s)
		return HOOK_DROP;
	if (p != &s->packet)
		s->packet = *p;
	return reject_gateway(ctx, s, mtu, why);
}

/* Leaves a packet to TCX ingress of the same device. number: of its state, or
 * METADATA_NEXTHOP and that of its next hop. */
static __always_inline int gateway_later(hook_ctx *ctx, const struct packet *p, const struct interface *i, __u32 number,
					 const struct out_mark *out, enum reason why)
{
	if (p->scrub && scrub_up(ctx, p))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (why == REASON_UP_PROBE)
		number |= METADATA_PROBE;
	if (hook_handoff_redirect(ctx, number | handoff_alone(p), p, out))
		return handoff_no_headroom(ctx, p, i);
	return steer(p, number, count_verdict(i, why, p->length));
}

/* Returns why a packet must not go on to its gateway; UNDECIDED: it may. */
static __always_inline enum reason gateway_fault(const struct nexthop *n, enum reason obstacle)
{
	if (obstacle == REASON_UP_TTL)
		return REASON_GATEWAY_TTL;
	if (obstacle == REASON_UP_MTU)
		return n->mtu ? REASON_GATEWAY_MTU : REASON_GATEWAY;
	return UNDECIDED;
}

/* Finishes a packet of a state and sends it. */
__noinline int gateway_state_send(hook_ctx *ctx, const struct packet *p, __u32 number, __u32 nexthop,
				  enum reason obstacle)
{
	const struct interface *i;
	const struct state *s;
	struct headers h;
	int action;

	if (!p)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	s = state_get(STATE_INDEX(number));
	if (!i || !s)
		return HOOK_DROP;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) || rewrite_packet(ctx, &h, p, s, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	hook_set_mark(ctx, mark_set(rule_mark_all(s, p->mark), MARK_LEAVES));
	action = gateway_send(ctx, p, nexthop);
	if (action < 0)
		return count_verdict(i, REASON_GATEWAY, p->length);
	count_reason(i, obstacle, p->length);
	return action;
}

/* The result of gateway_state(): the packet is in the scratch, and gateway_end() tells its
 * sender. It is no action of a hook. The stack is too full to do it at once. */
#define GATEWAY_REFUSED 0x10000

/* Ends what gateway_state() has begun. */
static __always_inline int gateway_end(hook_ctx *ctx, int action)
{
	struct scratch *s;

	if (HOOK_IS_XDP || action != GATEWAY_REFUSED)
		return action;
	s = scratch_get();
	return s ? reject_gateway(ctx, s, s->refused_mtu, s->refused) : HOOK_DROP;
}

/* Handles a packet of a state. obstacle: why it cannot be redirected at once. nexthop: the
 * number of its next hop. Returns an action, or GATEWAY_REFUSED. */
__noinline int gateway_state(hook_ctx *ctx, const struct packet *p, __u32 number, __u32 nexthop, enum reason obstacle)
{
	const struct nexthop *n = nexthop_get(nexthop);
	const struct interface *i;
	struct scratch *s;
	enum reason fault;

	asm volatile("" : : "r"(nexthop)); /* else XDP's callers leave it out, which the verifier refuses */
	if (!p)
		return HOOK_DROP;
	if (HOOK_IS_XDP) {
		i = interface_get(p->ifindex);
		return i ? gateway_later(ctx, p, i, number, 0, obstacle) : HOOK_DROP;
	}
	fault = gateway_fault(n, obstacle);
	if (fault != UNDECIDED) {
		s = scratch_get();
		if (!s)
			return HOOK_DROP;
		s->packet = *p;
		s->refused = fault;
		s->refused_mtu = n->mtu;
		return GATEWAY_REFUSED;
	}
	fault = queue_out(ctx, p, number, n->ifindex);
	if (fault != UNDECIDED) {
		i = interface_get(p->ifindex);
		return i ? count_verdict(i, fault, p->length) : HOOK_DROP;
	}
	return gateway_state_send(ctx, p, number, nexthop, obstacle);
}

/* Finishes a packet without a state and sends it. */
__noinline int gateway_stateless_send(hook_ctx *ctx, struct scratch *s, const struct packet *p, __u32 number,
				      enum reason obstacle)
{
	const struct interface *i;
	struct headers h;
	int action;

	if (!s || !p)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (handoff_onward(ctx, s, p, nexthop_get(number)))
		return count_verdict(i, REASON_MARK_TAKEN, p->length);
	rewrite_hop(&h, p);
	action = gateway_send(ctx, p, number);
	if (action < 0)
		return count_verdict(i, REASON_GATEWAY, p->length);
	count_reason(i, obstacle, p->length);
	return action;
}

/* The same without a state. The number is that of the next hop. */
__noinline int gateway_stateless(hook_ctx *ctx, struct scratch *s, const struct packet *p, __u32 number,
				 enum reason obstacle)
{
	const struct nexthop *n = nexthop_get(number);
	const struct interface *i;
	enum reason fault;

	if (!s || !p)
		return HOOK_DROP;
	if (HOOK_IS_XDP) {
		i = interface_get(p->ifindex);
		return i ? gateway_later(ctx, p, i, METADATA_NEXTHOP | (number & (MAX_NEXTHOPS - 1)), &s->out_mark, obstacle) :
			   HOOK_DROP;
	}
	fault = gateway_fault(n, obstacle);
	if (fault != UNDECIDED)
		return gateway_refuse(ctx, p, n->mtu, fault);
	fault = queue_out(ctx, p, 0, n->ifindex);
	if (fault != UNDECIDED) {
		i = interface_get(p->ifindex);
		return i ? count_verdict(i, fault, p->length) : HOOK_DROP;
	}
	return gateway_stateless_send(ctx, s, p, number, obstacle);
}

#endif
