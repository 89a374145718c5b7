/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets that af-to translates to the other address family. Their state has a tuple of each
 * family. No rules are evaluated where they leave, as in pf. They are redirected; the stack
 * gets none of them, because their source is often an address of the box, a martian to it.
 * What XDP cannot redirect it leaves to TCX as it came. docs/packet-path.md, 20.
 *
 * Cost when no rule says af-to: none (af_to).
 */
#ifndef WEIR_PATH_AF_TO_H
#define WEIR_PATH_AF_TO_H

#include "packet/family.h"
#include "path/af_to_error.h"
#include "path/fast.h"
#include "path/gateway.h"
#include "path/reject.h"
#include "path/normal_packet.h"
#include "path/scrub_list.h"
#include "path/slow.h"
#include "state/create.h"

/* Whether nothing can be forwarded to the new destination. */
static __always_inline int family_is_martian(const struct addr *a)
{
	__u32 v4 = addr_v4(a);

	if (bpf_map_lookup_elem(&addresses, a) || bpf_map_lookup_elem(&broadcasts, a) || addr_is_multicast(a))
		return 1;
	if (addr_is4(a))
		return v4 >> 24 == 0 || v4 >> 24 == 127 || v4 >> 28 >= 0xe;
	return addr_is_link_local(a) || addr_is_low6(a, 0) || addr_is_low6(a, 1);
}

/* Fills in the tuple that the packet leaves with, except for the source and its port. */
static __always_inline enum reason family_tuple(struct scratch *s)
{
	const struct packet *p = &s->packet;
	__u8 family = family_other(p->family);

	if (s->state || p->flags & PACKET_GROUP || p->tuple.zone || create_is_oneway(p) || !family_corresponds(p))
		return REASON_AF_TO;
	if (icmp_is(p->family, p->tuple.proto) && !nat_port_has(p)) /* an answer that nobody asked for */
		return REASON_AF_TO;
	if (addr_is_multicast(&p->tuple.dst)) /* no reply can come from there */
		return REASON_AF_TO;
	if (!family_is_plain(p))
		return REASON_OPTIONS;
	if (family_is_martian(&s->in.rdr.addr))
		return REASON_MARTIAN_DEST;
	s->tuple = p->tuple;
	s->tuple.dst = s->in.rdr.addr;
	s->tuple.dport = s->in.rdr_port;
	s->tuple.proto = family_proto(family, p->tuple.proto);
	if (icmp_is(p->family, p->tuple.proto))
		s->tuple.dport = bpf_htons(family_echo(family, p->icmp_type));
	return UNDECIDED;
}

/*
 * Finds the gateway that the rules have chosen for the packet in its new family (route-to,
 * rtable): s->nexthop. UNDECIDED: done, or they have chosen none. A function of its own, to save
 * stack.
 */
__noinline enum reason family_choose(hook_ctx *ctx, struct scratch *s)
{
	enum route route = ROUTE_FORWARD;
	struct route_query q;

	if (!s)
		return REASON_INTERNAL;
	s->nexthop = 0;
	s->chosen = 0;
	s->generation = shared.route_generation; /* read before the look-up: routes may change meanwhile */
	if (s->in.route == ROUTES_TO) {
		route_choice_fill(&q, &s->packet, hop_gateway(&s->in.hop, &s->tuple.dst), s->in.hop.ifindex);
	} else if (s->in.rtable) {
		route_query_fill(&q, &s->packet, &s->tuple.dst, s->tuple.dport);
		q.src = s->in.nat.addr;
		q.proto = s->tuple.proto;
		q.family = family_other(s->packet.family);
		q.mark = s->in.mark;
		route = route_by_table(ctx, &q, s->in.rtable);
	} else {
		return UNDECIDED;
	}
	if (route == ROUTE_FORWARD)
		route = route_choose(ctx, &q);
	if (route == ROUTE_CLOSED)
		return REASON_INTERFACE;
	if (route != ROUTE_FORWARD)
		return REASON_GATEWAY;
	s->chosen = 1;
	s->nexthop = q.number;
	return UNDECIDED;
}

/* Makes the state of a packet that a rule with af-to has passed. UNDECIDED: it goes on by it. */
__noinline enum reason family_make(hook_ctx *ctx, struct scratch *s)
{
	__u8 crossed = STATE_IN | STATE_OUT;
	int wscale = -1;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	s->made = 0;
	r = family_tuple(s);
	if (r != UNDECIDED)
		return r;
	s->out.nat = s->in.nat;
	s->in.nat.states = 0; /* the out crossing counts it */
	s->out.nat_ports = s->in.nat_ports;
	s->out.flags = CROSSING_NAT | (s->in.flags & CROSSING_NAT_STATIC);
	s->out.endpoint = s->in.endpoint;
	r = family_choose(ctx, s);
	if (r == UNDECIDED && s->in.route == ROUTES_REPLY)
		r = gateway_reply(ctx, s);
	if (r != UNDECIDED)
		return r;
	create_choose_reply(s);
	s->path = rule_path_index(s, crossed);
	if (s->packet.tcp_flags & TCP_SYN)
		wscale = tcp_option_wscale(ctx, s);
	r = create_state(s, create_flags(s, crossed, s->skip_in, 1), wscale, 0);
	if (r != UNDECIDED)
		return r;
	create_count(s, STATE_IN);
	scrub_list_note_forth(s);
	r = normal_begin_made(ctx, s, r);
	if (r != UNDECIDED)
		return r;
	return s->packet.fragment == FRAGMENT_FIRST ? fragment_remember(s) : UNDECIDED;
}

/*
 * A rule with af-to has passed a packet that comes in where its state is not bound to.
 * UNDECIDED: it goes on by its state, as which the rule translates it. REASON_LAST_PASS: the
 * state has ended. REASON_AF_TO: it cannot have another state. Else the packet does not fit.
 */
__noinline enum reason family_join(hook_ctx *ctx, struct scratch *s)
{
	__u32 number;
	struct state *st;
	enum reason r;

	if (!s)
		return REASON_INTERNAL;
	number = s->state;
	st = state_get(STATE_INDEX(number));
	if (!st)
		return REASON_INTERNAL;
	if (STATE_DIRECTION(number) || !state_changes_family(st) || !addr_equal(&s->in.nat.addr, &st->back.tuple.dst) ||
	    !addr_equal(&s->in.rdr.addr, &st->back.tuple.src) ||
	    (tuple_translates_ports(s->packet.tuple.proto) && s->in.rdr_port != st->back.tuple.sport))
		return REASON_AF_TO;
	r = slow_track(ctx, s);
	if (r != UNDECIDED)
		return r;
	s->why = REASON_STATE;
	s->then = SLOW_JOINED;
	bound_add(st, STATE_INDEX(number), bound_side(0, 1), s->in.ifindex);
	return UNDECIDED;
}

/* Binds the side of a state where its packets leave to the interface by which the first one
 * does, if the side where they come in is bound. */
static __always_inline void family_bind(const struct scratch *s, struct state *st)
{
	if (bound_is_side(st, 0) && !bound_is_side(st, 1) && !STATE_DIRECTION(s->state) && s->out_ifindex)
		bound_set(st, STATE_INDEX(s->state), 1, s->out_ifindex);
}

/* Looks up again, if that is due, where a rule sends packets of this direction. Returns as
 * family_next(). */
static __always_inline enum reason family_gateway(hook_ctx *ctx, struct scratch *s, struct course *c)
{
	enum route route;

	s->nexthop = c->nexthop;
	s->out_ifindex = nexthop_get(c->nexthop)->ifindex;
	if (c->nexthop >= NEXTHOP_FIRST && !nexthop_is_stale(nexthop_get(c->nexthop), c->nexthop_generation))
		return UNDECIDED;
	route = gateway_refresh(ctx, &s->packet, c);
	s->nexthop = c->nexthop;
	s->out_ifindex = route == ROUTE_LOST ? 0 : nexthop_get(c->nexthop)->ifindex;
	if (route == ROUTE_CLOSED)
		return REASON_INTERFACE;
	return route == ROUTE_FORWARD ? slow_probe(s) : REASON_GATEWAY;
}

/* Looks up the route of the new family. Returns as family_next(). */
static __always_inline enum reason family_route(hook_ctx *ctx, struct scratch *s, struct state *st, struct course *c)
{
	const struct packet *p = &s->packet;
	__u16 generation = shared.route_generation;
	struct route_query q;
	enum route route;

	route_query_fill(&q, p, &s->tuple.dst, s->tuple.dport);
	q.src = s->tuple.src;
	q.sport = s->tuple.sport;
	q.proto = s->tuple.proto;
	q.family = family_other(p->family);
	q.mark = rule_mark_route(st, STATE_DIRECTION(s->state), p->mark);
	route = route_lookup(ctx, &q);
	s->nexthop = route == ROUTE_FORWARD ? q.number : 0;
	s->out_ifindex = q.ifindex;
	if (!p->mark) {
		c->nexthop = s->nexthop;
		c->nexthop_generation = generation;
	}
	if (route == ROUTE_CLOSED)
		return REASON_INTERFACE;
	if (route == ROUTE_LOCAL)
		return family_is_martian(&s->tuple.dst) ? REASON_MARTIAN_DEST : REASON_GATEWAY;
	if (route != ROUTE_FORWARD)
		return s->out_ifindex ? route_reason(route) : REASON_GATEWAY;
	return slow_probe(s);
}

/* Finds where the packet goes: s->nexthop, s->out_ifindex and, in s->tuple, as what.
 * UNDECIDED: it can be redirected to that next hop. A pass: the kernel is to find the
 * neighbour. */
__noinline enum reason family_next(hook_ctx *ctx, struct scratch *s)
{
	struct nexthop *n;
	struct course *c;
	struct state *st;

	if (!s)
		return REASON_INTERNAL;
	st = state_get(STATE_INDEX(s->state));
	if (!st)
		return REASON_INTERNAL;
	c = state_course(st, STATE_DIRECTION(s->state));
	state_leaving_tuple(&s->tuple, st, STATE_DIRECTION(s->state));
	n = nexthop_get(c->nexthop);
	if (st->entered & KEPT_ROUTE(STATE_DIRECTION(s->state)))
		return family_gateway(ctx, s, c);
	if (c->nexthop < NEXTHOP_FIRST || s->packet.mark || nexthop_is_stale(n, c->nexthop_generation))
		return family_route(ctx, s, st, c);
	s->nexthop = c->nexthop;
	s->out_ifindex = n->ifindex;
	return UNDECIDED;
}

/* Returns the bytes by which the packet gets longer, but for what is cut off its end. */
static __always_inline int family_more(const struct scratch *s)
{
	const struct packet *p = &s->packet;

	return family_is_error(p) ? s->error.more : (int)family_after(p) - (int)family_before(p);
}

/* Returns the length of the packet in its new family. */
static __always_inline __u32 family_length(const struct scratch *s)
{
	return family_is_error(&s->packet) ? s->error.length : s->packet.length + family_more(s);
}

/* The same of one segment of a super-packet. */
static __always_inline __u32 family_wire_length(hook_ctx *ctx, const struct scratch *s)
{
	return family_is_error(&s->packet) ? s->error.length : fast_wire_length(ctx, &s->packet) + family_more(s);
}

/* Returns the MTU of the way: the next hop's or, if there is none, the interface's. */
static __always_inline __u32 family_mtu(const struct scratch *s)
{
	const struct interface *o = interface_get(s->out_ifindex);
	__u32 mtu = s->nexthop ? nexthop_get(s->nexthop)->mtu : 0;

	return mtu ? mtu : o ? o->mtu : 0;
}

/* Returns why a packet goes no further, and UNDECIDED else. Its sender is told the MTU by
 * *told. */
static __always_inline enum reason family_fault(hook_ctx *ctx, struct scratch *s, __u32 *told)
{
	const struct packet *p = &s->packet;
	__u32 mtu = family_mtu(s);

	if (!family_is_plain(p))
		return REASON_OPTIONS;
	if (p->flags & PACKET_GROUP)
		return REASON_AF_TO;
	if (p->ttl <= 1)
		return REASON_GATEWAY_TTL;
	if (!mtu || family_wire_length(ctx, s) <= mtu)
		return UNDECIDED;
	*told = mtu - family_more(s);
	if (p->family == 6 && *told < FAMILY_LEAST_MTU)
		*told = FAMILY_LEAST_MTU;
	return REASON_GATEWAY_MTU;
}

/* Writes the checksum of a UDP packet without one: IPv6 needs it (RFC 8200, 8.1). 0: done,
 * or it has one. A fragment's cannot be computed. */
__noinline int family_udp_sum(hook_ctx *ctx, struct scratch *s)
{
	const struct packet *p;
	struct headers h;
	__u64 sum;
	__u16 *check, value;

	if (!s)
		return -1;
	p = &s->packet;
	if (p->family != 4 || p->tuple.proto != IPPROTO_UDP || p->fragment == FRAGMENT_LATER)
		return 0;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) || !header_8(&h))
		return -1;
	check = h.l4 + CSUM_AT_UDP;
	if (*check)
		return 0;
	if (p->fragment == FRAGMENT_FIRST)
		return -1;
	sum = family_sum(ctx, s, p->l4_offset) + csum_pseudo(&p->tuple.src, &p->tuple.dst, IPPROTO_UDP, p->length - family_before(p));
	value = csum_finish(sum);
	if (!value)
		value = 0xffff;
	return hook_store(ctx, p->l4_offset + CSUM_AT_UDP, &value, sizeof(value)) ? -1 : 0;
}

/* Corrects the L4 header, which is at an offset now. */
static __always_inline int family_l4(hook_ctx *ctx, struct headers *h, const struct scratch *s, const struct state *st,
				     __u32 at)
{
	const struct course *own = STATE_DIRECTION(s->state) ? &st->back : &st->forth;
	const struct packet *p = &s->packet;
	const struct tuple *to = &s->tuple;
	struct family_echo echo = {
		.from = &p->tuple, .to = to, .length = p->length - family_before(p), .family = p->family, .type = p->icmp_type,
	};
	int icmp = icmp_is(p->family, p->tuple.proto);
	__be16 *port;

	if (p->fragment == FRAGMENT_LATER)
		return 0;
	if (tuple_translates_ports(p->tuple.proto)) {
		if (p->tuple.proto == IPPROTO_TCP ? !header_tcp(h) : !header_8(h))
			return -1;
		rewrite_csum(ctx, h->l4, at, p->tuple.proto == IPPROTO_TCP ? CSUM_AT_TCP : CSUM_AT_UDP, own->csum_addr,
			     own->csum_port, p->tuple.proto == IPPROTO_UDP);
		if (headers_at(h, hook_data(ctx), hook_data_end(ctx), p->l3_offset, at) || !header_8(h))
			return -1;
		port = h->l4;
		port[0] = to->sport;
		port[1] = to->dport;
		return 0;
	}
	if (!icmp)
		return 0;
	port = header_8(h);
	if (!port)
		return -1;
	echo.id = port[2];
	echo.new_id = echo.type == 0 || echo.type == 129 ? to->dport : to->sport;
	rewrite_csum(ctx, h->l4, at, CSUM_AT_ICMP, family_echo_diff(&echo), 0, 0);
	if (headers_at(h, hook_data(ctx), hook_data_end(ctx), p->l3_offset, at))
		return -1;
	port = header_8(h);
	if (!port)
		return -1;
	*(__u8 *)port = family_echo(family_other(p->family), p->icmp_type);
	port[2] = echo.new_id;
	return 0;
}

/* Translates the packet. layers: bytes in front of the new IP header. < 0: it cannot; *moved
 * says whether the frame is damaged. */
__noinline int family_translate(hook_ctx *ctx, struct scratch *s, __u32 layers, int *moved)
{
	struct family_fields w = {};
	union family_header *f;
	const struct packet *p;
	const struct state *st;
	struct headers h;
	__u32 after;

	if (!s || !moved)
		return -1;
	p = &s->packet;
	st = state_get(STATE_INDEX(s->state));
	if (!st || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	f = (union family_header *)s->outer;
	after = family_after(p);
	family_fields(&w, p, family_tos(p, &h), p->length - family_before(p), family_wire_length(ctx, s));
	if (p->family == 6)
		family_ip4(f, &w, &s->tuple.src, &s->tuple.dst, s->tuple.proto);
	else
		family_ip6(f, &w, &s->tuple.src, &s->tuple.dst, s->tuple.proto);
	if (hook_change_family(ctx, family_other(p->family), family_more(s) + (int)layers - (int)p->l3_offset))
		return -1;
	*moved = 1;
	layers &= HEADERS_MAX - 1; /* it is a few bytes; the verifier has to know */
	if (headers_at(&h, hook_data(ctx), hook_data_end(ctx), layers, layers + after) ||
	    family_write(h.l3, h.end, f, after))
		return -1;
	return family_l4(ctx, &h, s, st, layers + after);
}

/* Leaves a packet to TCX ingress as it came. */
static __always_inline int family_later(hook_ctx *ctx, struct scratch *s, const struct interface *i, enum reason why)
{
	__u32 number = s->state | (why == REASON_UP_PROBE ? METADATA_PROBE : 0);

	if (hook_handoff_redirect(ctx, number, &s->packet, 0))
		return handoff_no_headroom(ctx, &s->packet, i);
	return steer(&s->packet, number, count_verdict(i, why, s->packet.length));
}

/* Returns why XDP leaves a packet to TCX; UNDECIDED: it does not. */
static __always_inline enum reason family_obstacle(hook_ctx *ctx, const struct scratch *s, enum reason found)
{
	const struct nexthop *n = nexthop_get(s->nexthop);

	if (found != UNDECIDED)
		return found;
	if (!(n->flags & NEXTHOP_VALID))
		return REASON_UP_NEIGHBOUR;
	if (HOOK_IS_XDP && family_wire_length(ctx, s) + n->encap.excess > n->mtu)
		return REASON_UP_DEVICE;
	if (HOOK_IS_XDP && (!(n->flags & NEXTHOP_XDP) || (s->packet.flags & PACKET_SCATTERED && !(n->flags & NEXTHOP_SCATTERED))))
		return REASON_UP_DEVICE;
	return UNDECIDED;
}

/* Writes the EtherType of a frame whose packet has another family now. */
static __always_inline void family_ethertype(hook_ctx *ctx, const struct packet *p)
{
	struct ethhdr *eth = hook_data(ctx);

	if (p->l3_offset && (void *)(eth + 1) <= hook_data_end(ctx))
		eth->h_proto = p->family == 6 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

/* Returns the mark of a packet that TCX redirects. A device may give it on to another one,
 * whose egress program finds an error by a record (as handoff_onward()). < 0: none is left. */
static __always_inline int family_mark(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *o = interface_get(s->out_ifindex);
	enum mark value;

	if (HOOK_IS_XDP || !family_is_error(&s->packet) || !o || !(o->flags & INTERFACE_STACKED))
		return MARK_LEAVES;
	s->out_mark = (struct out_mark){};
	value = handoff_value(ctx, &s->packet, 0);
	return value == MARK_NONE ? -1 : (int)value;
}

/* Sends a translated packet, with a value of weir's mark. why: as family_obstacle() says. < 0: it cannot. */
static __always_inline int family_send(hook_ctx *ctx, struct scratch *s, const struct state *st,
				       enum reason why, int value)
{
	const struct nexthop *n = nexthop_get(s->nexthop);
	const struct packet *p = &s->packet;
	__u8 family = family_other(p->family);
	struct headers h;

	if (HOOK_IS_XDP)
		return encap_write(hook_data(ctx), hook_data_end(ctx), n, family, family_length(s)) ?
			       -1 :
			       hook_redirect(ctx, n->encap.device);
	family_ethertype(ctx, p);
	hook_set_mark(ctx, mark_set(rule_mark_all(st, p->mark), value));
	if (why != UNDECIDED && st->entered & KEPT_ROUTE(STATE_DIRECTION(s->state))) {
		s->packet.family = family; /* as it is now */
		return gateway_send(ctx, p, s->nexthop);
	}
	if (why != UNDECIDED)
		return hook_send_neighbour(ctx, s->out_ifindex, 0, packet_is_bare(p), family);
	h.eth = hook_data(ctx);
	h.end = hook_data_end(ctx);
	return hook_send(ctx, &h, n, packet_is_bare(p), family);
}

/* Writes records of a packet of a state as it came: for rules that log all, and for those that
 * it has met now. r: from family_next(). */
static __always_inline void family_log(hook_ctx *ctx, struct scratch *s, const struct state *st, enum reason r)
{
	__u32 d = STATE_DIRECTION(s->state);
	int dropped = reason_is_drop(r);

	if (s->then == SLOW_JOINED) {
		log_packet(ctx, s, r);
		evaluate_nothing(s); /* from here on its state counts alone */
	}
	if (!(st->flags & STATE_LOG) || (d && dropped) || s->then != SLOW_END || !record_wanted(RING_LOG))
		return;
	if (!d && family_is_error(&s->packet)) /* icmp_error_in() has done it */
		return;
	s->leaves = 0;
	log_side(ctx, s, STATE_IN, d ? DIRECTION_OUT : DIRECTION_IN, d ? s->out_ifindex : s->packet.ifindex);
}

/* Ends a packet that goes no further. */
static __always_inline int family_refuse(hook_ctx *ctx, struct scratch *s, const struct interface *i, enum reason why,
					 __u32 told)
{
	return reason_is_gateway(why) ? reject_gateway(ctx, s, told, why) : count_verdict(i, why, s->packet.length);
}

/* Whether the stack would have to see a packet of a state: a policy may select it, as it comes or as it leaves,
 * or it has been decrypted. */
static __noinline int family_is_kept(hook_ctx *ctx, struct scratch *s, const struct state *st)
{
	struct tuple *t;

	if (!s || !st || policy_must_check(ctx, s))
		return 1;
	t = &s->policy.tuple;
	*t = s->tuple;
	if (family_is_error(&s->packet)) {
		family_error_source(&t->src, s);
		t->proto = s->packet.family == 4 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	}
	return policy_takes_family(&s->packet, t, s->out_ifindex, rule_mark_all(st, s->packet.mark));
}

/* Sends a packet of s->state, which is tracked. */
static __always_inline int family_run(hook_ctx *ctx)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	enum reason r, fault, why;
	__u32 told = 0, layers;
	struct state *st;
	int moved, action, value;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	st = state_get(STATE_INDEX(s->state));
	if (!i || !st)
		return HOOK_DROP;
	if (s->then != SLOW_MADE && s->then != SLOW_JOINED)
		evaluate_nothing(s);
	else if (queue_in(ctx, &s->packet, s->state) != UNDECIDED)
		return count_verdict(i, REASON_QUEUE, s->packet.length);
	r = family_is_error(&s->packet) ? family_error_read(ctx, s) : UNDECIDED;
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	r = family_next(ctx, s);
	if (!reason_is_drop(r))
		family_bind(s, st);
	if (!reason_is_drop(r) && s->packet.fragment == FRAGMENT_FIRST && (s->then == SLOW_END || s->then == SLOW_JOINED)) {
		why = fragment_remember(s);
		if (why != UNDECIDED)
			return count_verdict(i, why, s->packet.length);
	}
	family_log(ctx, s, st, r);
	if (reason_is_drop(r))
		return family_refuse(ctx, s, i, r, 0);
	if (s->then != SLOW_LEFT)
		count_path(st->path, STATE_DIRECTION(s->state), s->packet.length);
	if (scrub_packet(ctx, s, st, s->state))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	if (shared.policies && family_is_kept(ctx, s, st))
		return count_verdict(i, REASON_POLICY, s->packet.length);
	fault = family_fault(ctx, s, &told);
	if (fault != UNDECIDED)
		return family_refuse(ctx, s, i, fault, told);
	qos_set_state(ctx, &s->packet, st, STATE_DIRECTION(s->state));
	why = family_obstacle(ctx, s, r);
	if (HOOK_IS_XDP && why != UNDECIDED)
		return family_later(ctx, s, i, why);
	fault = queue_out(ctx, &s->packet, s->state, s->out_ifindex);
	if (fault != UNDECIDED)
		return count_verdict(i, fault, s->packet.length);
	if (family_udp_sum(ctx, s))
		return count_verdict(i, REASON_AF_TO, s->packet.length);
	layers = HOOK_IS_XDP ? sizeof(struct ethhdr) + nexthop_get(s->nexthop)->encap.length : s->packet.l3_offset;
	moved = 0;
	if (family_is_error(&s->packet) ? family_error_translate(ctx, s, layers, &moved) :
					  family_translate(ctx, s, layers, &moved)) {
		if (HOOK_IS_XDP && !moved)
			return family_later(ctx, s, i, REASON_UP_DEVICE);
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	}
	value = family_mark(ctx, s);
	if (value < 0)
		return count_verdict(i, REASON_MARK_TAKEN, s->packet.length);
	action = family_send(ctx, s, st, why, value);
	if (action < 0)
		return count_verdict(i, st->entered & KEPT_ROUTE(STATE_DIRECTION(s->state)) ? REASON_GATEWAY : REASON_INTERNAL,
				     s->packet.length);
	r = why != UNDECIDED ? why : s->then == SLOW_LEFT ? REASON_MARKED : s->why;
	count_reason(i, r, s->packet.length);
	return action;
}

#endif
