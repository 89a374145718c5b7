/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The fast path: what every packet of a known connection goes through, up to the
 * redirect. All other packets take a tail call (hook/tail.h).
 */
#ifndef WEIR_PATH_FAST_H
#define WEIR_PATH_FAST_H

#include "hook/tail.h"
#include "path/af_to_plain.h"
#include "path/output.h"
#include "path/policy.h"
#include "path/prefetch_map.h"
#include "path/qos.h"
#include "path/queue_packet.h"
#include "path/queue_trip.h"
#include "path/scratch.h"
#include "path/scrub.h"
#include "route/encap.h"
#include "state/bound.h"
#include "state/lookup.h"
#include "state/nat_port.h"
#include "state/touch.h"
#include "state/track.h"

/* Leaves the packet in the scratch and takes a tail call. then: enum slow_then. */
static __always_inline int fast_tail_then(hook_ctx *ctx, void *tails, const struct packet *p,
				 const struct interface *i, __u32 tail, __u32 number, __u8 tracked, __u8 then)
{
	struct scratch *s = scratch_get();

	if (s) {
		if (p != &s->packet)
			s->packet = *p;
		s->state = number;
		s->path = 0;
		s->why = REASON_STATE;
		s->tracked = tracked;
		s->then = then;
		s->nexthop = 0;
		s->replaces = 0;
		s->elsewhere = 0;
		s->diverted = 0;
		bpf_tail_call(ctx, tails, tail);
	}
	return count_verdict(i, REASON_INTERNAL, p->length);
}

static __always_inline int fast_tail(hook_ctx *ctx, void *tails, const struct packet *p,
			    const struct interface *i, __u32 tail, __u32 number, __u8 tracked)
{
	return fast_tail_then(ctx, tails, p, i, tail, number, tracked, SLOW_END);
}

/*
 * A proxy may take its client's address and port for its own connection to the server.
 * Then two connections of the box have the same addresses and ports. Each has a state:
 * the second one's tuples have ZONE_SOCKET. A packet that the first lets not cross here is
 * the other's. Returns its number; 0: it has no state yet.
 */
__noinline __u32 fast_twin(struct packet *p)
{
	__u32 number = 0;

	if (!p || p->tuple.zone)
		return 0;
	p->tuple.zone = ZONE_SOCKET;
	return lookup_state(&p->tuple, &number) ? number : 0;
}

/* Finds the state that lets the packet cross here. NULL: a miss. *number is then 0, or
 * the number of a state that is live but does not let the packet cross here. */
static __always_inline struct state *fast_state(struct packet *p, __u64 hash, int in, __u32 *number)
{
	struct state *st = lookup_hashed(&p->tuple, hash, number);

	if (st && !(st->flags & state_crossing(STATE_DIRECTION(*number), in)) && state_has_socket(st)) {
		*number = fast_twin(p);
		st = *number ? state_get(STATE_INDEX(*number)) : 0;
	}

	if (!st) {
		*number = 0;
		return 0;
	}
	if (state_expired(st, STATE_DIRECTION(*number))) {
		state_kill(st, STATE_INDEX(*number));
		*number = 0;
		return 0;
	}
	if (!(st->flags & state_crossing(STATE_DIRECTION(*number), in)))
		return 0;
	return bound_fits(st, *number, in, p->ifindex) ? st : 0;
}

/* Updates the state from the packet. Returns UNDECIDED, or why the packet is dropped. */
static __always_inline enum reason fast_track(struct state *st, __u32 d, const struct packet *p)
{
	enum reason r;

	if (p->tuple.proto == IPPROTO_TCP) {
		r = track_tcp(st, d, p, -1);
		if (r != UNDECIDED)
			return r;
	} else {
		track_other(st, d, p);
	}
	track_count(st, d, p);
	return UNDECIDED;
}

/* Ends a segment that does not fit its state. */
static __always_inline int fast_mismatch(hook_ctx *ctx, void *tails, const struct packet *p,
					 const struct interface *i, const struct state *st, __u32 number)
{
	if (track_is_answered(st, STATE_DIRECTION(number), p))
		return fast_tail(ctx, tails, p, i, TAIL_SLOW, number, 0);
	return count_verdict(i, REASON_STATE_MISMATCH, p->length);
}

/* Whether a packet of a known connection is never for the fast path. */
static __always_inline int fast_is_rare(const struct packet *p)
{
	return p->tuple.proto == IPPROTO_TCP && p->tcp_flags & TCP_SYN;
}

/* Returns the tail call for a packet whose state is not found by its own tuple; < 0:
 * none. */
static __always_inline int fast_tail_of(const struct packet *p)
{
	if (fragment_is_listed(p))
		return TAIL_MISS;
	if (p->fragment == FRAGMENT_LATER)
		return fragment_is_alone(p) ? TAIL_MISS : TAIL_FRAGMENT;
	if (p->flags & PACKET_ICMP_ERROR && p->fragment == FRAGMENT_NONE)
		return TAIL_ERROR;
	return -1;
}

/* Returns the length that must fit the next hop's MTU: for a super-packet, that of one
 * segment. */
static __always_inline __u32 fast_wire_length(hook_ctx *ctx, const struct packet *p)
{
	__u32 headers;

	(void)ctx;
	if (!hook_gso_size(ctx))
		return p->length;
	headers = p->l4_offset - p->l3_offset +
		  (p->tuple.proto == IPPROTO_TCP ? p->tcp_header : sizeof(struct udphdr));
	return headers + hook_gso_size(ctx);
}

/* Returns why a packet of a state cannot be redirected at once; UNDECIDED if it can. */
static __always_inline enum reason fast_obstacle(hook_ctx *ctx, const struct packet *p,
					   const struct nexthop *n)
{
	int scattered = 0;

	if (p->flags & (PACKET_OPTIONS | PACKET_SCATTERED)) { /* one test for both */
		if (p->flags & PACKET_OPTIONS)
			return REASON_UP_OPTIONS;
		scattered = 1;
	}
	if (p->ttl <= 1)
		return REASON_UP_TTL;
	if (fast_wire_length(ctx, p) + (HOOK_IS_XDP ? n->encap.excess : 0) > n->mtu)
		return REASON_UP_MTU;
	if (!(n->flags & NEXTHOP_VALID))
		return REASON_UP_NEIGHBOUR;
	if (HOOK_IS_XDP && (!(n->flags & NEXTHOP_XDP) || (scattered && !(n->flags & NEXTHOP_SCATTERED))))
		return REASON_UP_DEVICE;
	return queue_waits(p) ? REASON_UP_DEVICE : UNDECIDED;
}

/* Sends a frame that lacks only its MACs. path: the rule path that it counts under; d: its
 * direction there. */
static __always_inline int fast_send(hook_ctx *ctx, struct headers *h, const struct packet *p,
				     const struct interface *i, const struct nexthop *n, enum reason why, __u32 path,
				     __u32 d)
{
	int action = hook_send(ctx, h, n, packet_is_bare(p), p->family);

	if (action < 0)
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_forwarded(i, why, path, d, p->length);
	return action;
}

/* Sends a frame that has room for its encapsulation, and lacks only what is in front of its packet. */
static __always_inline int fast_send_encap(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					   const struct nexthop *n, enum reason why, __u32 path, __u32 d)
{
	if (encap_write(hook_data(ctx), hook_data_end(ctx), n, p->family, p->length))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_forwarded(i, why, path, d, p->length);
	return hook_redirect(ctx, n->encap.device);
}

/* Sends a packet of a live state to a known next hop: the end of the fast path. */
static __always_inline int fast_forward(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					const struct state *s, __u32 number, const struct nexthop *n, enum reason why,
					__u32 path, enum forwarder who)
{
	enum reason r = fast_obstacle(ctx, p, n);
	int encap = encap_needed(p, n);
	struct headers h;
	__u32 tree;

	if (who == FORWARD_MARKED && shared.policies)
		r = policy_obstacle(ctx, p, number, n->ifindex, r);
	if (who == FORWARD_FAST && encap && r == UNDECIDED && !(p->flags & PACKET_GROUP)) {
		if (output_room(ctx, (struct packet *)p, n))
			r = REASON_UP_DEVICE;
		else
			encap = -1;
	}
	if (r != UNDECIDED || p->flags & PACKET_GROUP || encap > 0) {
		if (path != PATH_COUNTED)
			count_path_global(path, STATE_DIRECTION(number), p->length);
		return output_other(ctx, p, i, s, number, n, r, why, who);
	}
	tree = queues ? queue_tree(n->ifindex, 0) : 0;
	if (tree && !(who >= FORWARD_CALLS && queue_known(ctx, p, s, number, tree, queue_more(n->ifindex, 0)))) {
		r = queue_out(ctx, p, number, n->ifindex);
		if (r != UNDECIDED)
			return count_verdict(i, r, p->length);
	}
	if (tree && who != FORWARD_SLOW)
		queue_trip_leaves(p, number, tree);
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) || rewrite_packet(ctx, &h, p, s, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (who == FORWARD_FAST && encap)
		return fast_send_encap(ctx, p, i, n, why, path, STATE_DIRECTION(number));
	hook_set_mark(ctx, mark_set(rule_mark_all(s, p->mark), MARK_LEAVES));
	return fast_send(ctx, &h, p, i, n, why, path, STATE_DIRECTION(number));
}

/* Whether a packet's priority has any effect: an XDP redirect has none. */
static __always_inline int fast_qos_matters(hook_ctx *ctx, const struct packet *p, const struct nexthop *n)
{
	return !HOOK_IS_XDP || p->flags & PACKET_GROUP || encap_needed(p, n) ||
	       fast_obstacle(ctx, p, n) != UNDECIDED;
}

/* Touches what the state of a packet that has none will be written into. */
static __always_inline void fast_touch(const struct packet *p, __u64 hash)
{
	const struct scratch *s = scratch_get();
	struct tuple reply;

	tuple_reverse(&reply, &p->tuple);
	if (s)
		nat_port_expect(s, p, &reply);
	touch_home(hash, &reply);
}

/* Handles a parsed packet at XDP or TCX ingress. */
static __always_inline int fast_in(hook_ctx *ctx, void *tails, struct packet *p, const struct interface *i,
				   enum forwarder who)
{
	const struct course *c;
	struct nexthop *n;
	struct state *st;
	__u32 number, d, tree;
	enum reason r;
	__u64 hash;
	int action, tail = fast_tail_of(p);

	if (tail >= 0)
		return fast_tail_then(ctx, tails, p, i, tail, 0, 0, fragment_is_listed(p) ? SLOW_FRAGMENT : SLOW_END);
	hash = tuple_hash(&p->tuple);
	st = fast_state(p, hash, 1, &number);
	if (!st) {
		if (!number)
			fast_touch(p, hash);
		return fast_tail(ctx, tails, p, i, TAIL_MISS, number, 0);
	}
	if (fast_is_rare(p) || st->flags & STATE_LOG)
		return fast_tail(ctx, tails, p, i, TAIL_SLOW, number, 0);
	queue_expect(number);
	d = STATE_DIRECTION(number);
	r = fast_track(st, d, p);
	if (r == REASON_STATE_MISMATCH)
		return fast_mismatch(ctx, tails, p, i, st, number);
	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	tree = queues ? queue_tree(p->ifindex, 1) : 0;
	if (tree && !queue_known(ctx, p, st, number, tree, queue_more(p->ifindex, 1))) {
		r = queue_in(ctx, p, number);
		if (r != UNDECIDED)
			return count_verdict(i, r, p->length);
	}
	if (queues)
		queue_trip_comes(p, number, tree);
	if (state_changes_family(st)) {
		action = HOOK_IS_XDP ? family_plain(ctx, p, number) : -1;
		return action >= 0 ? action : fast_tail(ctx, tails, p, i, TAIL_FAMILY, number, 1);
	}
	if (shared.prefetch) {
		hint_renew(number);
		if (HOOK_IS_XDP)
			prefetch_count_spared();
	}
	c = state_course(st, d);
	n = nexthop_get(c->nexthop);
	if (c->nexthop < NEXTHOP_FIRST || nexthop_is_stale(n, c->nexthop_generation) || p->fragment != FRAGMENT_NONE || p->mark ||
	    st->flags & (STATE_EVALUATE_IN | STATE_EVALUATE_OUT) ||
	    (shared.policies && policy_takes(ctx, p, number, n->ifindex)))
		return fast_tail(ctx, tails, p, i, TAIL_SLOW, number, 1);
	if (st->qos) {
		scrub_set_state(p, st, number);
		if (fast_qos_matters(ctx, p, n))
			qos_set_state(ctx, p, st, d);
	}
	return fast_forward(ctx, p, i, st, number, n, REASON_STATE, st->path, who);
}

#endif
