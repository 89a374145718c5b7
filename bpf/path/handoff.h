/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets that the stack has to forward have their destination translated and
 * their source not. Where both change, what the stack quotes in an error is
 * neither tuple of the state: so it is noted which state that was.
 */
#ifndef WEIR_PATH_HANDOFF_H
#define WEIR_PATH_HANDOFF_H

#include "observe/count.h"
#include "packet/rewrite.h"
#include "path/scratch.h"
#include "state/lookup.h"

/* The tuple of such a packet on its way through the stack; kept by no one: a lost
 * entry costs an error. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tuple);
	__type(value, __u32); /* number of the state, with the packet's direction */
} handoffs SEC(".maps");

/* Notes a packet of tuple t that goes up. to: the tuple that reply arrive with. */
static __always_inline void handoff_note(const struct tuple *t, const struct tuple *to, __u32 number)
{
	struct scratch *s = scratch_get();

	if (!s)
		return;
	s->handoff = *t;
	s->handoff.dst = to->src;
	s->handoff.dport = to->sport;
	bpf_map_update_elem(&handoffs, &s->handoff, &number, BPF_ANY);
}

/* The state of a packet that went up, by its tuple in the stack; sets its number. */
static __always_inline struct state *handoff_find(const struct tuple *t, __u32 *number)
{
	const struct tuple *came, *reply;
	struct state *st;
	__u32 *found = bpf_map_lookup_elem(&handoffs, t);

	if (!found)
		return 0;
	*number = *found;
	st = state_get(STATE_INDEX(*number));
	if (!st || st->status != STATUS_LIVE)
		return 0;
	/* its place may be another connection's by now */
	came = &state_course(st, STATE_DIRECTION(*number))->tuple;
	reply = &state_course(st, !STATE_DIRECTION(*number))->tuple;
	if (!addr_equal(&came->src, &t->src) || came->sport != t->sport || !addr_equal(&reply->src, &t->dst) ||
	    reply->sport != t->dport || came->proto != t->proto)
		return 0;
	return st;
}

/*
 * Up to the stack, with the mark that TCX ingress is to set. A driver without room
 * for that may not have XDP: what XDP has decided would be decided again. So the
 * packet is dropped, and from now on TCX judges what comes in there.
 */
static __always_inline int handoff_pass(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					__u32 mark, enum reason why)
{
	struct interface *device = &shared.interfaces[hook_ifindex(ctx) & (MAX_IFINDEX - 1)];

	if (hook_handoff(ctx, mark, p->ifindex)) {
		__sync_fetch_and_or(&device->flags, INTERFACE_BARE);
		return count_verdict(i, REASON_METADATA, p->length);
	}
	return count_verdict(i, why, p->length);
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
		return handoff_pass(ctx, p, i, 0, REASON_LOCAL);
	if (s && s->flags & STATE_NAT && handoff_translate(ctx, p, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	return handoff_pass(ctx, p, i, mark, why);
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
	return handoff_pass(ctx, p, i, handoff_local_mark(p, dst), why);
}

/* Up to the stack because no route leads on: it answers, quoting what the client
 * sent but for the destination; without our mark it cannot forward the packet. */
static __always_inline int handoff_unreached(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					  const struct state *s, __u32 number)
{
	if (s->flags & STATE_NAT && handoff_translate(ctx, p, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	return handoff_pass(ctx, p, i, 0, REASON_UP_ROUTE);
}

#endif
