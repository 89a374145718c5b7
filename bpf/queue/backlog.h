/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the timer counts of one connection: what was sent, what is drained, and what it needs. queue/drain.h has the
 * method. */
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

/* Drains what the host has given the counter, and returns what that was, or could have been. A lazy one gets rid of magic by
 * what nobody needs. */
static __always_inline __u64 queue_counter_serve(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
						 const struct queue_run *r)
{
	/* a young one, which is looked at in each run, has noted its birth instead */
	__u64 share = (__u64)q->rate * (q->young ? r->us / 1000 : (__u16)(r->ms - q->looked)), given = 0, used, idle;
	const struct queue_class *root;

	if (q->need) {
		given = (h->virtual - q->served) >> QUEUE_FINE;
		q->served += given << QUEUE_FINE;
		used = queue_least(given, q->need);
		c->credit += (given - used) << QUEUE_FINE;
		queue_counter_take(q, h, c, used);
		queue_set_need(q, h, c, q->need - used);
	}
	given = queue_most(given, share);
	root = q->lazy ? queue_root(c) : 0;
	if (!root)
		return given;
	/* the class may be held to less than the line has: so what was sent is not paid for by that */
	idle = queue_least(queue_least(root->idle * r->us / 1000 >> QUEUE_FINE, q->rate * r->us / 1000), q->magic);
	q->size -= idle;
	q->magic -= idle;
	return given;
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

/* Begins a window. */
static __always_inline void queue_window(struct queue_counter *q, __u32 ms)
{
	q->before = q->pace == QUEUE_STARTS ? q->window : 0;
	q->began = ms;
	q->window = 0;
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
	q->why = QUEUE_OF_YOUNG;
	queue_window(q, 0);
	q->high = 0;
	q->hush = 0;
	q->young = 0;
	q->calm = 0;
	q->fast = 0;
	q->deaf = 0;
	q->steady = 0;
	q->hurt = 0;
	q->waits = 0;
	q->at = 0;
	q->seen = q->sent;
	*(volatile __u64 *)&q->until = q->sent;
	__sync_lock_test_and_set(&q->key, 0);
}

/* Fits a counter to a depth that has changed since it was looked at. One with magic stays as full
 * as it was: it has only the room that it has earned. What does not fit at all is forgiven, or it
 * would have to wait until that is drained. Returns whether the depth has changed. */
static __always_inline int queue_refit(struct queue_counter *q, struct queue_host *h, struct queue_class *c)
{
	__u64 size = q->size, owed = size - q->magic;
	__u8 missed = c->changes - q->changes;

	if (!missed)
		return 0;
	q->changes = c->changes;
	if (q->pace == QUEUE_STARTS) { /* it takes another part of its share without having grown */
		q->pace = QUEUE_SETTLED;
		q->missed = 0;
	}
	if (q->magic && missed == 1)
		size = size * c->refit >> 16;
	size = queue_least(size, c->depth);
	if (q->young && owed > size)
		queue_pay(h, c, owed - size);
	q->magic = size - queue_least(size, owed);
	q->size = size;
	h->level = queue_least(h->level, c->level);
	return 1;
}

#endif
