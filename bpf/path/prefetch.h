/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Prefetch, for when the states do not fit into the caches. Then a read of memory takes
 * as long as all other work for a packet, and there is nothing else to do meanwhile. So
 * a packet takes two passes. The first pass parses it and finds a hint (state/hint.h).
 * It queues the packet for the next hop's device, with a note of its state where its
 * MACs will be. When 16 are queued, or a poll ends, the kernel runs weir_xdp_prefetch
 * over them: the second pass. It reads all their states in a row, then does the rest for
 * each packet. It can only send or drop.
 *
 * A packet without a sure hint goes the usual way (path/fast.h), in the same queue. So
 * does a packet of a connection that this core has seen lately: its state is in a cache.
 */
#ifndef WEIR_PATH_PREFETCH_H
#define WEIR_PATH_PREFETCH_H

#include "path/fast.h"
#include "path/prefetch_map.h"
#include "state/hint.h"

#define RECENT_PASS 0xffu

static __always_inline void prefetch_add(struct prefetch *l, __u32 index)
{
	__u32 n = l->count;

	if (n >= PREFETCH_BATCH)
		return;
	l->index[n] = index;
	l->count = n + 1;
}

/* Touches what the queued packets will need, so that no read waits for another packet's. */
static __always_inline void prefetch_touch(void)
{
	struct prefetch *l = prefetch_get();
	struct state *s;
	__u32 i, n;

	if (!l || !l->count)
		return;
	n = l->count;
	l->count = 0;
	l->pass++;
	for (i = 0; i < PREFETCH_BATCH && i < n; i++) {
		s = state_get(l->index[i]);
		if (!s)
			continue;
		touch(s->status);
		touch(s->flow_forth.last);
	}
	for (i = 0; i < PREFETCH_BATCH && i < n; i++) {
		s = state_get(l->index[i]);
		if (s && s->flags & STATE_NAT)
			touch(s->back);
	}
}

/* Like hint_find(), but rarely looks on interfaces that mostly bring replies: a missing
 * hint costs a read of memory, too. */
static __always_inline __u32 prefetch_find(struct prefetch *l, __u64 hash, const struct packet *p, __u16 *nexthop)
{
	__u16 *misses = &l->misses[p->ifindex % 64];
	__u32 index;

	if (*misses >= PREFETCH_MISSES) {
		*misses = *misses < PREFETCH_MISSES_MAX ? *misses + 1 : 0;
		return 0;
	}
	index = hint_find(hash, p->ifindex, nexthop);
	*misses = index ? 0 : *misses + 1;
	return index;
}

/* Whether a packet takes one pass because its state is in a cache. If it ends a
 * connection, it must not overtake packets that still wait for their second pass: a RST
 * fits a state only after the data sent before it. */
static __always_inline int prefetch_is_recent(struct prefetch *l, __u64 hash, const struct packet *p)
{
	__u32 *slot = &l->recent[hash % PREFETCH_RECENT], tag = (__u32)(hash >> 32) & ~RECENT_PASS, was = *slot;

	if ((was & ~RECENT_PASS) != tag) {
		*slot = tag | ((l->pass + 128) & RECENT_PASS);
		return 0;
	}
	if (p->tuple.proto == IPPROTO_TCP && p->tcp_flags & (TCP_FIN | TCP_RST) &&
	    (was & RECENT_PASS) == (l->pass & RECENT_PASS))
		return 0;
	l->warm = 1;
	return 1;
}

/* Notes that a packet waits for its second pass. */
static __always_inline void prefetch_note_queued(struct prefetch *l, __u64 hash)
{
	l->queued++;
	l->recent[hash % PREFETCH_RECENT] = ((__u32)(hash >> 32) & ~RECENT_PASS) | (l->pass & RECENT_PASS);
}

/* Whether a hint may be used for a packet. */
static __always_inline int prefetch_is_simple(const struct packet *p)
{
	if (p->fragment != FRAGMENT_NONE || p->flags & (PACKET_GROUP | PACKET_ICMP_ERROR))
		return 0;
	return p->tuple.proto != IPPROTO_TCP || !(p->tcp_flags & TCP_SYN);
}

/* The first pass. 0: the packet goes the usual way, and nothing is changed. */
static __always_inline int prefetch_queue(struct xdp_md *ctx, const struct packet *p,
				      const struct interface *i, int *action)
{
	struct prefetch *l = prefetch_get();
	const struct interface *o;
	const struct nexthop *n;
	struct prefetch_note *a;
	__u16 nexthop;
	__u32 index;
	__u64 hash;

	if (!l)
		return 0;
	l->warm = 0;
	if (shared.policies || !prefetch_is_simple(p)) /* the second pass gives nothing to the stack */
		return 0;
	hash = tuple_hash(&p->tuple);
	if (prefetch_is_recent(l, hash, p))
		return 0;
	index = prefetch_find(l, hash, p, &nexthop);
	if (!index)
		return 0;
	n = nexthop_get(nexthop);
	if (queues && (queue_tree(p->ifindex, 1) || queue_tree(n->ifindex, 0)))
		return 0;
	o = interface_get(n->encap.device);
	if (!o || !(o->flags & INTERFACE_PREFETCH) || shared.now - n->checked >= NEXTHOP_FRESH ||
	    fast_obstacle(ctx, p, n) != UNDECIDED)
		return 0;
	a = hook_data(ctx);
	if ((void *)a + sizeof(struct ethhdr) > hook_data_end(ctx))
		return 0;
	a->secret = prefetch_secret;
	a->index = index;
	a->nexthop = nexthop;
	a->ifindex = p->ifindex;
	prefetch_add(l, index);
	prefetch_note_queued(l, hash);
	*action = bpf_redirect_map(&prefetch_devices, n->encap.device, XDP_DROP);
	if (*action != XDP_REDIRECT) /* the device has just gone */
		*action = count_verdict(i, REASON_HINT_STALE, p->length);
	return 1;
}

/* Returns the state of a packet in its second pass; NULL: it is not as the hint said. */
static __always_inline struct state *prefetch_state(const struct packet *p, const struct prefetch_note *a)
{
	struct state *st = state_get(a->index);

	if (!st || st->status != STATUS_LIVE) {
		hint_withdraw(a->index);
		return 0;
	}
	if (!tuple_equal(&st->forth.tuple, &p->tuple)) {
		hint_write(a->index, HINT_BROKEN);
		return 0;
	}
	if (!hint_is_plain(st) || st->forth.nexthop == NEXTHOP_LOCAL || state_expired(st, 0) ||
	    !bound_takes(st, a->index, 0, a->ifindex)) {
		hint_withdraw(a->index);
		return 0;
	}
	/* the queued next hop was right a moment ago */
	if (st->forth.nexthop != a->nexthop)
		hint_withdraw(a->index);
	return st;
}

/* The second pass of a packet that the first pass has queued. */
static __always_inline int prefetch_finish(struct xdp_md *ctx, const struct prefetch_note *a)
{
	const struct interface *i = interface_get(hook_ifindex(ctx));
	const struct nexthop *n = nexthop_get(a->nexthop);
	struct scratch *s = scratch_get();
	struct headers h;
	struct packet *p;
	struct state *st;
	enum reason r;
	__u8 phase;

	if (!i || !s)
		return XDP_DROP;
	p = &s->packet;
	p->ifindex = hook_ifindex(ctx);
	r = parse(ctx, p, &h, &i, 0, 1, 0);
	if (p->ifindex != a->ifindex) /* its tag has just become, or ceased to be, an interface's */
		return count_verdict(i, REASON_HINT_STALE, hook_length(ctx));
	if (r != UNDECIDED)
		return count_verdict(i, REASON_INTERNAL, hook_length(ctx));
	st = prefetch_state(p, a);
	if (!st)
		return count_verdict(i, REASON_HINT_STALE, p->length);
	p->flags &= ~PACKET_GROUP; /* the note is in place of the MACs */
	phase = st->phase;
	r = fast_track(st, 0, p);
	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	if (st->phase != phase)
		hint_renew(STATE_NUMBER(a->index, 0));
	count_path(st->path, 0, p->length);
	scrub_set_state(p, st, STATE_NUMBER(a->index, 0));
	if (headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)) || rewrite_packet(ctx, &h, p, st, 0) ||
	    (encap_needed(p, n) ? output_layers(ctx, p, n) : hook_frame(ctx, &h, n, 0, p->family)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	count_reason(i, REASON_STATE, p->length);
	return XDP_PASS;
}

/* The program of a prefetch device. A frame from a first pass has a note; a finished
 * frame has its MACs. */
static __always_inline int prefetch_run(struct xdp_md *ctx)
{
	const struct prefetch_note *note = hook_data(ctx);
	struct prefetch_note a;

	if ((void *)(note + 1) > hook_data_end(ctx) || note->secret != prefetch_secret)
		return XDP_PASS;
	a = *note;
	prefetch_touch();
	return prefetch_finish(ctx, &a);
}

#endif
