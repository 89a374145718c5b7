/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the timer does with one connection's counter: it counts what was sent, drains what was
 * given, judges bursts, and says how much may be sent next. queue/drain.h has the method. */
#ifndef WEIR_QUEUE_BACKLOG_H
#define WEIR_QUEUE_BACKLOG_H

#include "queue/queue.h"

static __always_inline __u64 queue_least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 queue_most(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Finds the node of a counter's host, or makes it. Returns its index. */
static __always_inline __u32 queue_host_of(const struct queue_counter *q, const struct queue_class *c, __u32 ms)
{
	__u32 slot = queue_slot(q->host, queue_host_slots), way, free = queue_host_slots + q->class;
	struct queue_host *h;

	for (way = 0; way < QUEUE_WAYS; way++) {
		h = queue_host_get(slot + way);
		if (!h)
			break;
		if (h->key == q->host)
			return slot + way;
		if (!h->counters && ms - h->last >= QUEUE_HOST_IDLE && free >= queue_host_slots)
			free = slot + way;
	}
	h = queue_host_get(free);
	if (h && free < queue_host_slots) {
		__builtin_memset(h, 0, sizeof(*h));
		h->level = c->level;
		h->key = q->host;
	}
	return free;
}

/* Moves a smoothed level towards a sample, by the milliseconds that it stands for. */
static __always_inline __u64 queue_smooth(__u64 level, __u64 sample, __u64 ms)
{
	ms = queue_least(ms ? : 1, 64);
	return level - (level * ms >> 6) + (sample * ms >> 6);
}

/* Gives a host what its class has given since its last update. */
static __always_inline void queue_host_serve(struct queue_host *h, const struct queue_class *c, const struct queue_run *r)
{
	__u64 given = c->virtual - h->served, level = c->most;
	__u16 ticks = r->tick - h->tick;

	if (!ticks)
		return;
	h->tick = r->tick;
	h->served = c->virtual;
	if (h->backlogged) {
		given += h->rest;
		h->virtual += given / h->backlogged;
		h->rest = given % h->backlogged;
	}
	if (c->hungry)
		level = queue_least(c->step / (h->backlogged ? : 1), level);
	h->level = queue_smooth(h->level, level, ticks * r->us / 1000);
}

static __always_inline struct queue_class *queue_root(const struct queue_class *c)
{
	return queue_class_get(queue_shaper_get(c->shaper)->first);
}

static __always_inline void queue_need_begins(struct queue_counter *q, struct queue_host *h, struct queue_class *c)
{
	struct queue_class *root = queue_root(c);

	if (root) {
		root->tree++;
		root->busy_leaves += !c->counters;
	}
	q->served = h->virtual;
	c->counters++;
	if (h->backlogged++)
		return;
	h->served = c->virtual;
	h->rest = 0;
	c->hosts++;
}

static __always_inline void queue_need_ends(struct queue_host *h, struct queue_class *c)
{
	struct queue_class *root = queue_root(c);

	c->counters--;
	if (root) {
		root->tree--;
		root->busy_leaves -= !c->counters;
	}
	if (!--h->backlogged)
		c->hosts--;
}

/* Sets what a counter has to be rid of. */
static __always_inline void queue_set_need(struct queue_counter *q, struct queue_host *h, struct queue_class *c, __u64 need)
{
	need = queue_least(need, 1u << 31);
	if (need && !q->need)
		queue_need_begins(q, h, c);
	else if (!need && q->need)
		queue_need_ends(h, c);
	c->backlog += need - q->need;
	q->need = need;
}

/* What a young counter owes counts at its host, its class and its tree, too. */
static __always_inline void queue_owe(struct queue_host *h, struct queue_class *c, __u64 bytes)
{
	struct queue_class *root = queue_root(c);

	h->owed += bytes;
	c->owed += bytes;
	if (root && root != c)
		root->owed += bytes;
}

static __always_inline void queue_pay(struct queue_host *h, struct queue_class *c, __u64 bytes)
{
	struct queue_class *root = queue_root(c);

	h->owed -= queue_least(bytes, h->owed);
	c->owed -= queue_least(bytes, c->owed);
	if (root && root != c)
		root->owed -= queue_least(bytes, root->owed);
}

/* What a young counter owes counts no more. */
static __always_inline void queue_grow_up(struct queue_counter *q, struct queue_host *h, struct queue_class *c)
{
	if (!q->young)
		return;
	q->young = 0;
	queue_pay(h, c, q->size - q->magic);
}

/* Takes bytes off a counter: first those that were sent. */
static __always_inline void queue_counter_take(struct queue_counter *q, struct queue_host *h, struct queue_class *c, __u64 bytes)
{
	__u64 paid = queue_least(bytes, q->size - q->magic);

	q->size -= bytes;
	q->magic -= bytes - paid;
	if (q->young)
		queue_pay(h, c, paid);
}

/* Drains what the host has given the counter. A lazy one gets rid of magic by what nobody needs. */
static __always_inline void queue_counter_serve(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
						const struct queue_run *r)
{
	const struct queue_class *root;
	__u64 given, used;

	if (q->need) {
		given = (h->virtual - q->served) >> QUEUE_FINE;
		q->served += given << QUEUE_FINE;
		used = queue_least(given, q->need);
		c->credit += (given - used) << QUEUE_FINE;
		queue_counter_take(q, h, c, used);
		queue_set_need(q, h, c, q->need - used);
	}
	if (!q->lazy)
		return;
	root = queue_root(c);
	if (!root)
		return;
	/* the class may be held to less than the line has: so what was sent is not paid for by that */
	given = queue_least(queue_least(root->idle >> QUEUE_FINE, q->rate * r->us / 1000), q->magic);
	q->size -= given;
	q->magic -= given;
}

/* Counts what the connection has sent. */
static __always_inline __u64 queue_counter_count(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
						 __u32 ms)
{
	__u64 sent = *(volatile __u64 *)&q->sent, more = sent - q->seen, bytes = QUEUE_BYTES(more);

	if (!more)
		return 0;
	q->seen = sent;
	q->last = ms;
	c->sent += bytes;
	c->packets += more >> 44;
	q->size += bytes;
	q->window = queue_least((__u64)q->window + bytes, ~0u);
	if (q->young)
		queue_owe(h, c, bytes);
	return bytes;
}

/* Sets what the counter needs: to be rid of what was sent, and of so much magic that it has
 * room for a window. Beyond that, up to QUEUE_EARNED windows, it is lazy. */
static __always_inline void queue_counter_need(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
					       __u64 window)
{
	__u64 need = q->size - q->magic, room = q->size < c->depth ? c->depth - q->size : 0;
	struct queue_class *root;
	__u8 lazy;

	if (q->magic && room < window)
		need = queue_most(need, queue_least(window - room, q->size));
	queue_set_need(q, h, c, need);
	lazy = q->magic && room >= window && room < QUEUE_EARNED * window;
	if (lazy == q->lazy)
		return;
	q->lazy = lazy;
	root = queue_root(c);
	if (root)
		root->lazy += lazy ? 1 : -1;
}

/* What a connection may send. */
struct queue_share {
	__u64 bytes;  /* its share of a window */
	__u64 ms;     /* the window: longer if the share would be less than some packets */
};

/* Computes the share of each connection of a host. */
static __always_inline void queue_share(struct queue_share *to, const struct queue_host *h, const struct queue_class *c)
{
	to->ms = c->window;
	to->bytes = h->level * c->window >> QUEUE_FINE;
	if (to->bytes < QUEUE_LEAST) {
		to->bytes = QUEUE_LEAST;
		to->ms = ((__u64)QUEUE_LEAST << QUEUE_FINE) / queue_most(h->level, 1);
	}
}

/* Whether a young counter is one of those by whom its host or class owes too much. */
static __always_inline int queue_owes(const struct queue_counter *q, const struct queue_host *h, const struct queue_class *c)
{
	__u64 owed = q->size - q->magic;

	if (!q->young || owed <= QUEUE_LEAST)
		return 0;
	if (h->crowded && h->backlogged > 1 && owed * h->backlogged >= h->owed)
		return 1;
	return c->crowded && c->hosts > 1 && owed * c->counters >= c->owed;
}

/* Fills a counter up, but for some room: from then on it gets its share alone. */
static __always_inline void queue_fill_up(struct queue_counter *q, struct queue_class *c, __u64 room)
{
	__u64 magic = c->depth - room - q->size;

	if (q->size + room >= c->depth)
		return;
	q->size += magic;
	q->magic += magic;
	if (q->pace == QUEUE_STARTS)
		q->missed = 0;
	q->pace = QUEUE_SLOWED;
}

/* Returns what a connection may send beyond its share for a while: the more connections there
 * are, the less. */
static __always_inline __u64 queue_extra(const struct queue_share *share, const struct queue_class *c)
{
	return share->bytes / queue_most(c->counters, 1);
}

/* Whether a connection has sent more than 1.25 shares in this window. */
static __always_inline int queue_is_fast(const struct queue_counter *q, const struct queue_share *share)
{
	return (__u64)q->window * 4 > share->bytes * 5;
}

/* Returns what a connection may owe before it is held to its share: less in a burst, and still less in
 * a start that goes on. Marks come before that (queue_unmarked): so with ECN it may owe more, or marks
 * would begin below its share. */
static __always_inline __u64 queue_limit(const struct queue_counter *q, const struct queue_share *share, const struct queue_class *c)
{
	if (c->ecn)
		return (3 * share->bytes + queue_extra(share, c)) / 2;
	return share->bytes / 2 + queue_extra(share, c) * (q->fast ? 3 : queue_is_fast(q, share) ? 4 : 6) / 4;
}

/* Whoever has slowed down after a burst, so that a window has lost little, gets some room
 * again: what it sends now varies around its share. The more connections there are, the less. */
static __always_inline void queue_settle(struct queue_counter *q, const struct queue_class *c, const struct queue_share *share)
{
	__u64 room = q->size < c->depth ? c->depth - q->size : 0, gift = queue_extra(share, c), magic;

	if (q->pace == QUEUE_SLOWED && (__u64)q->missed * QUEUE_FEW < share->bytes) {
		q->pace = QUEUE_SETTLED;
		if (gift > room) {
			magic = queue_least(gift - room, q->magic);
			q->size -= magic;
			q->magic -= magic;
		}
	} else if (q->pace >= QUEUE_TOLD && q->pace < QUEUE_SETTLED) {
		q->pace++;
	}
}

/* Begins a window. */
static __always_inline void queue_window(struct queue_counter *q, __u32 ms)
{
	q->before = q->pace == QUEUE_STARTS ? q->window : 0;
	q->began = ms;
	q->window = 0;
	q->high -= !!q->high;
}

/* Begins a window of a connection that goes on. */
static __always_inline void queue_next_window(struct queue_counter *q, const struct queue_share *share, __u32 ms)
{
	q->fast = q->pace < QUEUE_SETTLED && queue_is_fast(q, share);
	queue_window(q, ms);
}

/* Returns what a connection may send in a window. TCP may send all of a round trip at once, so two of
 * them may lie in one window: the more connections there are, the less each of them matters. Who has
 * just been told of congestion needs a round trip to slow down. */
static __always_inline __u64 queue_burst(const struct queue_counter *q, const struct queue_share *share, const struct queue_class *c)
{
	__u64 extra = queue_extra(share, c);

	return 3 * share->bytes / 2 + (q->pace >= QUEUE_TOLD && q->pace <= QUEUE_HEARD ? extra * 7 / 8 : extra / 2);
}

/* Judges the burst of the present window. */
static __always_inline void queue_judge(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
					const struct queue_share *share, __u32 ms)
{
	int burst;

	if (ms - q->began + 1 >= share->ms) { /* what comes until the next run is of the next window */
		q->calm = (__u64)q->window * 2 < share->bytes ? q->calm + 1 : 0;
		if (q->calm > 1) { /* one may be between two bursts of a round trip */
			q->calm = 1;
			q->size -= q->magic;
			q->magic = 0;
		}
		queue_settle(q, c, share);
		queue_next_window(q, share, ms);
	}
	burst = q->window + QUEUE_PACKET_BYTES > queue_burst(q, share, c);
	if (burst || queue_owes(q, h, c) || (!q->magic && q->size > queue_limit(q, share, c))) {
		if (q->size + share->bytes < c->depth) { /* else it has only earned that room */
			if (burst && c->ecn)
				q->tell = 1;
			queue_fill_up(q, c, burst && c->ecn ? share->bytes / 4 : 0);
		}
		queue_next_window(q, share, ms);
	}
	if (q->young && (__u16)(ms - q->born) > QUEUE_YOUTH && ms - q->last < QUEUE_IDLE) {
		if (h->crowded || (c->crowded && (c->hosts > 1 || c->ecn) && h->owed * c->hosts >= c->owed))
			queue_fill_up(q, c, 0);
		queue_grow_up(q, h, c);
	}
}

/* A connection that starts doubles its rate until it is told of congestion, and goes on so for
 * a round trip afterwards. So it is told once, when it has taken half of its share within a window's
 * time, and less in the window before; or else when it has taken all of it. The part of the window before that
 * still counts is estimated. A share of a few packets is left alone. */
static __always_inline void queue_congestion(struct queue_counter *q, const struct queue_class *c, const struct queue_share *share,
					     __u32 ms)
{
	__u64 left, bytes = q->window;

	if (q->pace != QUEUE_STARTS || share->bytes < QUEUE_TELL)
		return;
	left = share->ms - queue_least(ms - q->began, share->ms);
	if (!c->ecn) /* marks for what it owes come as well, so it must not be told too early */
		bytes += q->before * left / queue_most(share->ms, 1);
	if (bytes * 2 <= share->bytes * (q->calm ? 1 : 2))
		return;
	q->pace = QUEUE_TOLD;
	q->missed = 0;
	q->tell = 1;
}

/* Returns what one of n may still owe, if all together may owe limit: what is left, or at
 * least its own part. */
static __always_inline __u64 queue_part(__u64 limit, __u64 all, __u64 own, __u32 n)
{
	__u64 part = limit / (n ? : 1);

	return queue_most(limit - queue_least(all, limit), part - queue_least(own, part));
}

/* Returns what a young counter may send at most if there are others: what its host, its class
 * and its tree may still owe, but at least some packets. */
static __always_inline __u64 queue_credit_line(const struct queue_counter *q, const struct queue_host *h,
					       const struct queue_class *c)
{
	__u64 most = ~0ULL, owed = q->size - q->magic;
	const struct queue_class *root = queue_root(c);

	if (h->backlogged > 1)
		most = queue_part(c->level * c->window >> (QUEUE_FINE + 1), h->owed, owed, h->backlogged);
	if (c->hosts > 1)
		most = queue_least(most, queue_part(c->ceiling * c->window / 2, c->owed, h->owed, c->hosts));
	if (root && root->busy_leaves > 1)
		most = queue_least(most, queue_part(root->ceiling * c->window / 2, root->owed, c->owed, root->busy_leaves));
	return queue_most(most, QUEUE_LEAST - queue_least(owed, QUEUE_LEAST));
}

/* Returns what a connection of a class with ECN may send without a mark, if it may send room. In the
 * last quarter share some packets are marked at each step of what it owes, and all within half a step of
 * the limit. Who owes less than before has slowed down, and gets no more marks: TCP needs up to two round
 * trips for that. */
static __always_inline __u64 queue_unmarked(struct queue_counter *q, const struct queue_class *c, const struct queue_share *share,
					    __u64 room)
{
	__u64 limit = queue_limit(q, share, c), soft = limit - share->bytes / 4, owed;
	__u64 step = share->bytes / 8;

	if (!q->magic)
		room = queue_least(room, limit - queue_least(q->size, limit));
	owed = limit - queue_least(room, limit);
	if (owed <= soft) {
		q->high = 0;
	} else {
		q->high = queue_most(q->high, queue_least(owed / step + 1, 255));
		soft = queue_least(queue_most(soft, step * q->high), limit - step / 2);
	}
	soft = room - queue_least(room, limit - soft);
	q->grace = (room - soft) * QUEUE_PART / share->bytes;
	return soft;
}

/* Says how much the connection may send until the next run. A young one whose host or class
 * owes much has to share what new ones get. */
static __always_inline void queue_give_room(struct queue_counter *q, const struct queue_host *h, const struct queue_class *c,
					    const struct queue_share *share)
{
	__u64 most = queue_burst(q, share, c), room = 0, bound = most - queue_least(q->window, most);
	__u8 fresh = q->young && (h->full || c->full) && !q->magic;

	q->rate = h->level >> QUEUE_FINE;
	if (q->size < c->depth && !fresh)
		room = c->depth - q->size;
	if (c->ecn)
		room = queue_unmarked(q, c, share, room);
	if (q->young && !q->magic)
		bound = queue_least(bound, queue_credit_line(q, h, c));
	if (bound < room && c->ecn)
		q->grace = QUEUE_PART / 2;
	*(volatile __u64 *)&q->until = q->seen + queue_least(room, bound);
	q->fresh = fresh;
}

/* Ends a counter that is idle. Its last packets may still be on their way: they are not
 * counted. */
static __always_inline void queue_counter_end(struct queue_counter *q, struct queue_host *h, const struct queue_class *c, __u32 ms)
{
	struct queue_class *root = queue_root(c);

	if (q->lazy && root)
		root->lazy--;
	h->last = ms;
	h->counters--;
	q->lazy = 0;
	q->dropped = 0;
	q->fresh = 1; /* for a packet that has found the counter just now */
	queue_window(q, 0);
	q->young = 0;
	q->calm = 0;
	q->fast = 0;
	q->at = 0;
	q->seen = q->sent;
	*(volatile __u64 *)&q->until = q->sent;
	__sync_lock_test_and_set(&q->key, 0);
}

/* Fits a counter to a depth that has changed since it was looked at. One with magic stays as full
 * as it was: it has only the room that it has earned. What does not fit at all is forgiven, or it
 * would have to wait until that is drained. */
static __always_inline void queue_refit(struct queue_counter *q, struct queue_host *h, struct queue_class *c)
{
	__u64 size = q->size, owed = size - q->magic;
	__u8 missed = c->changes - q->changes;

	if (!missed)
		return;
	q->changes = c->changes;
	if (q->pace == QUEUE_STARTS) /* it takes another part of its share without having grown */
		q->pace = QUEUE_SETTLED;
	if (q->magic && missed == 1)
		size = size * c->refit >> 16;
	size = queue_least(size, c->depth);
	if (q->young && owed > size)
		queue_pay(h, c, owed - size);
	q->magic = size - queue_least(size, owed);
	q->size = size;
	h->level = queue_least(h->level, c->level);
}

/* What a visit found. */
enum queue_found {
	QUEUE_BUSY,  /* it has backlog, or had it just now */
	QUEUE_QUIET,
	QUEUE_ENDED,
};

/* Looks at a counter. */
static __always_inline enum queue_found queue_visit(struct queue_counter *q, const struct queue_run *r)
{
	struct queue_class *c = queue_class_get(q->class);
	struct queue_share share;
	struct queue_host *h;
	__u64 most, dropped;

	if (!c || (!q->at && !q->key)) /* it has ended before the timer took it over */
		return QUEUE_ENDED;
	if (!q->at) {
		q->at = queue_host_of(q, c, r->ms) + 1;
		q->began = q->last = r->ms;
		q->born = r->ms;
		q->young = 1;
		q->changes = c->changes;
		q->size = q->magic = q->need = q->lazy = q->pace = q->high = q->grace = q->before = 0;
		h = queue_host_get(q->at - 1);
		if (h)
			h->counters++;
	}
	h = queue_host_get(q->at - 1);
	if (!h)
		return QUEUE_ENDED;
	if (q->dropped) {
		dropped = __sync_lock_test_and_set(&q->dropped, 0);
		c->drops += dropped >> 44;
		c->lost += QUEUE_BYTES(dropped);
		if (q->pace != QUEUE_STARTS)
			q->missed = queue_least(q->missed + QUEUE_BYTES(dropped), ~0u);
	}
	queue_host_serve(h, c, r);
	queue_counter_serve(q, h, c, r);
	if (!queue_counter_count(q, h, c, r->ms) && !q->size && r->ms - q->last >= (q->kind ? QUEUE_KEPT : QUEUE_IDLE)) {
		queue_counter_end(q, h, c, r->ms);
		return QUEUE_ENDED;
	}
	queue_refit(q, h, c);
	queue_share(&share, h, c);
	queue_judge(q, h, c, &share, r->ms);
	queue_counter_need(q, h, c, share.bytes);
	queue_congestion(q, c, &share, r->ms);
	queue_give_room(q, h, c, &share);
	most = queue_most(c->level * c->window >> (QUEUE_FINE + 1), QUEUE_LEAST);
	/* One that is alone is held to its own share. With ECN it is not enough: marks slow a start down too late. */
	h->crowded = (h->backlogged > 1 || c->hosts > 1 || c->ecn) && h->owed > most;
	h->full = queue_data.full[QUEUE_FULL_AT(q->host)] = h->crowded && h->owed > most + most / 4;
	return q->size || r->ms - q->last < QUEUE_CALM ? QUEUE_BUSY : QUEUE_QUIET;
}

#endif
