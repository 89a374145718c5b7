/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Hints: four bytes for each state. A hint says that the state at its index has a first
 * tuple of this tag, that packets of direction 0 need only what a second pass does, and
 * which next hop they go to. The first pass (path/prefetch.h) sends a packet on by the
 * hint alone.
 *
 * A packet of direction 0 makes the hint. It is taken back by the packet that gives the
 * state a short timeout, and by whoever ends the state. The garbage collection takes it
 * back so early that the state cannot expire before its next visit. All hints are void
 * when a route changes or timeouts are set anew.
 *
 * A tuple has the tag of another's hint once in 2^24 times, and is compared with up to
 * HINT_PROBES of them. The second pass detects this and drops the packet, because it
 * cannot go back. It breaks the hint for as long as the state lives, so this happens
 * once.
 */
#ifndef WEIR_STATE_HINT_H
#define WEIR_STATE_HINT_H

#include "shared.h"
#include "state/bound.h"
#include "state/home.h"

/* kept; the hints of states, a cache line of them together: state n is word n % HINTS of
 * value n / HINTS. */
#define HINTS 16
struct hints {
	__u32 word[HINTS];
};
_Static_assert(sizeof(struct hints) == 64, "hints of a cache line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* by the loader */
	__type(key, __u32);
	__type(value, struct hints);
} hints SEC(".maps");

#define HINT_TARGET (HINTED - 1) /* the bits of a hint that are the index into shared.hinted */
#define HINT_TAG    (~(__u32)HINT_TARGET)
#define HINT_NONE   0
#define HINT_BROKEN HINTED /* belongs to no next hop, because none has the target 0 */

/* Returns how many ticks before its end a state loses its hint. */
static __always_inline __u32 hint_margin(void)
{
	__u32 pass = state_capacity / GC_SLICE;

	/* runs of the garbage collection take time, too */
	return GC_REVISIT + pass + pass / 4 + TICKS_PER_SECOND;
}

/* Returns the hint for a tuple with this hash and a next hop that was found under this
 * generation of routes. bound: the interface that its packets come in by; 0: any. */
static __always_inline __u32 hint_word(__u64 hash, __u16 nexthop, __u32 generation, __u32 bound)
{
	__u32 tag = (__u32)hash ^ nexthop * 0x9e3779b1u ^ generation * 0x85ebca6bu ^ bound * 0xc2b2ae35u;

	return (tag & HINT_TAG) | (nexthop & HINT_TARGET);
}

static __always_inline __u32 *hint_at(__u32 index)
{
	__u32 key = index / HINTS;
	struct hints *p = bpf_map_lookup_elem(&hints, &key);

	return p ? &p->word[index % HINTS] : 0;
}

/* Writes a hint. A line that does not change is not written, because other cores read
 * it. */
static __always_inline void hint_write(__u32 index, __u32 word)
{
	__u32 *p = hint_at(index);

	if (p && *(volatile __u32 *)p != word)
		*(volatile __u32 *)p = word;
}

static __always_inline void hint_withdraw(__u32 index)
{
	hint_write(index, HINT_NONE);
}

/* Takes the hint of a live state back. A broken hint stays broken. */
static __always_inline void hint_withdraw_live(__u32 index)
{
	__u32 *p = hint_at(index);

	if (p && *(volatile __u32 *)p != HINT_BROKEN)
		hint_write(index, HINT_NONE);
}

/* Lets hints name the next hop; false if they name another one that is in use. A hint
 * that named the other is void then, because its tag contains the other's number. */
static __always_inline int hint_target(__u16 nexthop)
{
	__u16 *at = &shared.hinted[nexthop & HINT_TARGET], other = *(volatile __u16 *)at;
	const struct nexthop *n = &shared.nexthops[other & (MAX_NEXTHOPS - 1)];

	if (other == nexthop)
		return 1;
	if (!(nexthop & HINT_TARGET) || (other && shared.now - n->checked < 2 * NEXTHOP_FRESH))
		return 0;
	*(volatile __u16 *)at = nexthop;
	return 1;
}

/* Whether incoming packets of direction 0 need only what a second pass can do. */
static __always_inline int hint_is_plain(const struct state *s)
{
	return (s->flags & (STATE_IN | STATE_EVALUATE_IN | STATE_EVALUATE_OUT | STATE_LOG)) == STATE_IN && s->entered & KEPT_ENTERED &&
	       !state_changes_family(s);
}

/* Whether a state cannot expire before the garbage collection has taken its hint back. */
static __always_inline int hint_is_lasting(const struct state *s)
{
	if (s->phase <= PHASE_TCP_CLOSED && s->phase != PHASE_TCP_ESTABLISHED)
		return 0; /* a second pass cannot answer a segment that does not fit a handshake */
	/* new settings take effect a tick later */
	return s->phase < PHASE_COUNT && shared.timeout[s->phase] > hint_margin() &&
	       shared.timeout_set[s->phase] > hint_margin();
}

/* A packet of either direction has changed the state: the next packet of direction 0 may
 * now take two passes, or may no longer. This is a global function because its callers'
 * stacks are full. */
__noinline int hint_renew(__u32 number)
{
	__u32 generation = *(volatile __u32 *)&shared.route_generation;
	__u32 index = STATE_INDEX(number), word = HINT_NONE, *p;
	const struct state *s = state_get(index);
	const struct course *c;

	if (!s)
		return 0;
	c = &s->forth;
	if (hint_is_plain(s) && hint_is_lasting(s)) {
		if (STATE_DIRECTION(number))
			return 0;
		if (c->nexthop >= NEXTHOP_FIRST && c->nexthop_generation == (__u16)generation &&
		    hint_target(c->nexthop))
			word = hint_word(tuple_hash(&c->tuple), c->nexthop, generation, bound_hint(s, index));
	}
	p = hint_at(index);
	if (p && *(volatile __u32 *)p != HINT_BROKEN)
		hint_write(index, word);
	return 0;
}

/* Returns the index of the state that has a hint for the hash of a packet's tuple, and the
 * next hop; 0: none. ifindex: the interface that the packet came in by. */
static __always_inline __u32 hint_find(__u64 hash, __u32 ifindex, __u16 *nexthop)
{
	__u32 generation = shared.route_generation;
	__u32 home = state_home(hash), i, *p, word;

	for (i = 0; i < HINT_PROBES; i++) {
		p = hint_at(home + i);
		if (!p)
			return 0;
		word = *(volatile __u32 *)p;
		*nexthop = *(volatile __u16 *)&shared.hinted[word & HINT_TARGET];
		if (word && *nexthop &&
		    (word == hint_word(hash, *nexthop, generation, 0) ||
		     (states_bound && word == hint_word(hash, *nexthop, generation, ifindex))))
			return home + i;
	}
	return 0;
}

#endif
