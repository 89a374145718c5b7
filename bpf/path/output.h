/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The ways out of packets that the fast path does not send: up to the stack, and of programs
 * other than weir_xdp with other layers in front. */
#ifndef WEIR_PATH_OUTPUT_H
#define WEIR_PATH_OUTPUT_H

#include "observe/count.h"
#include "packet/rewrite.h"
#include "path/gateway.h"
#include "path/handoff.h"
#include "path/queue_trip.h"
#include "route/encap.h"

/* Makes room in front of the packet for its next hop's layers, and writes them. */
static __always_inline int output_layers(hook_ctx *ctx, const struct packet *p, const struct nexthop *n)
{
	if (hook_grow(ctx, sizeof(struct ethhdr) + n->encap.length - p->l3_offset))
		return -1;
	return encap_write(hook_data(ctx), hook_data_end(ctx), n, p->family, p->length);
}

/* Who sends a packet on. Only the fast path counts in line, and only it and what goes on for it look at
 * round-trip times: elsewhere that would take stack. */
enum forwarder {
	FORWARD_SLOW,
	FORWARD_MARKED, /* for XDP, which has tracked it */
	FORWARD_CALLS,	/* the fast path of programs that have to be small rather than fast: they call output_encap() */
	FORWARD_FAST,
};

/* Makes room in front of a packet of encap_needed(), before it meets a queue: a packet that goes on elsewhere
 * is counted there. Returns < 0, and changes nothing, if the driver has none. */
static __always_inline int output_room(hook_ctx *ctx, struct packet *p, const struct nexthop *n)
{
	__u32 l3 = sizeof(struct ethhdr) + n->encap.length;

	if (hook_grow(ctx, l3 - p->l3_offset))
		return -1;
	p->l4_offset += l3 - p->l3_offset;
	p->l3_offset = l3;
	return 0;
}

/*
 * Sends a packet that has room for its encapsulation: the last step. number: of its state, 0:
 * none. weir_xdp has the same in line (fast_send_encap()), because a call costs some 10 ns.
 */
__noinline int output_encap(hook_ctx *ctx, const struct packet *p, __u32 number, const struct nexthop *n,
			    enum reason why)
{
	const struct interface *i;
	const struct state *s = 0;
	struct headers h;

	if (!p || !n)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (number)
		s = state_get(STATE_INDEX(number));
	if (!i || (number && !s))
		return HOOK_DROP;
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (!s)
		rewrite_hop(&h, p);
	else if (rewrite_packet(ctx, &h, p, s, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (encap_write(hook_data(ctx), hook_data_end(ctx), n, p->family, p->length))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, why, p->length);
	return hook_redirect(ctx, n->encap.device);
}

/* Passes up a packet of a live state that cannot be redirected. */
static __always_inline int output_up(hook_ctx *ctx, const struct packet *p,
			     const struct interface *i, const struct state *s, __u32 number,
			     const struct nexthop *n, enum reason why)
{
	if (why == REASON_UP_OPTIONS && !(s->flags & STATE_OPTIONS))
		return count_verdict(i, REASON_OPTIONS, p->length);
	if (gateway_is_chosen(n) && why != REASON_UP_POLICY && !(p->flags & PACKET_GROUP))
		return gateway_state(ctx, p, number, state_course((struct state *)s, STATE_DIRECTION(number))->nexthop, why);
	if (why != REASON_UP_DEVICE || p->flags & PACKET_GROUP || queue_waits(p))
		return handoff_forward(ctx, p, i, s, number, why);
	return handoff_redirect(ctx, p, i, number, 0);
}

/* Handles a packet of a live state that the fast path does not send. obstacle: why it
 * cannot be redirected. UNDECIDED: it can be, with other layers in front, or it was sent
 * to a group. */
static __always_inline int output_other(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					const struct state *s, __u32 number, const struct nexthop *n,
					enum reason obstacle, enum reason why, enum forwarder who)
{
	__u32 tree;
	enum reason r;

	if (obstacle == UNDECIDED && encap_needed(p, n) && !(p->flags & PACKET_GROUP)) {
		if (!output_room(ctx, (struct packet *)p, n)) {
			tree = queues ? queue_tree(n->ifindex, 0) : 0;
			r = queue_out(ctx, p, number, n->ifindex);
			if (r != UNDECIDED)
				return count_verdict(i, r, p->length);
			if (tree && who != FORWARD_SLOW)
				queue_trip_leaves(p, number, tree);
			return output_encap(ctx, p, number, n, why);
		}
		obstacle = REASON_UP_DEVICE;
	}
	return output_up(ctx, p, i, s, number, n, obstacle);
}

#endif
