/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the sender of a blocked packet is told, if the rule says so: a TCP reset, or an
 * ICMP error "unreachable". This file decides which, and how often;
 * path/reject_packet.h makes the packet. It goes back the way that the blocked one came.
 * docs/packet-path.md, 12.
 */
#ifndef WEIR_PATH_REJECT_H
#define WEIR_PATH_REJECT_H

#include "observe/count.h"
#include "observe/rule_path.h"
#include "packet/icmp.h"
#include "packet/sanity.h"
#include "path/handoff.h"
#include "path/policy.h"
#include "path/reject_packet.h"
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

enum reject_kind {
	REJECT_NONE,
	REJECT_RST,
	REJECT_ICMP,
};

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

/* Whether the packet's sender may be answered at all. */
static __always_inline int reject_may_answer(const struct packet *p)
{
	return p->fragment != FRAGMENT_LATER && !(p->flags & PACKET_GROUP) && reject_is_host(&p->tuple.src) &&
	       reject_is_host(&p->tuple.dst);
}

/* Returns how the rule rejects this packet. */
static __always_inline enum reject_kind reject_kind(const struct packet *p, const struct rule *r)
{
	enum reject_kind kind = r->flags & RULE_RETURN_ICMP ? REJECT_ICMP : REJECT_NONE;

	if (p->tuple.proto == IPPROTO_TCP && r->flags & RULE_RETURN_RST)
		kind = p->tcp_flags & TCP_RST ? REJECT_NONE : REJECT_RST;
	else if (icmp_is(p->family, p->tuple.proto) && !reject_icmp_informs(p->family, p->icmp_type))
		kind = REJECT_NONE;
	return kind != REJECT_NONE && reject_may_answer(p) ? kind : REJECT_NONE;
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
static __noinline const struct addr *reject_source(const struct packet *p, const struct interface *i)
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

/* Turns the packet into a reject of some kind and returns the result; REJECTED_COUNT: no reject is
 * due. what: of the ICMP error. ttl: of the reset. */
static __always_inline enum rejected reject_turn(hook_ctx *ctx, struct reject *a, const struct packet *p,
						 const struct interface *i, enum reject_kind kind,
						 const struct reject_what *what, __u8 ttl)
{
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
		return reject_rst(ctx, a, p, ttl) ? REJECTED_NOT : REJECTED_RST;
	return reject_error(ctx, a, p, src, what) ? REJECTED_NOT : REJECTED_ICMP;
}

/* The same as a rule says. */
static __always_inline enum rejected reject_make(hook_ctx *ctx, struct reject *a, const struct packet *p,
						 const struct interface *i, const struct rule *r)
{
	struct reject_what what = {
		.type = p->family == 4 ? ICMP_UNREACH : ICMP6_UNREACH,
		.code = p->family == 4 ? r->return_code4 : r->return_code6,
	};

	return reject_turn(ctx, a, p, i, reject_kind(p, r), &what, r->return_ttl ? r->return_ttl : REJECT_TTL);
}

/* Marks a reject that leaves by a device which gives it on to another one. The egress
 * program there finds it by a record. < 0: no record is left. */
__noinline int reject_record(hook_ctx *ctx, struct scratch *s, enum rejected what)
{
	const struct interface *i;
	const struct addr *src;
	const struct packet *p;
	struct tuple *t;
	int n;

	if (!s)
		return -1;
	p = &s->packet;
	t = &s->handoff;
	tuple_reverse(t, &p->tuple);
	t->zone = 0;
	if (what == REJECTED_ICMP) {
		i = interface_get(p->ifindex);
		src = i ? reject_source(p, i) : 0;
		if (!src)
			return -1;
		t->src = *src;
		tuple_set_ports(t, bpf_htons(p->family == 4 ? ICMP_UNREACH : ICMP6_UNREACH), 0,
				p->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, 0);
	}
	s->out_mark = (struct out_mark){};
	n = handoff_record(s, HANDOFF_PASSED, 0, 0);
	if (n < 0)
		return n;
	hook_set_mark(ctx, mark_set(p->mark, MARK_RECORD + n));
	return 0;
}

/* Whether a policy may select what answers a packet, or the reject that quotes it. Only the stack
 * could send it then. */
static __always_inline int reject_is_kept(struct scratch *s, enum rejected what)
{
	const struct interface *i;
	const struct addr *src;
	const struct packet *p = &s->packet;
	struct tuple *t = &s->policy.tuple;

	tuple_reverse(t, &p->tuple);
	if (policy_keeps(0, t, p->ifindex, p->mark))
		return 1;
	if (what != REJECTED_ICMP)
		return 0;
	i = interface_get(p->ifindex);
	src = i ? reject_source(p, i) : 0;
	if (!src)
		return 1;
	t->src = *src;
	t->proto = p->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	return policy_keeps(0, t, p->ifindex, p->mark);
}

/* Counts what became of a reject. If it was made, sends it. */
static __always_inline int reject_send(hook_ctx *ctx, struct scratch *s, const struct interface *i, enum rejected what)
{
	const struct packet *p = &s->packet;

	if (!HOOK_IS_XDP && what <= REJECTED_LAST_GIVEN && i->flags & INTERFACE_STACKED &&
	    !(p->flags & PACKET_EGRESS) && reject_record(ctx, s, what))
		what = REJECTED_NOT;
	if (shared.policies && what <= REJECTED_LAST_GIVEN && !(p->flags & PACKET_EGRESS) && reject_is_kept(s, what))
		what = REJECTED_NOT;
	if (what < REJECTED_COUNT)
		reject_count(what, p->length);
	if (what > REJECTED_LAST_GIVEN)
		return HOOK_DROP;
	return hook_reply(ctx, p->ifindex, i, p->flags & PACKET_EGRESS);
}

/* Returns the ICMP error about a packet that cannot go to its gateway. */
static __always_inline struct reject_what reject_gateway_what(const struct packet *p, __u32 mtu, enum reason why)
{
	int is4 = p->family == 4;

	if (why == REASON_GATEWAY_TTL) /* time exceeded, in transit */
		return (struct reject_what){ .type = is4 ? 11 : 3 };
	if (why == REASON_GATEWAY_MTU) /* fragmentation needed, packet too big */
		return (struct reject_what){ .type = is4 ? ICMP_UNREACH : 2, .code = is4 ? 4 : 0, .mtu = mtu };
	/* host unreachable, no route */
	return (struct reject_what){ .type = is4 ? ICMP_UNREACH : ICMP6_UNREACH, .code = is4 ? 1 : 0 };
}

/* Ends a packet for a reason of weir's own. Its sender is told, unless kind is REJECT_NONE. */
static __always_inline int reject_own(hook_ctx *ctx, struct scratch *s, enum reject_kind kind,
				      const struct reject_what *what, enum reason why)
{
	const struct packet *p = &s->packet;
	const struct interface *i = interface_get(p->ifindex);
	__u32 zero = 0;
	struct reject *a = bpf_map_lookup_elem(&rejects, &zero);

	if (!i || !a)
		return HOOK_DROP;
	count_reason(i, why, p->length);
	return reject_send(ctx, s, i, reject_turn(ctx, a, p, i, kind, what, REJECT_TTL));
}

/* Ends a packet that cannot go to the gateway which a rule has chosen: why is one of
 * REASON_GATEWAY*. */
__noinline int reject_gateway(hook_ctx *ctx, struct scratch *s, __u32 mtu, enum reason why)
{
	enum reject_kind kind = REJECT_ICMP;
	struct reject_what what;
	const struct packet *p;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	if ((icmp_is(p->family, p->tuple.proto) && !reject_icmp_informs(p->family, p->icmp_type)) || !reject_may_answer(p))
		kind = REJECT_NONE;
	what = reject_gateway_what(p, mtu, why);
	return reject_own(ctx, s, kind, &what, why);
}

/* Whether a packet cannot go to the gateway which a rule has chosen. */
static __always_inline int reason_is_gateway(enum reason r)
{
	return r == REASON_GATEWAY || r == REASON_GATEWAY_TTL || r == REASON_GATEWAY_MTU;
}

/* Ends a segment that does not fit its state with a reset (track_is_answered). */
__noinline int reject_segment(hook_ctx *ctx, struct scratch *s)
{
	struct reject_what what = {};

	if (!s)
		return HOOK_DROP;
	return reject_own(ctx, s, reject_may_answer(&s->packet) ? REJECT_RST : REJECT_NONE, &what, REASON_STATE_MISMATCH);
}

/* Ends a packet that the rule s->blocked has blocked, or that it would pass and cannot.
 * why: the reason. */
__noinline int reject(hook_ctx *ctx, struct scratch *s, enum reason why)
{
	const struct interface *i;
	const struct packet *p;
	const struct rule *r;
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
	count_reason(i, why, p->length);
	if (!(r->flags & (RULE_RETURN_RST | RULE_RETURN_ICMP)))
		return HOOK_DROP;
	return reject_send(ctx, s, i, reject_make(ctx, a, p, i, r));
}

/* Counts and notes what the rules blocked at the last crossing. */
static __always_inline void reject_note(struct scratch *s, enum reason r, __u8 crossed)
{
	if (r != REASON_BLOCK && r != REASON_UNLOADED)
		return;
	count_path(rule_path_index(s, crossed), 0, s->packet.length);
	s->blocked = crossed & STATE_OUT ? s->out.rule : s->in.rule;
}

/* Whether a packet was passed by its rules, but its state or its translation could not be
 * made. */
static __always_inline int reject_is_failure(enum reason r)
{
	return r >= REASON_STATE_LIMIT && r <= REASON_NAT_ADDRESS;
}

/* Returns the last rule that has passed a packet now; 0: none has. */
static __always_inline __u32 reject_rule(const struct scratch *s)
{
	if (s->out.evaluated && s->out.rule)
		return s->out.rule;
	return s->in.evaluated ? s->in.rule : 0;
}

/* Ends a packet that goes no further. If rules blocked it, they count it and say whether
 * its sender is told. If it could not be passed, the last rule that decided says so. */
static __always_inline int reject_or_drop(hook_ctx *ctx, struct scratch *s, const struct interface *i, enum reason r,
				  __u8 crossed)
{
	reject_note(s, r, crossed);
	if (r == REASON_GATEWAY)
		return reject_gateway(ctx, s, 0, r);
	if (reject_is_failure(r))
		s->blocked = reject_rule(s);
	if (r == REASON_BLOCK || (reject_is_failure(r) && s->blocked))
		return reject(ctx, s, r);
	return count_verdict(i, r, s->packet.length);
}

#endif
