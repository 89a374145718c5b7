/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Capture: packets as they came and as they leave, with what was decided, for the
 * readers of capture_ring. docs/packet-path.md, Capture.
 *
 * An interface with INTERFACE_CAPTURE sends its packets through a program of its own. It
 * keeps a copy and runs the whole path as a function (a tail call in a function returns
 * to its caller). Then it looks at what became of the packet. Cost when off: one flag
 * test at entry, one when the verdict is counted.
 */
#ifndef WEIR_OBSERVE_CAPTURE_H
#define WEIR_OBSERVE_CAPTURE_H

#include "observe/capture_filter.h"
#include "observe/record.h"
#include "path/scratch.h"
#include "route/nexthop.h"
#include "state/lookup.h"

/* Reads a frame's first bytes, without the tags behind its MACs: 0, or < 0. */
static __always_inline int capture_read(hook_ctx *ctx, __u8 *to, __u32 bytes, __u32 front)
{
	if (!front)
		return hook_load(ctx, 0, to, bytes);
	if (bytes <= 2 * ETH_ALEN)
		return -1;
	return hook_load(ctx, 0, to, 2 * ETH_ALEN) ||
	       hook_load(ctx, 2 * ETH_ALEN + front, to + 2 * ETH_ALEN, bytes - 2 * ETH_ALEN);
}

/* Copies the frame behind the record's head. */
static __always_inline void capture_load(hook_ctx *ctx, struct capture *c, int bare, __u32 front)
{
	struct capture_setting *setting = capture_setting_get();
	__u32 length = hook_length(ctx) - front;
	__u64 n = length;

	c->head.time = bpf_ktime_get_boot_ns();
	c->head.length = length;
	c->head.captured = 0;
	c->head.flags = bare ? RECORD_L3 : 0;
	if (setting && n > setting->snap)
		n = setting->snap;
	keep_bound(n);
	if (n > CAPTURE_BYTES)
		n = CAPTURE_BYTES;
	if (n && !capture_read(ctx, c->data, n, front))
		c->head.captured = n;
}

static __always_inline void capture_headers(hook_ctx *ctx, struct capture *c, int bare, __u32 front)
{
	__u64 n = hook_length(ctx) - front;

	keep_bound(n);
	if (n > CAPTURE_HEADERS)
		n = CAPTURE_HEADERS;
	c->there = 0;
	c->bare = bare;
	if (n && !capture_read(ctx, c->headers, n, front))
		c->there = n;
}

/* Writes the record into the ring, or counts it as lost. Wakes the reader as
 * record_submit() does. */
static __always_inline void capture_write(struct capture *c)
{
	__u64 n = c->head.captured;
	__u64 unread = bpf_ringbuf_query(&capture_ring, BPF_RB_AVAIL_DATA);
	__u64 quarter = CAPTURE_RING_BYTES / 4;

	keep_bound(n);
	if (n > CAPTURE_BYTES)
		n = CAPTURE_BYTES;
	if (bpf_ringbuf_output(&capture_ring, c, sizeof(c->head) + n,
			       unread >= quarter && unread < quarter + 2 * CAPTURE_BYTES ? BPF_RB_FORCE_WAKEUP :
											   BPF_RB_NO_WAKEUP))
		record_lost(RING_CAPTURE);
}

/* Keeps the packet as it came. Returns < 0 if nobody would read it. */
__noinline int capture_before(hook_ctx *ctx, int out)
{
	__u32 ifindex = HOOK_IS_XDP ? BELONGS_TO(logical_of(ctx, hook_ifindex(ctx))) : hook_ifindex(ctx);
	const struct interface *i = interface_get(ifindex);
	struct capture *c = capture_get();
	struct scratch *s = scratch_get();
	__u32 *note = count_noted_get();
	int bare;

	if (!i || !c || !s || !note || !record_wanted(RING_CAPTURE) || daemon_is_dead())
		return -1;
	*note = UNDECIDED;
	s->state = 0;
	s->nexthop = 0;
	s->in.rule = 0;
	s->out.rule = 0;
	s->in.action = ACTION_PASS;
	s->out.action = ACTION_PASS;
	c->head.ifindex = ifindex;
	c->head.direction = out ? DIRECTION_OUT : DIRECTION_IN;
	bare = parse_is_bare(ctx, i);
	capture_load(ctx, c, bare, HOOK_IS_XDP ? i->front : 0);
	capture_headers(ctx, c, bare, HOOK_IS_XDP ? i->front : 0);
	capture_parse(ctx, c, 0);
	return 0;
}

/* Finds the state of a packet that took the fast path, which leaves no trace in the
 * scratch. */
__noinline int capture_state(const struct tuple *t)
{
	struct scratch *s = scratch_get();
	__u32 number = 0;

	if (s && t && lookup_state(t, &number))
		s->state = number;
	return 0;
}

static __always_inline __u32 capture_rule(const struct scratch *s, const struct state *st, __u32 why, int out)
{
	if (why == REASON_BLOCK || why == REASON_UNLOADED)
		return s->out.action == ACTION_BLOCK ? s->out.rule : s->in.rule;
	if (st)
		return st->rule_in && !out ? st->rule_in : st->rule_out;
	return s->in.rule && !out ? s->in.rule : s->out.rule;
}

static __always_inline __u8 capture_verdict(int action, int out)
{
	if (action == HOOK_DROP)
		return VERDICT_DROP;
	if (action != HOOK_PASS)
		return VERDICT_REDIRECT;
	return out ? VERDICT_PASS : VERDICT_UP;
}

/* Returns the interface that a redirected packet leaves by; front: the bytes of tags
 * that were added. */
static __always_inline __u32 capture_peer(const struct scratch *s, const struct state *st, __u32 why, __u32 ifindex,
					  __u32 *front)
{
	__u32 n = st ? state_course((struct state *)st, STATE_DIRECTION(s->state))->nexthop : s->nexthop;

	if (why > REASON_LAST_PASS)
		return ifindex; /* a reject, to the sender */
	if (n < NEXTHOP_FIRST)
		return 0;
	*front = HOOK_IS_XDP ? nexthop_get(n)->encap.length : 0;
	return nexthop_get(n)->ifindex;
}

/* Writes what came and what leaves, if a reader wants it. */
__noinline int capture_after(hook_ctx *ctx, int action, int out)
{
	struct capture *c = capture_get();
	struct scratch *s = scratch_get();
	const struct interface *i, *o;
	const struct state *st;
	__u32 *note = count_noted_get(), why, peer = 0, readers, front;
	int bare;

	if (!c || !s || !note || *note >= UNDECIDED)
		return 0; /* nothing was decided here */
	why = *note;
	i = interface_get(c->head.ifindex);
	st = s->state ? state_get(STATE_INDEX(s->state)) : 0;
	if (!i)
		return 0;
	front = HOOK_IS_XDP ? i->front : 0;
	if (capture_verdict(action, out) == VERDICT_REDIRECT)
		peer = capture_peer(s, st, why, c->head.ifindex, &front);
	o = interface_get(peer);
	/* a packet without Ethernet header has got one if the device needs it */
	bare = c->bare && !(peer && o && !(o->flags & INTERFACE_L3));
	capture_headers(ctx, c, bare, front);
	capture_parse(ctx, c, 1);
	readers = capture_readers(c, peer);
	if (!readers)
		return 0;
	c->head.readers = readers;
	c->head.kind = RECORD_BEFORE;
	c->head.family = c->before.family;
	c->head.state = STATE_INDEX(s->state);
	c->head.rule = 0;
	c->head.reason = 0;
	c->head.verdict = 0;
	c->head.peer_ifindex = 0;
	capture_write(c);
	capture_load(ctx, c, bare, front);
	c->head.kind = RECORD_AFTER;
	c->head.family = c->after.family;
	c->head.rule = capture_rule(s, st, why, out);
	c->head.reason = why;
	c->head.verdict = capture_verdict(action, out);
	c->head.peer_ifindex = why == REASON_QUEUE ? s->ask.class | s->ask.why << RECORD_WHY : peer;
	capture_write(c);
	return 0;
}

#endif
