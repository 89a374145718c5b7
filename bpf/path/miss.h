/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A packet without a state: rules in, route, rules out, NAT, creation.
 * docs/packet-path.md, steps 3 to 6.
 */
#ifndef WEIR_PATH_MISS_H
#define WEIR_PATH_MISS_H

#include "path/reject.h"
#include "state/create.h"
#include "packet/rewrite.h"
#include "packet/fragment.h"
#include "observe/log.h"
#include "route/nexthop.h"
#include "rules/match.h"
#include "packet/sanity.h"
#include "path/scratch.h"
#include "route/nat_source.h"

static __always_inline void evaluate_start(struct crossing *cr, const struct packet *p, __u8 direction, __u32 ifindex,
			     __u16 tag)
{
	cr->src = p->tuple.src;
	cr->dst = p->tuple.dst;
	cr->sport = p->tuple.sport;
	cr->dport = p->tuple.dport;
	cr->ifindex = ifindex;
	cr->proto = p->tuple.proto;
	cr->family = p->family;
	cr->direction = direction;
	cr->tcp_flags = p->tcp_flags;
	cr->icmp_type = p->icmp_type;
	cr->icmp_code = p->icmp_code;
	cr->tag = tag;
	cr->known = 0;
	cr->rule = 0;
	cr->action = ACTION_PASS;
	cr->flags = 0;
	cr->matches = 0;
	cr->logs = 0;
	cr->asked = 0;
}

/* Nothing has been asked about the packet yet. */
static __always_inline void evaluate_nothing(struct scratch *s)
{
	s->in.logs = 0;
	s->in.asked = 0;
	s->out.logs = 0;
	s->out.asked = 0;
}

/* Takes over what the way in has found out about a packet and the way out would
 * find out again: another interface, and where it was redirected another
 * destination. */
static __always_inline void evaluate_share(struct crossing *out, const struct crossing *in)
{
	__u8 known = in->known & ~(1 << FIELD_INTERFACE);

	if (in->flags & CROSSING_RDR)
		known &= ~(1 << FIELD_DST | 1 << FIELD_DPORT | 1 << FIELD_DST_TABLES);
	__builtin_memcpy(out->class, in->class, sizeof(out->class));
	out->known = known;
}

/* One crossing. Returns UNDECIDED if it passes, else the reason to drop; *why
 * becomes the reason under which it passed. */
static __always_inline enum reason evaluate_crossing(struct crossing *cr, __u32 options, enum reason *why)
{
	const struct interface *i;
	enum reason r;

	if (!cr || !why)
		return REASON_INTERNAL;
	i = interface_get(cr->ifindex);
	if (i && i->flags & INTERFACE_SKIP) {
		*why = REASON_SKIP;
		return UNDECIDED;
	}
	cr->asked = 1;
	r = match_rules(cr);
	if (r == REASON_BLOCK)
		return unloaded ? REASON_UNLOADED : REASON_BLOCK;
	if (r > REASON_LAST_PASS)
		return r;
	if (options && !(cr->flags & CROSSING_ALLOW_OPTIONS))
		return REASON_OPTIONS;
	*why = r;
	return UNDECIDED;
}

/* From "the packet as it will leave, but for the source" in s->tuple to the
 * reply's tuple. */
static __always_inline void create_reply_tuple(struct scratch *s)
{
	struct addr src = s->packet.tuple.src;

	if (s->out.flags & CROSSING_NAT)
		src = s->out.nat_addr;
	s->tuple.src = s->tuple.dst;
	s->tuple.dst = src;
	s->tuple.sport = s->tuple.dport;
	s->tuple.dport = s->packet.tuple.sport;
}

/* Lets the packets of a live state's direction cross here from now on. */
static __always_inline void create_widen(struct state *st, const struct crossing *cr, __u8 side)
{
	log_widen(st, cr, side);
	st->flags |= side;
}

/* Messages that belong to no exchange make no state. */
static __always_inline int create_never(const struct packet *p)
{
	int reply;

	return icmp_is(p->family, p->tuple.proto) &&
	       icmp_query(p->family, p->icmp_type, &reply) < 0;
}

/* The destination after rdr-to, as the route and the out crossing see it. Only a
 * packet that makes a state is redirected. */
static __always_inline void miss_destination(struct scratch *s)
{
	const struct crossing *in = &s->in;

	s->tuple = s->packet.tuple;
	if (in->flags & CROSSING_RDR && !s->state && !create_never(&s->packet)) {
		s->tuple.dst = in->rdr_addr;
		if (in->flags & CROSSING_RDR_PORT && nat_port_has(&s->packet))
			s->tuple.dport = in->rdr_port;
	}
}

static __always_inline int rule_path_equal(const struct path *a, const struct path *b)
{
	const word64 *x = (const word64 *)a, *y = (const word64 *)b;
	__u64 differ = 0;
	int i;

	for (i = 0; i < MAX_MATCHES; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* The index under which packets of these matched rules are counted. */
__noinline __u32 rule_path_index(struct scratch *s, __u8 both)
{
	__u32 *known, index, n;
	struct path *key;
	int i;

	if (!s)
		return PATH_NONE;
	key = &s->path_key;
	n = 0;
	__builtin_memset(key, 0, sizeof(*key));
	if (both & STATE_IN)
		for (i = 0; i < MAX_MATCHES && i < s->in.matches; i++)
			key->rule[n++ & (2 * MAX_MATCHES - 1)] = s->in.matched[i];
	if (both & STATE_OUT)
		for (i = 0; i < MAX_MATCHES && i < s->out.matches; i++)
			key->rule[n++ & (2 * MAX_MATCHES - 1)] = s->out.matched[i];
	if (!n)
		return PATH_NONE;
	if (rule_path_equal(key, &s->path_last))
		return s->path_last_index;
	known = bpf_map_lookup_elem(&paths, key);
	if (known) {
		s->path_last = *key;
		s->path_last_index = *known;
		return *known;
	}
	if (shared.paths_high < MAX_PATHS - PATHS_RESERVED - PATH_FIRST) {
		index = __sync_fetch_and_add(&shared.paths_high, 1) + PATH_FIRST;
		if (index >= MAX_PATHS - PATHS_RESERVED)
			return PATH_OVERFLOW;
	} else {
		__builtin_memset(key, 0, sizeof(*key));
		key->rule[0] = both & STATE_IN ? s->in.rule : 0;
		key->rule[1] = both & STATE_OUT ? s->out.rule : 0;
		known = bpf_map_lookup_elem(&paths, key);
		if (known)
			return *known;
		if (shared.paths_reserved >= PATHS_RESERVED)
			return PATH_OVERFLOW;
		index = __sync_fetch_and_add(&shared.paths_reserved, 1) + MAX_PATHS - PATHS_RESERVED;
		if (index >= MAX_PATHS)
			return PATH_OVERFLOW;
	}
	if (bpf_map_update_elem(&paths, key, &index, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&paths, key);
		return known ? *known : PATH_OVERFLOW;
	}
	return index;
}

/* Counts and notes what rules blocked at the last of the crossings. */
static __always_inline void reject_note(struct scratch *s, enum reason r, __u8 crossed)
{
	if (r != REASON_BLOCK && r != REASON_UNLOADED)
		return;
	count_path(rule_path_index(s, crossed), s->packet.length);
	s->blocked = crossed & STATE_OUT ? s->out.rule : s->in.rule;
}

/* A packet that goes no further: where rules blocked it, they count it and say
 * whether its sender hears of it. */
static __always_inline int reject_or_drop(hook_ctx *ctx, struct scratch *s, const struct interface *i, enum reason r,
				  __u8 crossed)
{
	reject_note(s, r, crossed);
	return r == REASON_BLOCK ? reject(ctx, s) : count_verdict(i, r, s->packet.length);
}

/* Counts a state under the rules that made it. */
static __always_inline void create_count(const struct scratch *s, __u8 crossed)
{
	if (crossed & STATE_IN && s->in.flags & CROSSING_KEEP_STATE)
		match_count_state(s->in.rule);
	if (crossed & STATE_OUT && s->out.flags & CROSSING_KEEP_STATE)
		match_count_state(s->out.rule);
}

/* STATE_* of a new state; crossed: the crossings that were due. */
static __always_inline __u8 create_flags(const struct scratch *s, __u8 crossed, int skip_in, int skip_out)
{
	__u8 flags = crossed;

	if (crossed & STATE_IN && !skip_in && !(s->in.flags & CROSSING_KEEP_STATE))
		flags |= STATE_EVALUATE_IN;
	if (crossed & STATE_OUT && !skip_out && !(s->out.flags & CROSSING_KEEP_STATE))
		flags |= STATE_EVALUATE_OUT;
	/* a translation needs its state, whatever the rule says */
	if (s->in.flags & CROSSING_RDR)
		flags &= ~STATE_EVALUATE_IN;
	if (s->out.flags & CROSSING_NAT)
		flags &= ~STATE_EVALUATE_OUT;
	if ((!(crossed & STATE_IN) || skip_in || s->in.flags & CROSSING_ALLOW_OPTIONS) &&
	    (!(crossed & STATE_OUT) || skip_out || s->out.flags & CROSSING_ALLOW_OPTIONS))
		flags |= STATE_OPTIONS;
	return flags | log_flag(s, flags);
}

static __always_inline int create_wanted(const struct scratch *s)
{
	if (create_never(&s->packet))
		return 0;
	return s->in.flags & (CROSSING_KEEP_STATE | CROSSING_RDR) ||
	       s->out.flags & (CROSSING_KEEP_STATE | CROSSING_NAT);
}

/* A walk through the options of a SYN. */
struct tcp_option_walk {
	const struct scratch *s;
	__u32 at;
	__u32 length;
	int scale; /* -1: not found */
};

/* The next option. 1: that was all. */
static long tcp_option_step(__u32 n, void *data)
{
	struct tcp_option_walk *w = data;
	__u32 at = w->at;
	__u8 kind, size = 1;

	(void)n;
	if (at >= w->length || at >= TCP_MAX_OPTIONS)
		return 1;
	kind = w->s->options[at];
	if (kind == 0)
		return 1;
	if (kind != 1) {
		size = w->s->options[at + 1];
		if (size < 2 || at + size > w->length)
			return 1;
		if (kind == 3 && size == 3) {
			w->scale = w->s->options[at + 2] > 14 ? 14 : w->s->options[at + 2];
			return 1;
		}
	}
	w->at = at + size;
	return 0;
}

/* The window scale of a SYN (RFC 7323, 2), or -1. The options are copied, as the
 * verifier follows bytes of a buffer better than those of a frame. */
__noinline int tcp_option_wscale(hook_ctx *ctx, struct scratch *s)
{
	struct tcp_option_walk w = { .s = s, .scale = -1 };
	__u32 length;

	if (!s || s->packet.tuple.proto != IPPROTO_TCP || !(s->packet.tcp_flags & TCP_SYN))
		return -1;
	length = s->packet.tcp_header - sizeof(struct tcphdr);
	if (!length || length > TCP_MAX_OPTIONS)
		return -1;
	if (hook_load(ctx, s->packet.l4_offset + sizeof(struct tcphdr), s->options, length))
		return -1;
	w.length = length;
	bpf_loop(TCP_MAX_OPTIONS, tcp_option_step, &w, 0);
	return w.scale;
}

/* What a packet without a state leaves as, if nothing is to be remembered. */
__noinline int output_stateless(hook_ctx *ctx, struct scratch *s, enum reason why)
{
	const struct interface *i;
	const struct packet *p;
	struct headers h;
	struct nexthop *n;
	enum reason r;
	int action;

	if (!s)
		return HOOK_DROP;
	p = &s->packet;
	i = interface_get(p->ifindex);
	if (!i || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return HOOK_DROP;
	count_path(s->path, p->length);
	if (!s->nexthop)
		return handoff_forward(ctx, p, i, 0, 0, s->no_nexthop);
	n = nexthop_get(s->nexthop);
	r = nexthop_probe(n) ? REASON_UP_PROBE : nexthop_obstacle(ctx, p, n);
	if (output_wants_tag(p, n, r)) {
		action = output_tagged(ctx, p, 0, n, why);
		if (action >= 0)
			return action;
		if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	/* not by the stack, which takes an error that is translated to our address for a martian */
	if (r == REASON_UP_DEVICE && !(p->flags & PACKET_GROUP))
		return handoff_pass(ctx, i, MARK_MAGIC | MARK_REDIRECT, r, p->length);
	if (r != UNDECIDED || p->flags & PACKET_GROUP)
		return handoff_forward(ctx, p, i, 0, 0, r);
	rewrite_ttl(&h, p);
	if (hook_frame(ctx, &h, n, i->flags & INTERFACE_L3, p->family))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(n->ifindex);
}

#endif
