/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Limits of rules and of their sources: max, max-src-nodes, max-src-states, max-src-conn,
 * max-src-conn-rate, overload; the rule's own timeouts. docs/packet-path.md, step 6.
 *
 * A rule that has any holds a number, which leads to its struct limit. A state holds the
 * number of each of its two rules. So it finds what counts it when it ends, even if the
 * rules have been replaced. The numbers outlive a reload: a rule that is in the new rules
 * too keeps its number, and no number is given to another rule while anything counts
 * under it (internal/fw/dataplane/limit.go).
 */
#ifndef WEIR_STATE_LIMIT_H
#define WEIR_STATE_LIMIT_H

#include "state/limit_map.h"
#include "state/limiter.h"
#include "state/source.h"

/* Bits of limit.flags. */
#define LIMIT_TRACK    0x01 /* the rule's sources are tracked			 */
#define LIMIT_BY_RULE  0x02 /* apart from those of other rules			 */
#define LIMIT_OVERLOAD 0x04 /* a source with too many connections is kept out until the
			     * daemon has put it into the overload table */

#define LIMIT_SLOPPY   0x08 /* TCP's sequence numbers are not tested		 */

/* state_limits(): the number for the in crossing's rule and that for the out crossing's,
 * and for each whether the state counts as a connection. */
_Static_assert(STATE_OUT == STATE_IN << 1 && STATE_EVALUATE_OUT == STATE_EVALUATE_IN << 1, "limit_timeout()");
#define LIMITS_SHIFT 14
#define LIMITS_MASK  (MAX_LIMITS - 1)
#define LIMITS_CONN  (1U << 2 * LIMITS_SHIFT)
#define LIMITS_SLOPPY (LIMITS_CONN << 2) /* all of its rules that keep state are sloppy */
#define LIMITS_LIMITERS (LIMITS_CONN << 3) /* limited[] has its limiters */
_Static_assert(MAX_LIMITS == 1 << LIMITS_SHIFT, "two numbers and four bits fit into a word");

/* Returns the number for a side: 0 in, 1 out. */
static __always_inline __u32 limits_number(__u32 word, __u32 side)
{
	return word >> side * LIMITS_SHIFT & LIMITS_MASK;
}

/* Returns the number that a state counts under by a side; 0: none. If both crossings have
 * one rule, it counts once. */
static __always_inline __u32 limits_counted(__u32 word, __u32 side)
{
	__u32 number = limits_number(word, side);

	return side && number == limits_number(word, 0) ? 0 : number;
}

/* Returns by how much adaptive timeouts are scaled, in 1024ths. */
static __always_inline __u32 limit_part(__u32 states, __u32 start, __u32 end)
{
	if (end <= start || states <= start)
		return 1024;
	return states >= end ? 0 : (__u64)(end - states) * 1024 / (end - start);
}

/* Returns the timeout of a phase by a rule; l: its limits. */
static __always_inline __u32 limit_side_timeout(const struct limit *l, __u32 phase)
{
	__u32 timeout = l->timeout[phase] ? : shared.timeout_set[phase], part = shared.timeout_part;

	if (l->adaptive_start)
		part = limit_part(l->states, l->adaptive_start, l->adaptive_end);
	return (__u64)timeout * part / 1024;
}

/* A state ends by the shorter timeout of its two rules: pf has a state for each. */
__noinline __u32 limit_timeout(const struct state *st)
{
	__u32 side, timeout = ~0U, one, phase;
	const struct limit *l;

	if (!st)
		return 0;
	phase = st->phase;
	asm volatile("" : "+r"(phase)); /* it is read once: the bound holds below */
	if (phase >= PHASE_COUNT)
		return 0;
	for (side = 0; side < 2; side++) {
		if ((st->flags >> side & (STATE_IN | STATE_EVALUATE_IN)) != STATE_IN)
			continue;
		l = limit_get(limits_number(*state_limits(st), side));
		one = l ? limit_side_timeout(l, phase) : shared.timeout[phase];
		if (one < timeout)
			timeout = one;
	}
	return timeout == ~0U ? shared.timeout[phase] : timeout;
}

/* A state that is about to count, and what it is to count under. */
struct limit_entry {
	struct source_key source; /* its limit is filled in here */
	__u32 numbers;		  /* by these limits: as state_limits() */
	__u32 forced;		  /* 1: it counts even beyond a limit, because it is there already */
	__u32 word;		  /* result: those by which it counts now */
	__u32 kept;		  /* bit n: side n keeps state */
	__u32 limiters;		  /* and by these limiters, as ids: byte 0 the state limiter of side 0, byte 1
				   * its source limiter, then those of side 1; 0: none */
	__u32 limiting;		  /* result: those by which it counts now */
	struct source_key limited; /* of a source limiter */
	__u32 unmade;		  /* 1: the state is not made after all: its tokens come back */
};

/* The rate of a source that has opened no connection. */
static __always_inline __u64 limit_rate_start(void)
{
	return (__u64)(shared.now / TICKS_PER_SECOND) << 32;
}

/* Makes a source with one state, if the rule may have one more. */
static __always_inline enum reason limit_make_source(const struct source_key *key, struct limit *l, __u32 forced)
{
	enum reason r;

	if (!key->limit)
		return source_make(key, limit_rate_start());
	if (__sync_fetch_and_add(&l->nodes, 1) >= l->max_nodes && l->max_nodes && !forced)
		r = REASON_MAX_SRC_NODES;
	else
		r = source_make(key, limit_rate_start());
	if (r != UNDECIDED)
		__sync_fetch_and_add(&l->nodes, -1);
	return r;
}

/* Counts a state of the source. Returns UNDECIDED; REASON_STATE_BUSY: another core makes
 * or removes the source right now; else why the source may not have one more. */
__noinline enum reason limit_join_source(const struct source_key *key, struct limit *l, __u32 forced)
{
	enum reason r = UNDECIDED;
	struct source *s;
	__u32 states;

	if (!key || !l)
		return REASON_INTERNAL;
	s = source_find(key);
	if (!s)
		return limit_make_source(key, l, forced);
	states = __sync_fetch_and_add(&s->states, 1);
	if (states & SOURCE_GONE)
		r = REASON_STATE_BUSY;
	else if (forced)
		return UNDECIDED;
	else if (l->max_states && states >= l->max_states)
		r = REASON_MAX_SRC_STATES;
	else if (s->over)
		r = REASON_OVERLOAD;
	if (r != UNDECIDED)
		__sync_fetch_and_add(&s->states, -1);
	return r;
}

/* A state of the source ends, or is not made after all. */
static __always_inline void limit_leave_source(const struct source_key *key, const struct limit *l, __u32 connection)
{
	struct source *s = source_find(key);
	__u32 expires = shared.now + l->keep;

	if (!s)
		return;
	if (connection)
		__sync_fetch_and_add(&s->connections, -1);
	if ((__s32)(expires - s->expires) > 0) /* another rule may keep it longer */
		s->expires = expires;
	__sync_fetch_and_add(&s->states, -1);
}

static __always_inline __u32 limit_source(const struct limit *l, __u32 number)
{
	return l->flags & LIMIT_BY_RULE ? number : 0;
}

/* Counts a state under a side's number. Returns UNDECIDED, or why it may not be made. */
static __always_inline enum reason limit_enter_side(struct limit_entry *e, __u32 side)
{
	__u32 number = limits_number(e->numbers, side), i;
	struct limit *l = limit_get(number);
	enum reason r = UNDECIDED;

	if (!l)
		return UNDECIDED;
	if (side && number == limits_number(e->word, 0)) {
		e->word |= number << LIMITS_SHIFT;
		return UNDECIDED;
	}
	e->source.limit = limit_source(l, number);
	if (l->flags & LIMIT_TRACK) {
		r = REASON_STATE_BUSY;
		for (i = 0; i < SOURCE_TRIES && r == REASON_STATE_BUSY; i++)
			r = limit_join_source(&e->source, l, e->forced);
		if (r != UNDECIDED)
			return r;
	}
	if (__sync_fetch_and_add(&l->states, 1) >= l->max && l->max && !e->forced) {
		__sync_fetch_and_add(&l->states, -1);
		if (l->flags & LIMIT_TRACK)
			limit_leave_source(&e->source, l, 0);
		return REASON_MAX_STATES;
	}
	e->word |= number << side * LIMITS_SHIFT;
	return UNDECIDED;
}

/* Whether a state's TCP sequence numbers are not tested. */
static __always_inline int limits_are_sloppy(const struct state *st)
{
	return *state_limits(st) & LIMITS_SLOPPY;
}

/* Counts a packet of direction 0 under the max-pkt-rate of the rules that keep state.
 * Returns UNDECIDED, or why the packet is dropped. As in pf, where a forwarded connection has
 * two states, a packet counts for each crossing, also if one rule decided both. */
__noinline enum reason limit_packets(const struct state *st)
{
	const struct limit *l;
	__u32 side, number;

	if (!st)
		return REASON_INTERNAL;
	for (side = 0; side < 2; side++) {
		number = limits_number(*state_limits(st), side);
		l = limit_get(number);
		if (l && l->pkt_rate && !limit_packet(number))
			return REASON_MAX_PKT_RATE;
	}
	return UNDECIDED;
}

/* The same for a packet of any state and direction. */
static __always_inline enum reason limit_rate(const struct state *st, __u32 d)
{
	return !d && st->flags & STATE_LOG && *state_limits(st) ? limit_packets(st) : UNDECIDED;
}

/* Takes a state back from its limiters. */
__noinline int limit_leave_limiters(struct limit_entry *e)
{
	__u32 at, id;

	if (!e)
		return 0;
	for (at = 0; at < 4; at++) {
		id = e->limiting >> at * 8 & 0xff;
		if (!id)
			continue;
		if (at & 1) {
			limiter_key(&e->limited, id, &e->source.addr, e->source.zone);
			limiter_leave_source(&e->limited, e->unmade);
		} else {
			limiter_leave(id, e->unmade);
		}
	}
	e->limiting = 0;
	return 0;
}

/* Takes a state back from what e->word and e->limiting say that it counts under. */
__noinline int limit_leave(struct limit_entry *e)
{
	struct limit *l;
	__u32 side, number;

	if (!e)
		return 0;
	if (e->limiting)
		limit_leave_limiters(e);
	for (side = 0; side < 2; side++) {
		number = limits_counted(e->word, side);
		l = limit_get(number);
		if (!l)
			continue;
		e->source.limit = limit_source(l, number);
		if (l->flags & LIMIT_TRACK)
			limit_leave_source(&e->source, l, e->word & LIMITS_CONN << side);
		__sync_fetch_and_add(&l->states, -1);
	}
	e->word = 0;
	return 0;
}

/* Counts a state under the limiter at a byte of e->limiters. If both crossings have one
 * limiter, it counts once. Returns UNDECIDED, or why it may not be made. */
static __always_inline enum reason limit_enter_limiter(struct limit_entry *e, __u32 at)
{
	__u32 id = e->limiters >> at * 8 & 0xff, i;
	enum reason r = REASON_STATE_BUSY;

	if (!id || (at >= 2 && id == (e->limiting >> (at - 2) * 8 & 0xff)))
		return UNDECIDED;
	if (at & 1) {
		limiter_key(&e->limited, id, &e->source.addr, e->source.zone);
		for (i = 0; i < SOURCE_TRIES && r == REASON_STATE_BUSY; i++)
			r = limiter_join_source(&e->limited, e->forced);
	} else {
		r = limiter_join(id, e->forced);
	}
	if (r == UNDECIDED)
		e->limiting |= id << at * 8;
	return r;
}

/* The same for all of them, until one has no room. */
__noinline enum reason limit_enter_limiters(struct limit_entry *e)
{
	enum reason r = UNDECIDED;
	__u32 at;

	if (!e)
		return REASON_INTERNAL;
	for (at = 0; at < 4 && r == UNDECIDED; at++)
		r = limit_enter_limiter(e, at);
	if (e->limiting)
		e->word |= LIMITS_LIMITERS;
	return r;
}

/* Returns LIMITS_SLOPPY if all sides that keep state are sloppy. */
static __always_inline __u32 limit_sloppy(const struct limit_entry *e)
{
	const struct limit *l;
	__u32 side;

	for (side = 0; side < 2; side++) {
		if (!(e->kept >> side & 1))
			continue;
		l = limit_get(limits_number(e->numbers, side));
		if (!l || !(l->flags & LIMIT_SLOPPY))
			return 0;
	}
	return LIMITS_SLOPPY;
}

/* Counts a state under its rules. Returns UNDECIDED, or why it may not be made; then it
 * counts nowhere. */
__noinline enum reason limit_enter(struct limit_entry *e)
{
	enum reason r;

	if (!e)
		return REASON_INTERNAL;
	e->word = 0;
	e->limiting = 0;
	e->unmade = 1;
	r = limit_enter_side(e, 0);
	if (r == UNDECIDED)
		r = limit_enter_side(e, 1);
	if (r != UNDECIDED)
		limit_leave(e);
	else
		e->word |= limit_sloppy(e);
	return r;
}

/* Counts a state that comes from elsewhere as it counted there. If there is no room for its
 * source, it no longer counts. */
static __always_inline __u32 limit_import(struct limit_entry *e, const struct state *from, __u32 word, __u32 limiters,
						__u32 index)
{
	struct limited *kept = limited_get(index);
	struct source *s;
	__u32 side;

	e->source.addr = from->forth.tuple.src;
	e->source.zone = from->forth.tuple.zone;
	e->numbers = word;
	e->forced = 1;
	for (side = 0; side < 2; side++) {
		if (limit_enter_side(e, side) != UNDECIDED || !(word & LIMITS_CONN << side))
			continue;
		s = source_find(&e->source);
		if (!s || !limits_counted(e->word, side))
			continue;
		__sync_fetch_and_add(&s->connections, 1);
		e->word |= LIMITS_CONN << side;
	}
	e->word |= word & LIMITS_SLOPPY;
	if (word & LIMITS_LIMITERS && kept) {
		e->limiters = limiters;
		limit_enter_limiters(e);
		kept->limiters = e->limiting;
	}
	return e->word;
}

/* Takes a state back from all that it counts under. */
static __always_inline void limit_release(struct state *st, __u32 index)
{
	const struct limited *kept = limited_get(index);
	struct limit_entry e = {};

	e.source.addr = st->forth.tuple.src;
	e.source.zone = st->forth.tuple.zone;
	e.word = *state_limits(st);
	if (e.word & LIMITS_LIMITERS && kept)
		e.limiting = kept->limiters;
	*state_limits(st) = 0;
	limit_leave(&e);
}

/* Notes that the state is a connection from now on. Returns UNDECIDED, or by which limit
 * its source has too many. */
__noinline enum reason limit_connect_side(struct state *st, __u32 side)
{
	struct source_key key = {};
	__u32 word, number, connections;
	enum reason r = UNDECIDED;
	struct source *s;
	struct limit *l;

	if (!st)
		return REASON_INTERNAL;
	word = *state_limits(st);
	number = limits_counted(word, side);
	l = limit_get(number);
	if (!l || !(l->flags & LIMIT_TRACK) || word & LIMITS_CONN << side)
		return UNDECIDED;
	if (__sync_fetch_and_or(state_limits(st), LIMITS_CONN << side) & LIMITS_CONN << side)
		return UNDECIDED;
	key.addr = st->forth.tuple.src;
	key.zone = st->forth.tuple.zone;
	key.limit = limit_source(l, number);
	s = source_find(&key);
	if (!s)
		return REASON_INTERNAL; /* it has a state */
	connections = __sync_fetch_and_add(&s->connections, 1) + 1;
	if (l->rate && rate_add(&s->rate, l->seconds) > l->rate * 1000ULL)
		r = REASON_MAX_SRC_RATE;
	if (l->max_conn && connections > l->max_conn)
		r = REASON_MAX_SRC_CONN;
	if (r != UNDECIDED && l->flags & LIMIT_OVERLOAD) {
		s->over = 1;
		__sync_fetch_and_add(&shared.overloads, 1);
	}
	return r;
}

/*
 * The handshake of a state is complete: it counts as a connection of its source. Returns
 * UNDECIDED, or why the state has ended: its source has too many. A hint of it stays until
 * the garbage collection, and leads its packets to a drop. This is where they belong.
 */
__noinline int limit_connect(struct state *st)
{
	enum reason in, out;

	if (!st)
		return REASON_INTERNAL;
	in = limit_connect_side(st, 0);
	out = limit_connect_side(st, 1);
	if (in == UNDECIDED && out == UNDECIDED)
		return UNDECIDED;
	__sync_val_compare_and_swap(&st->status, STATUS_LIVE, STATUS_DEAD);
	return in != UNDECIDED ? in : out;
}

#endif
