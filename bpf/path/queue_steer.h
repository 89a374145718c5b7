/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * All packets of a tree that the kernel holds pass one lock. If they come in on several cores, one
 * core goes on with all of them, so that none waits for the lock: XDP gives it their frames by a
 * cpumap. The kernel keeps what is in front of a frame, so TCX ingress finds there what XDP has
 * decided. docs/queues.md.
 */
#ifndef WEIR_PATH_QUEUE_STEER_H
#define WEIR_PATH_QUEUE_STEER_H

#include "path/queue_packet.h"
#include "route/nexthop.h"

#define STEER_STAYS ~0u /* the packet does not leave, or that does not matter */

/* Returns the tree that holds a packet where it leaves; 0: none does, or it is not known. number: of
 * its state, or METADATA_NEXTHOP and that of its next hop; 0: the scratch has that. */
static __always_inline __u32 steer_tree(const struct scratch *s, __u32 number)
{
	struct state *st = 0;
	__u32 nexthop = 0, tree;

	if (number & METADATA_NEXTHOP)
		nexthop = number & (MAX_NEXTHOPS - 1);
	else if (!(number & MAX_NUMBER))
		nexthop = s->nexthop;
	else
		st = state_get(STATE_INDEX(number & MAX_NUMBER));
	if (st)
		nexthop = state_course(st, STATE_DIRECTION(number))->nexthop;
	tree = queue_tree(nexthop_get(nexthop)->ifindex, 0);
	return tree;
}

/* Has the core of its tree go on with a frame that XDP passes to the stack. Returns the action. A packet
 * that waits where it came in goes to the core of that tree. */
__noinline int steer_frame(__u32 ifindex, __u32 number)
{
	const struct scratch *s = scratch_get();
	__u32 tree, held;

	if (!s)
		return HOOK_PASS;
	if (queue_waits_in(ifindex))
		tree = queue_tree(ifindex, 1);
	else
		tree = number == STEER_STAYS ? 0 : steer_tree(s, number);
	held = queue_shaper_get(tree)->held;
	return held >= QUEUE_HELD_BY ? hook_steer(held - QUEUE_HELD_BY) : HOOK_PASS;
}

static __always_inline int steer(const struct packet *p, __u32 number, int action)
{
	if (!HOOK_IS_XDP || !queues || action != HOOK_PASS)
		return action;
	return steer_frame(p->ifindex, number);
}

#endif
