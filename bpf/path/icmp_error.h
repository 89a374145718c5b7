/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ICMP errors. An error belongs to the state of the packet that it quotes, and goes back
 * the way that packet came. Its quoted headers become what the sender sent. RFC 5508,
 * RFC 792, RFC 4443.
 */
#ifndef WEIR_PATH_ICMP_ERROR_H
#define WEIR_PATH_ICMP_ERROR_H

#include "packet/quote.h"
#include "packet/sanity.h"
#include "path/gateway_out.h"
#include "path/slow.h"

/*
 * Translates the error into what the sender of the quoted packet knows. to: that
 * packet's tuple as it was sent. src: the error's new source.
 */
__noinline int icmp_error_translate(hook_ctx *ctx, struct scratch *s, struct tuple *to, struct addr *src)
{
	struct quote *q;
	struct packet *p;
	struct headers h;
	__u32 inner, outer;
	__s64 diff;
	__u32 l3;

	if (!s || !to || !src)
		return -1;
	q = &s->quote;
	p = &s->packet;
	l3 = p->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	inner = csum_fold(csum_addr_diff(&q->tuple.src, &to->src) + csum_addr_diff(&q->tuple.dst, &to->dst));
	quote_l3(q, to, p->family, inner);
	quote_l4(q, to, p->family, inner);
	/* the changes that the ICMP checksum covers: both quoted headers, and the pseudo
	 * header in v6 */
	if (p->family == 4)
		diff = bpf_csum_diff((__be32 *)q->l3, sizeof(struct iphdr), (__be32 *)q->l3_new,
				     sizeof(struct iphdr), 0);
	else
		diff = bpf_csum_diff((__be32 *)q->l3, sizeof(struct ipv6hdr), (__be32 *)q->l3_new,
				     sizeof(struct ipv6hdr), 0);
	if (diff < 0)
		return -1;
	diff = bpf_csum_diff((__be32 *)q->l4, QUOTE_L4_MAX, (__be32 *)q->l4_new, QUOTE_L4_MAX, (__u32)diff);
	if (diff < 0)
		return -1;
	if (hook_store(ctx, q->l3_offset, q->l3_new, l3 == sizeof(struct iphdr) ? sizeof(struct iphdr) :
									    sizeof(struct ipv6hdr)))
		return -1;
	if (q->l4_length >= QUOTE_L4_MAX) {
		if (hook_store(ctx, q->l4_offset, q->l4_new, QUOTE_L4_MAX))
			return -1;
	} else if (hook_store(ctx, q->l4_offset, q->l4_new, QUOTE_MIN)) {
		return -1;
	}
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	outer = csum_fold(csum_addr_diff(&p->tuple.src, src) + csum_addr_diff(&p->tuple.dst, &to->src));
	if (!header_8(&h))
		return -1;
	rewrite_csum(ctx, h.l4, p->l4_offset, 2, p->family == 6 ? outer : 0, csum_fold((__u32)diff), 0);
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	rewrite_addresses(&h, p, src, &to->src, outer);
	p->tuple.src = *src;
	p->tuple.dst = to->src;
	return 0;
}

/* Whether XDP has left the error to TCX, and counted it. */
static __always_inline int icmp_error_is_left(const struct scratch *s)
{
	return af_to && s->then == SLOW_LEFT;
}

/* Finds the state of the quoted packet, and sets s->state to the error's own number. */
__noinline enum reason icmp_error_find(hook_ctx *ctx, struct scratch *s, int in)
{
	struct state *st;
	enum reason r;
	__u32 number = 0, d;

	if (!s)
		return REASON_INTERNAL;
	s->state = 0;
	s->quoted_forth = 0;
	r = quote_read(ctx, s);
	if (r != UNDECIDED)
		return r;
	tuple_reverse(&s->tuple, &s->quote.tuple);
	st = lookup_state(&s->tuple, &number);
	if (st && state_expired(st, STATE_DIRECTION(number)))
		st = 0;
	if (!st && !in) {
		/* quoted as it came in: the stack quoted it before its source was
		 * translated */
		st = lookup_state(&s->quote.tuple, &number);
		number ^= 1;
		s->quoted_forth = 1;
	}
	if (!st && !in) {
		st = handoff_quoted(s, &number);
		number ^= 1;
		s->quoted_forth = 0;
	}
	if (!st)
		return UNDECIDED;
	d = STATE_DIRECTION(number);
	if (state_expired(st, d) || !(st->flags & state_crossing(d, in)) ||
	    !bound_fits(st, number, in, s->packet.ifindex))
		return UNDECIDED;
	r = icmp_error_is_left(s) ? UNDECIDED : limit_rate(st, d);
	if (r != UNDECIDED)
		return r;
	if (s->quote.tuple.proto == IPPROTO_TCP && !limits_are_sloppy(st) && !quote_in_window(st, !d, s->quote.seq))
		return REASON_ICMP_MISMATCH;
	s->state = number;
	return UNDECIDED;
}

/* Translates the error of s->state in place. Returns < 0 on failure. */
static __always_inline int icmp_error_rewrite(hook_ctx *ctx, struct scratch *s, struct state *st)
{
	struct course *sent = state_course(st, !STATE_DIRECTION(s->state));

	if (!(st->flags & STATE_NAT))
		return 0;
	s->tuple = sent->tuple;
	/* from the quoted packet's destination itself, or from a router on the way */
	s->quoter = addr_equal(&s->packet.tuple.src, &s->quote.tuple.dst) ? sent->tuple.dst :
									     s->packet.tuple.src;
	return icmp_error_translate(ctx, s, &s->tuple, &s->quoter);
}

/* Writes records of an ICMP error of a state as it is now, for rules that log all. */
static __always_inline void icmp_error_log(hook_ctx *ctx, struct scratch *s, const struct state *st, __u8 direction,
				      __u32 ifindex)
{
	if (!(st->flags & STATE_LOG) || !record_wanted(RING_LOG))
		return;
	s->leaves = 0;
	log_side(ctx, s, state_crossing(STATE_DIRECTION(s->state), direction == DIRECTION_IN), direction, ifindex);
}

/* Sends an error of a known connection, which is already translated. */
static __always_inline int icmp_error_send(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *i;
	const struct packet *p;
	struct state *st;
	struct headers h;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(s->state));
	if (!i || !st)
		return HOOK_DROP;
	s->path = st->path;
	r = slow_decide(ctx, s, SLOW_STATE);
	if (r == REASON_STATE_MISMATCH)
		return count_verdict(i, r, p->length);
	qos_set_state(ctx, &s->packet, st, STATE_DIRECTION(s->state));
	scrub_set_state(&s->packet, st, s->state);
	if (s->out_ifindex && !(p->flags & PACKET_GROUP))
		icmp_error_log(ctx, s, st, DIRECTION_OUT, s->out_ifindex);
	s->packet.mark = rule_mark_route(st, STATE_DIRECTION(s->state), s->packet.mark); /* like slow_decide() */
	s->out_mark = (struct out_mark){};
	if (r == UNDECIDED)
		return stateless_forward(ctx, s, REASON_STATE);
	if (r == REASON_LOCAL && state_is_diverted(st, STATE_DIRECTION(s->state))) {
		/* the kernel finds the socket by the quote */
		count_path(s->path, STATE_DIRECTION(s->state), p->length);
		return handoff_pass(ctx, p, i, mark_set(p->mark, MARK_DIVERT), r);
	}
	if (r <= REASON_LAST_PASS && st->entered & KEPT_ROUTE(STATE_DIRECTION(s->state)) && !(p->flags & PACKET_GROUP) &&
	    !(shared.policies && policy_takes(ctx, p, 0, s->out_ifindex)))
		return gateway_stateless(ctx, s, p, s->nexthop, r);
	if (r > REASON_LAST_PASS)
		return count_verdict(i, r, p->length);
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_path(s->path, STATE_DIRECTION(s->state), p->length);
	if (r == REASON_LOCAL || r == REASON_UP_ROUTE)
		return handoff_local(ctx, &h, p, i, 0, 0, r);
	return handoff_forward(ctx, p, i, 0, 0, r);
}

static __always_inline int icmp_error_in(hook_ctx *ctx, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	struct state *st;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	r = sanity_check(&s->packet, i);
	if (r == UNDECIDED)
		r = icmp_error_find(ctx, s, 1);
	if (r == UNDECIDED && !s->state && icmp_error_is_left(s))
		r = REASON_GUARD; /* its state is gone */
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (!s->state) {
		bpf_tail_call(ctx, tails, TAIL_MISS);
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	}
	st = state_get(STATE_INDEX(s->state));
	if (st && s->packet.flags & PACKET_OPTIONS && !(st->flags & STATE_OPTIONS))
		return count_verdict(i, REASON_OPTIONS, s->packet.length);
	if (st && !icmp_error_is_left(s)) {
		icmp_error_log(ctx, s, st, DIRECTION_IN, s->packet.ifindex);
		r = queue_in(ctx, &s->packet, s->state);
		if (r != UNDECIDED)
			return count_verdict(i, r, s->packet.length);
	}
	if (st && state_changes_family(st)) {
		bpf_tail_call(ctx, tails, TAIL_FAMILY);
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	}
	if (!st || icmp_error_rewrite(ctx, s, st))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	return icmp_error_send(ctx, s);
}

static __always_inline int icmp_error_out(hook_ctx *ctx, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	struct state *st;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	r = icmp_error_find(ctx, s, 0);
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	if (!s->state) {
		bpf_tail_call(ctx, tails, TAIL_MISS);
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	}
	st = state_get(STATE_INDEX(s->state));
	if (st && state_changes_family(st)) {
		if (!s->quoted_forth) /* else about a packet that the stack has not seen */
			bpf_tail_call(ctx, tails, TAIL_FAMILY);
		return count_verdict(i, REASON_AF_TO, s->packet.length);
	}
	if (!st || (!s->quoted_forth && icmp_error_rewrite(ctx, s, st)))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	icmp_error_log(ctx, s, st, DIRECTION_OUT, s->packet.ifindex);
	qos_set_state(ctx, &s->packet, st, STATE_DIRECTION(s->state));
	scrub_set_state(&s->packet, st, s->state);
	if (s->packet.scrub && scrub_out(ctx, &s->packet))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	if (st->entered & KEPT_ROUTE(STATE_DIRECTION(s->state))) {
		r = egress_ready(ctx, &s->packet, s->state);
		if (r == UNDECIDED)
			r = queue_out(ctx, &s->packet, s->state,
				      nexthop_get(state_course(st, STATE_DIRECTION(s->state))->nexthop)->ifindex);
		if (r != UNDECIDED)
			return count_verdict(i, r, s->packet.length);
		count_path(st->path, STATE_DIRECTION(s->state), s->packet.length);
		return egress_choose(ctx, &s->packet, state_course(st, STATE_DIRECTION(s->state))->nexthop, REASON_STATE);
	}
	r = queue_out(ctx, &s->packet, s->state, s->packet.ifindex);
	if (r != UNDECIDED)
		return count_verdict(i, r, s->packet.length);
	count_path(st->path, STATE_DIRECTION(s->state), s->packet.length);
	return count_verdict(i, REASON_STATE, s->packet.length);
}

#endif
