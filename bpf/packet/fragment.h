/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Fragments. The first one meets state and rules like any packet. It is
 * remembered only after it passed; the others follow it. What overlaps is dropped, as
 * the end would otherwise see another packet than the rules did (RFC 1858, RFC 5722).
 */
#ifndef WEIR_PACKET_FRAGMENT_H
#define WEIR_PACKET_FRAGMENT_H

#include "path/scratch.h"
#include "state/bound.h"
#include "state/lookup.h"

/* The fragments of one packet. kept; LRU: a lost entry costs one packet. */
struct fragment_key {
	struct addr src;
	struct addr dst;
	__u32 id;
	__u8 proto;
	__u8 family; /* | FRAGMENT_EGRESS: the box's own packet */
	__u16 zone;
};

#define FRAGMENT_EGRESS 0x80
#define FRAGMENT_SCRUB  0x80000000u /* above all numbers of states */
#define FRAGMENT_RANGES 8
#define FRAGMENT_LAST	0x8000 /* above all ends: the range ends where the packet does */
struct fragment_entry {
	__u32 busy; /* a core works on it: fragments of one packet may spread over cores */
	__u32 state;   /* index << 1 | direction; without a state 0, or FRAGMENT_SCRUB and its word */
	__u32 path;    /* counted under, if state is 0			   */
	__u32 started; /* tick							   */
	__u32 mark;    /* that the first was routed by, if state is 0		   */
	struct out_mark out; /* with which it left, if state is 0		   */
	__u32 ifindex; /* of the interface that the first crossed		   */
	__u16 ranges;  /* number of ranges in use; 0: all of the packet has come	   */
	__u16 nexthop; /* that a rule has chosen, if state is 0; 0: none has	   */
	struct {
		__u16 start, end; /* in units of 8 bytes, without end; FRAGMENT_LAST: and no more */
	} range[FRAGMENT_RANGES];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct fragment_key);
	__type(value, struct fragment_entry);
} fragments SEC(".maps");

static __always_inline void fragment_key_fill(struct fragment_key *k, const struct packet *p)
{
	k->src = p->tuple.src;
	k->dst = p->tuple.dst;
	k->id = p->fragment_id;
	k->proto = p->family == 4 ? p->tuple.proto : 0; /* RFC 8200, 4.5: the id alone is enough */
	/* what comes in does not follow what the box has sent */
	k->family = p->family | (p->flags & PACKET_EGRESS ? FRAGMENT_EGRESS : 0);
	k->zone = p->tuple.zone;
}

static __always_inline int fragment_is_fresh(const struct fragment_entry *e)
{
	return e->ranges && shared.now - e->started < shared.timeout_frag;
}

/* Returns the end in units of 8 bytes, rounded up: only the last fragment may end
 * between two units. */
static __always_inline __u32 fragment_end(const struct packet *p)
{
	return (p->fragment_offset + p->fragment_length + 7) >> 3;
}

/* Remembers a first fragment that passes: under s->state, or without a state under
 * s->path. */
__noinline enum reason fragment_remember(struct scratch *s)
{
	struct fragment_entry fresh = {}, *e;
	struct fragment_key key;

	if (!s)
		return REASON_INTERNAL;
	fragment_key_fill(&key, &s->packet);
	e = bpf_map_lookup_elem(&fragments, &key);
	if (e && fragment_is_fresh(e))
		return REASON_FRAGMENT_OVERLAP;
	fresh.state = s->state;
	if (!s->state && s->packet.scrub)
		fresh.state = FRAGMENT_SCRUB | s->packet.scrub;
	fresh.path = s->path;
	fresh.mark = s->packet.mark;
	fresh.out = s->out_mark;
	fresh.nexthop = s->state || !s->chosen ? 0 : s->nexthop;
	fresh.ifindex = s->packet.ifindex;
	fresh.started = shared.now;
	fresh.ranges = 1;
	fresh.range[0].end = fragment_end(&s->packet);
	if (bpf_map_update_elem(&fragments, &key, &fresh, BPF_ANY))
		return REASON_FRAGMENT_MEMORY;
	return UNDECIDED;
}

/* LRU maps cannot hold a bpf_spin_lock. The holder needs about 50 ns. Others wait some
 * microseconds, then give the fragment up. */
#define FRAGMENT_LOCK_TRIES 1024

struct fragment_wait {
	struct fragment_entry *entry;
	__u32 held;
};

static long fragment_lock_step(__u32 n, void *data)
{
	struct fragment_wait *w = data;

	(void)n;
	w->held = !__sync_lock_test_and_set(&w->entry->busy, 1);
	return w->held;
}

static __always_inline int fragment_lock(struct fragment_entry *e)
{
	struct fragment_wait w = { .entry = e };

	bpf_loop(FRAGMENT_LOCK_TRIES, fragment_lock_step, &w, 0);
	return w.held;
}

/* The ranges that a fragment touches. */
struct fragment_search {
	const struct fragment_entry *entry;
	__u32 start;
	__u32 end;
	int before; /* the range that ends where it starts; -1: none */
	int after;  /* the range that starts where it ends; -1: none */
	int overlaps;
};

static long fragment_range(__u32 n, void *data)
{
	struct fragment_search *f = data;
	const struct fragment_entry *e = f->entry;

	if (n >= e->ranges || n >= FRAGMENT_RANGES)
		return 1;
	if (f->start < (e->range[n].end & ~FRAGMENT_LAST) && e->range[n].start < f->end) {
		f->overlaps = 1;
		return 1;
	}
	if ((e->range[n].end & ~FRAGMENT_LAST) == f->start)
		f->before = n;
	if (e->range[n].start == f->end)
		f->after = n;
	return 0;
}

/* Adds start..end to the ranges seen. last: FRAGMENT_LAST if the packet ends there, else 0. The
 * caller has locked the entry. */
static __always_inline enum reason fragment_add(struct fragment_entry *e, __u32 start, __u32 end, __u32 last)
{
	struct fragment_search f = { .entry = e, .start = start, .end = end, .before = -1, .after = -1 };
	int before, after;

	bpf_loop(FRAGMENT_RANGES, fragment_range, &f, 0);
	if (f.overlaps)
		return REASON_FRAGMENT_OVERLAP;
	before = f.before;
	after = f.after;
	if (before >= 0 && before < FRAGMENT_RANGES) {
		if (after < 0) {
			e->range[before].end = end | last;
			return UNDECIDED;
		}
		if (after >= FRAGMENT_RANGES)
			return REASON_INTERNAL;
		/* Closes the hole between two ranges: they become one. The index must be
		 * the number that was tested: before Linux 6.13 the verifier does not
		 * carry a bound from one to the other. */
		__u32 top = e->ranges - 1;
		if (top >= FRAGMENT_RANGES)
			return REASON_INTERNAL;
		e->range[before].end = e->range[after].end;
		e->range[after] = e->range[top];
		e->ranges = top;
		return UNDECIDED;
	}
	if (after >= 0 && after < FRAGMENT_RANGES) {
		e->range[after].start = start;
		return UNDECIDED;
	}
	if (e->ranges >= FRAGMENT_RANGES)
		return REASON_FRAGMENT_MEMORY;
	e->range[e->ranges].start = start;
	e->range[e->ranges].end = end | last;
	e->ranges++;
	return UNDECIDED;
}

/* Whether the first fragment's state still belongs to the same connection. */
static __always_inline int fragment_has_state(const struct scratch *s, const struct fragment_entry *e)
{
	struct state *st = state_get(STATE_INDEX(e->state));
	const struct tuple *t, *p = &s->packet.tuple;

	if (!st || st->status != STATUS_LIVE || state_expired(st, STATE_DIRECTION(e->state)))
		return 0;
	t = &state_course(st, STATE_DIRECTION(e->state))->tuple;
	return addr_equal(&t->src, &p->src) && addr_equal(&t->dst, &p->dst) && t->zone == p->zone &&
	       (__s32)(e->started - st->created) >= 0;
}

/* Whether a later fragment may cross where it does. At another interface than the first one
 * a bound state takes it only if it takes all packets there: no rule decides about it. */
static __always_inline int fragment_fits(const struct scratch *s, const struct fragment_entry *e)
{
	const struct state *st = states_bound ? state_get(STATE_INDEX(e->state)) : 0;
	const struct packet *p = &s->packet;

	return !st || e->ifindex == p->ifindex || bound_fits(st, e->state, !(p->flags & PACKET_EGRESS), p->ifindex);
}

/* Finds the first fragment of a later one; sets s->state and s->path, and without a state
 * packet.scrub. Returns REASON_FRAGMENT_HELD if the first has not come. */
__noinline enum reason fragment_follow(struct scratch *s)
{
	struct fragment_entry *e;
	struct fragment_key key;
	enum reason r;
	__u32 start, end, last, number;

	if (!s)
		return REASON_INTERNAL;
	fragment_key_fill(&key, &s->packet);
	e = bpf_map_lookup_elem(&fragments, &key);
	if (!e || !fragment_is_fresh(e))
		return REASON_FRAGMENT_HELD;
	number = e->state;
	if (number & FRAGMENT_SCRUB) {
		s->packet.scrub = number & ~FRAGMENT_SCRUB;
		number = 0;
	}
	if (number && !fragment_has_state(s, e))
		return REASON_FRAGMENT_ORPHAN;
	if (number && !fragment_fits(s, e))
		return REASON_STATE_MISMATCH;
	start = s->packet.fragment_offset >> 3;
	end = fragment_end(&s->packet);
	last = s->packet.flags & PACKET_MORE ? 0 : FRAGMENT_LAST;
	s->state = number;
	s->path = e->path;
	if (!number) {
		s->packet.mark = e->mark;
		s->out_mark = e->out;
		s->nexthop = e->nexthop;
	}
	if (!fragment_lock(e))
		return REASON_STATE_BUSY;
	/* Another core may have got the last fragment before the lock. Then none is missing. */
	r = e->ranges ? fragment_add(e, start, end, last) : REASON_FRAGMENT_ORPHAN;
	/* The sender may use the id again. range[0] is that of the first fragment. */
	if (r == UNDECIDED && e->ranges == 1 && e->range[0].end & FRAGMENT_LAST)
		e->ranges = 0;
	__sync_lock_test_and_set(&e->busy, 0);
	return r;
}

#endif
