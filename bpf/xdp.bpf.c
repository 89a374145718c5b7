// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * XDP: packets that come in by a NIC, before the kernel has spent anything on
 * them. docs/packet-path.md has the picture.
 *
 *   weir_xdp           parse, sanity of the frame, state look-up, track,
 *                      rewrite, redirect           (states, tuples, shared)
 *   weir_xdp_miss      no state: sanity, implicit passes, rules in, route,
 *                      rules out, NAT, creation    (rules, tuples, states)
 *   weir_xdp_error     ICMP errors                 (tuples, states)
 *   weir_xdp_fragment  later fragments             (fragments, states)
 *   weir_xdp_slow      SYNs in a state, stale next hops; what sides that keep no
 *                      state evaluate goes on to miss (states, nexthop_index)
 *   weir_xdp_owner     before miss, if rules ask for users: the packet's socket
 *   weir_xdp_family    what af-to translates to the other address family
 *   weir_xdp_ether     as weir_xdp, for frames that meet ether rules
 *   weir_xdp_capture   the whole way, watched      (capture_filters, capture_ring)
 *   weir_xdp_spread    before weir_xdp on an interface whose frames several cores are to
 *                      handle: gives frames to others (spread_slots, spread_frames)
 *   weir_spread_take   takes them there, and calls what weir_xdp is loaded as a second
 *                      time, with all its programs    (spread_next, core_tails)
 *
 * Every program may end in a drop, in a redirect, or in XDP_PASS with metadata
 * that tells TCX ingress of the same device what was decided.
 *
 * A frame may fill several buffers (xdp.frags), as jumbo frames do. All headers that
 * weir reads must be in the first one.
 */
#include "hook/xdp.h"
#include "settings.h"
#include "path/ether.h"
#include "path/icmp_error.h"
#include "path/late_fragment.h"
#include "path/miss.h"
#include "path/owner.h"
#include "path/prefetch.h"
#include "path/spread.h"
#include "observe/capture.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TAIL_COUNT);
	__type(key, __u32);
	__type(value, __u32);
} tails SEC(".maps");

/* prefetch: packets may take two passes. */
static __always_inline int xdp_path(struct xdp_md *ctx, const struct interface *i, struct packet *p, int prefetch,
				    enum forwarder who)
{
	struct headers h;
	enum reason r;
	int action;

	p->ifindex = hook_ifindex(ctx);
	r = parse(ctx, p, &h, &i, 0, 1, 0);
	if (r != UNDECIDED)
		return count_verdict(i, r, hook_length(ctx));
	queue_forget(p->ifindex);
	if (prefetch && prefetch_queue(ctx, p, i, &action))
		return action;
	return fast_in(ctx, &tails, p, i, who);
}

/* Removes a verdict that the frame came with: the device at the other end of a veth pair
 * can write one. < 0: it stays. */
static __always_inline int xdp_clear_metadata(hook_ctx *ctx)
{
	const __u32 *magic = hook_data_meta(ctx);

	if ((void *)(magic + 1) > hook_data(ctx) || *magic != METADATA_MAGIC)
		return 0;
	return bpf_xdp_adjust_meta(ctx, hook_data(ctx) - hook_data_meta(ctx));
}

/* The packet is on the stack, not in the scratch: here the way to a map's memory costs more than it saves the
 * verifier. */
SEC("xdp.frags")
int weir_xdp(struct xdp_md *ctx)
{
	const struct interface *i = interface_get(hook_ifindex(ctx));
	struct packet p;

	if (xdp_clear_metadata(ctx))
		return XDP_DROP;
	/* one test for all */
	if (!interface_is_plain(i, INTERFACE_ETHER_IN, INTERFACE_BARE)) {
		if (!interface_is_present(i))
			return count_verdict(&shared.interfaces[0], REASON_INTERFACE, 0);
		if (i->flags & INTERFACE_BARE)
			return HOOK_PASS; /* TCX captures, too */
		if (i->flags & INTERFACE_CAPTURE)
			bpf_tail_call(ctx, &tails, TAIL_CAPTURE);
		if (ether_rules && i->flags & INTERFACE_ETHER_IN) {
			bpf_tail_call(ctx, &tails, TAIL_ETHER);
			return count_verdict(i, REASON_INTERNAL, hook_length(ctx));
		}
	}
	return xdp_path(ctx, i, &p, shared.prefetch, FORWARD_FAST);
}

/* A function, so that what the programs behind the tail calls return comes back to its
 * caller. */
static __noinline int xdp_captured(struct xdp_md *ctx)
{
	const struct interface *i = interface_get(hook_ifindex(ctx));
	struct packet p = {};
	int action;

	if (!i)
		return HOOK_DROP;
	action = xdp_path(ctx, i, &p, 0, FORWARD_CALLS);
	capture_state(&p.tuple);
	return action;
}

/* Lets a frame meet the ether rules. Returns the action if one ends it or sends it elsewhere. A
 * function of its own, to save stack. */
static __noinline int xdp_ether(struct xdp_md *ctx)
{
	const struct interface *i = interface_get(hook_ifindex(ctx));
	struct packet p;
	struct headers h;
	enum reason r;

	if (!i)
		return HOOK_DROP;
	p.ifindex = hook_ifindex(ctx);
	r = parse(ctx, &p, &h, &i, 0, 1, 0);
	if (!ether_in(ctx, &p, r))
		return ether_bridge(ctx, i, &p, REASON_UP_DEVICE);
	return count_verdict(i, REASON_BLOCK, hook_length(ctx));
}

/* The same path for interfaces whose frames meet ether rules. */
static __noinline int xdp_whole(struct xdp_md *ctx)
{
	const struct interface *i = interface_get(hook_ifindex(ctx));
	struct packet p;

	return i ? xdp_path(ctx, i, &p, 0, FORWARD_CALLS) : HOOK_DROP;
}

SEC("xdp.frags")
int weir_xdp_ether(struct xdp_md *ctx)
{
	int action = xdp_ether(ctx);

	return action == ETHER_GOES_ON ? xdp_whole(ctx) : action;
}

/* Returns what becomes of a frame, for records: one that goes to the stack by another core has what TCX
 * is to know in front of it, and others that are redirected do not. */
static __always_inline int xdp_shown(struct xdp_md *ctx, int action)
{
	const __u32 *magic = hook_data_meta(ctx);

	if (action != XDP_REDIRECT || (void *)(magic + 1) > hook_data(ctx) || *magic != METADATA_MAGIC)
		return action;
	return HOOK_PASS;
}

SEC("xdp.frags")
int weir_xdp_capture(struct xdp_md *ctx)
{
	int unread = capture_before(ctx, 0), action = ETHER_GOES_ON;

	if (ether_rules && ether_asks(ctx))
		action = xdp_ether(ctx);
	if (action == ETHER_GOES_ON)
		action = xdp_captured(ctx);
	if (!unread)
		capture_after(ctx, xdp_shown(ctx, action), 0);
	return action;
}

SEC("xdp.frags")
int weir_xdp_miss(struct xdp_md *ctx)
{
	return miss_in(ctx, &tails);
}

SEC("xdp.frags")
int weir_xdp_error(struct xdp_md *ctx)
{
	return icmp_error_in(ctx, &tails);
}

SEC("xdp.frags")
int weir_xdp_fragment(struct xdp_md *ctx)
{
	return late_fragment_in(ctx, &tails);
}

SEC("xdp.frags")
int weir_xdp_slow(struct xdp_md *ctx)
{
	return slow_in(ctx, &tails);
}

SEC("xdp.frags")
int weir_xdp_owner(struct xdp_md *ctx)
{
	return owner_in(ctx, &tails);
}

SEC("xdp.frags")
int weir_xdp_family(struct xdp_md *ctx)
{
	return family_run(ctx);
}

SEC("xdp.frags/devmap")
int weir_xdp_prefetch(struct xdp_md *ctx)
{
	return prefetch_run(ctx);
}

SEC("xdp.frags")
int weir_xdp_spread(struct xdp_md *ctx)
{
	int action = spread(ctx);

	if (action != SPREAD_STAYS)
		return action;
	bpf_tail_call(ctx, &spread_stays, 0);
	return XDP_DROP; /* it is filled before this program is attached */
}

SEC("xdp.frags/cpumap")
int weir_spread_take(struct xdp_md *ctx)
{
	spread_take(ctx);
	bpf_tail_call(ctx, &spread_next, 0);
	return XDP_DROP;
}
