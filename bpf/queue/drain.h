/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the timer does with the queues, every QUEUE_TICK_NS: it counts what each connection
 * has sent since the last run, drains the counters by what the last run has given them, and
 * gives the time that has passed to the classes. No packet does any of this, so only one core
 * at a time writes these fields.
 *
 * Three levels share by virtual amounts, as in generalised processor sharing (Parekh and
 * Gallager 1993): class.virtual grows by what each of its hosts with backlog gets, and
 * host.virtual by what each of its counters gets. A counter that is looked at later has
 * missed nothing. So one run looks at QUEUE_SLICE counters at most.
 *
 * A new connection may send more than its share for a while, so that TCP finds its rate. But
 * who has sent more than one and a half times its share in a window gets a full queue, by
 * bytes that nobody sent (magic), and from then on its share alone (BC-PQP: Tahir et al.,
 * SIGCOMM 2024, doi 10.1145/3651890.3672267).
 */
#ifndef WEIR_QUEUE_DRAIN_H
#define WEIR_QUEUE_DRAIN_H

#include "queue/queue.h"

static __always_inline __u64 queue_least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 queue_most(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Returns the number of the highest bit of 16; 0 if none is set. */
static __always_inline __u32 queue_highest(__u32 bits)
{
	__u32 n = 0;

	if (bits >> 8)
		n = 8;
	if (bits >> (n + 4))
		n += 4;
	if (bits >> (n + 2))
		n += 2;
	return bits >> (n + 1) ? n + 1 : n;
}

/* Counters */

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

/* Drains what the host has given the counter. A lazy one is drained by what nobody needs. */
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
	} else if (q->lazy) {
		root = queue_root(c);
		if (root)
			queue_counter_take(q, h, c, queue_least(queue_least(root->idle >> QUEUE_FINE, q->rate * r->us / 1000), q->magic));
	}
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
	q->window += bytes;
	if (q->young)
		queue_owe(h, c, bytes);
	return bytes;
}

/* Sets what the counter needs: to be rid of what was sent, and of so much magic that it has
 * room for a window. Beyond that it is lazy. */
static __always_inline void queue_counter_need(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
					       __u64 window)
{
	__u64 need = q->size - q->magic, room = q->size < c->depth ? c->depth - q->size : 0;
	struct queue_class *root;
	__u8 lazy;

	if (q->magic && room < window)
		need = queue_most(need, queue_least(window - room, q->size));
	queue_set_need(q, h, c, need);
	lazy = q->magic && !need;
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

/* Fills a counter up: from now on it gets its share alone. */
static __always_inline void queue_fill_up(struct queue_counter *q, struct queue_class *c)
{
	__u64 magic = c->depth - q->size;

	if (q->size >= c->depth)
		return;
	q->size += magic;
	q->magic += magic;
}

/* Judges the burst of the present window. */
static __always_inline void queue_judge(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
					const struct queue_share *share, __u32 ms)
{
	if (ms - q->began + 1 >= share->ms) { /* what comes until the next run is of the next window */
		q->calm = (__u64)q->window * 2 < share->bytes ? q->calm + 1 : 0;
		if (q->calm > 1) { /* one may be between two bursts of a round trip */
			q->calm = 0;
			q->size -= q->magic;
			q->magic = 0;
		}
		q->began = ms;
		q->window = 0;
	}
	if (q->window + QUEUE_PACKET_BYTES > share->bytes + share->bytes / 2 || queue_owes(q, h, c) ||
	    (!q->magic && q->size > 2 * share->bytes)) {
		if (q->size + share->bytes < c->depth) /* else it has only earned that room */
			queue_fill_up(q, c);
		q->began = ms;
		q->window = 0;
	}
	if (q->young && (__u16)(ms - q->born) > QUEUE_YOUTH && ms - q->last < QUEUE_IDLE) {
		if (h->crowded || (c->crowded && h->owed * c->hosts >= c->owed))
			queue_fill_up(q, c);
		queue_grow_up(q, h, c);
	}
}

/* Asks for a mark if the backlog is high and has risen. */
static __always_inline void queue_congestion(struct queue_counter *q, const struct queue_class *c, __u32 ms)
{
	__u32 size = q->size >> 6;

	if (!c->ecn || (__u16)(ms - q->tested) < 2 * c->window)
		return;
	q->tested = ms;
	if (q->size > c->depth - c->depth / 4 && size > q->base)
		q->mark = 1;
	q->base = size;
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

/* Says how much the connection may send until the next run. A young one whose host or class
 * owes much has to share what new ones get. */
static __always_inline void queue_give_room(struct queue_counter *q, const struct queue_host *h, const struct queue_class *c,
					    const struct queue_share *share)
{
	__u64 most = share->bytes + share->bytes / 2, room = 0;
	__u8 fresh = q->young && (h->full || c->full) && !q->magic;

	if (q->size < c->depth && !fresh)
		room = c->depth - q->size;
	room = queue_least(room, most - queue_least(q->window, most));
	if (q->young && !q->magic)
		room = queue_least(room, queue_credit_line(q, h, c));
	q->rate = h->level >> QUEUE_FINE;
	*(volatile __u64 *)&q->until = q->seen + room;
	q->fresh = fresh;
}

/* Ends a counter that is idle. Its last packets may still be on their way: they are not
 * counted. */
static __always_inline void queue_counter_end(struct queue_counter *q, struct queue_host *h, __u32 ms)
{
	h->last = ms;
	h->counters--;
	q->window = 0;
	q->began = 0;
	q->young = 0;
	q->calm = 0;
	q->at = 0;
	q->seen = q->sent;
	*(volatile __u64 *)&q->until = q->sent;
	__sync_lock_test_and_set(&q->key, 0);
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

	if (!c)
		return QUEUE_ENDED;
	if (!q->at) {
		q->at = queue_host_of(q, c, r->ms) + 1;
		q->began = q->born = q->last = q->tested = r->ms;
		q->young = 1;
		q->size = q->magic = q->need = q->lazy = 0;
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
	}
	queue_host_serve(h, c, r);
	queue_counter_serve(q, h, c, r);
	if (!queue_counter_count(q, h, c, r->ms) && !q->size && r->ms - q->last >= (q->kind ? QUEUE_KEPT : QUEUE_IDLE)) {
		queue_counter_end(q, h, r->ms);
		return QUEUE_ENDED;
	}
	queue_share(&share, h, c);
	queue_judge(q, h, c, &share, r->ms);
	queue_counter_need(q, h, c, share.bytes);
	queue_congestion(q, c, r->ms);
	queue_give_room(q, h, c, &share);
	most = queue_most(c->level * c->window >> (QUEUE_FINE + 1), QUEUE_LEAST);
	h->crowded = h->owed > most;
	h->full = queue_data.full[QUEUE_FULL_AT(q->host)] = h->owed > most + most / 4;
	return q->size || r->ms - q->last < QUEUE_CALM ? QUEUE_BUSY : QUEUE_QUIET;
}

/* The list of counters: first the busy ones, then the others */

/* Puts a counter at a place. */
static __always_inline void queue_put(__u32 place, __u32 index)
{
	__u32 *at = bpf_map_lookup_elem(&queue_active, &place);
	struct queue_counter *q = queue_counter_get(index);

	if (at)
		*at = index;
	if (q)
		q->place = place;
}

static __always_inline __u32 queue_at(__u32 place)
{
	const __u32 *at = bpf_map_lookup_elem(&queue_active, &place);

	return at ? *at : 0;
}

/* Makes a counter of the list one of the busy. */
static __always_inline void queue_rouse(struct queue_clock *clock, __u32 index, __u32 place)
{
	__u32 other = queue_at(clock->busy);

	queue_put(place, other);
	queue_put(clock->busy, index);
	clock->busy++;
}

/* Makes a busy counter one of the others. */
static __always_inline void queue_calm(struct queue_clock *clock, __u32 index, __u32 place)
{
	__u32 other = queue_at(--clock->busy);

	queue_put(place, other);
	queue_put(clock->busy, index);
}

/* Takes a counter that is not busy out of the list. */
static __always_inline void queue_leave(struct queue_clock *clock, __u32 place)
{
	queue_put(place, queue_at(--clock->active));
}

/* Reads what the visit after the next one needs, so that it does not wait for memory. */
static __always_inline void queue_touch(__u32 place, __u32 end)
{
	const struct queue_counter *q;

	if (place >= end)
		return;
	q = queue_counter_get(queue_at(place));
	if (q) {
		asm volatile("" ::"r"(*(const volatile __u64 *)&q->sent));
		asm volatile("" ::"r"(*(const volatile __u64 *)&q->seen));
	}
}

/* Whether the run has taken long enough. */
static __always_inline int queue_is_over(const struct queue_clock *clock, __u32 n)
{
	return !(n & 31) && n && bpf_ktime_get_ns() > clock->stop;
}

/* One step of the walk over the busy counters. */
static long queue_busy_step(__u32 n, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_counter *q;
	__u32 place, index;
	enum queue_found found;

	(void)data;
	if (!clock->busy || queue_is_over(clock, n))
		return 1;
	if (clock->cursor >= clock->busy)
		clock->cursor = 0;
	place = clock->cursor;
	queue_touch(place + 4, clock->busy);
	index = queue_at(place);
	q = queue_counter_get(index);
	if (!q)
		return 1;
	found = queue_visit(q, &queue_data.run);
	if (found == QUEUE_BUSY) {
		clock->cursor = place + 1;
		return 0;
	}
	queue_calm(clock, index, place); /* another one is at the place now */
	if (found == QUEUE_ENDED)
		queue_leave(clock, clock->busy);
	return 0;
}

/* One step of the walk over the others. */
static long queue_quiet_step(__u32 n, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_counter *q;
	__u32 place, index;
	enum queue_found found;

	(void)data;
	if (clock->busy >= clock->active || queue_is_over(clock, n))
		return 1;
	if (clock->quiet < clock->busy || clock->quiet >= clock->active)
		clock->quiet = clock->busy;
	place = clock->quiet;
	queue_touch(place + 4, clock->active);
	index = queue_at(place);
	q = queue_counter_get(index);
	if (!q)
		return 1;
	found = queue_visit(q, &queue_data.run);
	if (found == QUEUE_ENDED) {
		queue_leave(clock, place);
		return 0;
	}
	clock->quiet = place + 1;
	if (found == QUEUE_BUSY)
		queue_rouse(clock, index, place);
	return 0;
}

/* Takes one counter from the list of a core: a new one, or one that has lost packets while it
 * was not busy. The cursor is in shared memory: the verifier would walk every value of one on
 * the stack. */
static long queue_take_one(__u32 n, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	__u32 taken = clock->taken;
	struct queue_counter *q;

	(void)n;
	(void)data;
	if (!taken)
		return 1;
	taken--;
	q = queue_counter_get(taken);
	if (!q) {
		clock->taken = 0;
		return 1;
	}
	clock->taken = q->next == QUEUE_END ? 0 : q->next;
	q->next = 0;
	if (!q->at)
		queue_put(clock->active++, taken);
	else if (q->place < clock->busy)
		return 0;
	queue_rouse(clock, taken, q->place);
	return 0;
}

/* Takes over the list of a core. */
static long queue_take_step(__u32 cpu, void *data)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_head *h = &queue_data.heads[cpu & (QUEUE_CPUS - 1)];

	(void)data;
	if (!clock->taken) { /* else some are left of the last run */
		if (!h->first)
			return 0;
		clock->taken = __sync_lock_test_and_set(&h->first, 0);
	}
	bpf_loop(QUEUE_NEW, queue_take_one, 0, 0);
	return 0;
}

/* Classes */

/* Returns what a rate brings in this run, fine. */
static __always_inline __u64 queue_amount(const struct queue_rate *rate, const struct queue_class *c, const struct queue_run *r)
{
	__u64 now = rate->first && r->ms - c->busy < rate->first ? rate->burst : rate->rate;

	return now * r->us >> (24 - QUEUE_FINE);
}

/* Computes what a class can use, from the leaves to the root. */
static long queue_need_step(__u32 n, void *data)
{
	const struct queue_run *r = &queue_data.run;
	struct queue_class *c, *above;
	__u64 need;

	(void)data;
	c = queue_class_get(r->end - 1 - n);
	if (!c)
		return 1;
	if (!c->children) {
		need = queue_least(c->backlog, 1ULL << 40) << QUEUE_FINE;
		c->need = need > c->credit ? need - c->credit : 0;
	}
	if (c->need) {
		if (r->ms - c->last > c->max.first && r->ms - c->last > c->min.first)
			c->busy = r->ms;
		c->last = r->ms;
	}
	need = c->asked = c->need;
	if (c->max.rate) {
		c->allowed = queue_amount(&c->max, c, r) + c->saved;
		need = queue_least(need, c->allowed);
	}
	c->hungry = need < c->need;
	c->need = need;
	c->grant = 0;
	above = c->parent && need ? queue_class_get(c->parent) : 0;
	if (above) {
		above->need += need;
		above->weights += c->weight;
		above->levels |= 1 << (c->priority & 15);
		if (c->min.rate)
			above->sure += queue_amount(&c->min, c, r);
	}
	return 0;
}

/* Gives a child what is guaranteed to it. Lower priorities have a floor: a part of what is
 * there, by weight. */
static long queue_guarantee_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	const struct queue_class *up = queue_class_get(r->class);
	struct queue_class *c;
	__u64 sure;

	(void)data;
	if (!up)
		return 1;
	c = queue_class_get(up->child + n);
	if (!c)
		return 1;
	if (!c->need)
		return 0;
	sure = c->min.rate ? queue_least(c->need, queue_amount(&c->min, c, r)) : 0;
	if (c->priority < r->level)
		sure = queue_most(sure, queue_least(c->need, (up->grant >> QUEUE_FLOOR) * c->weight / queue_most(up->weights, 1)));
	c->grant = sure;
	r->wants += sure;
	return 0;
}

/* If the guarantees are more than there is, all get the same part of theirs. */
static long queue_scale_step(__u32 n, void *data)
{
	const struct queue_run *r = &queue_data.run;
	const struct queue_class *up = queue_class_get(r->class);
	struct queue_class *c;

	(void)data;
	if (!up)
		return 1;
	c = queue_class_get(up->child + n);
	if (!c)
		return 1;
	c->grant = (c->grant >> 12) * (up->grant >> 12) / queue_most(r->wants >> 24, 1);
	return 0;
}

/* The weights of those of a priority that want more. */
static long queue_weigh_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	const struct queue_class *up = queue_class_get(r->class), *c;

	(void)data;
	if (!up)
		return 1;
	c = queue_class_get(up->child + n);
	if (!c)
		return 1;
	if (c->need > c->grant && c->priority == r->level)
		r->weights += c->weight;
	return 0;
}

/* Gives a child its part of what is left, and weighs those that want still more. */
static long queue_fill_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	const struct queue_class *up = queue_class_get(r->class);
	struct queue_class *c;
	__u64 part;

	(void)data;
	if (!up)
		return 1;
	c = queue_class_get(up->child + n);
	if (!c)
		return 1;
	if (c->need <= c->grant || c->priority != r->level)
		return 0;
	part = queue_least(r->left * c->weight / queue_most(r->weights, 1), c->need - c->grant);
	c->grant += part;
	r->wants += part;
	if (c->need > c->grant)
		r->hungry += c->weight;
	return 0;
}

/* One round of sharing among the children of a priority. 1: nothing is left to do. */
static long queue_round_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	struct queue_class *up = queue_class_get(r->class);

	(void)data;
	(void)n;
	if (!up || !r->left)
		return 1;
	if (!r->weights) { /* the next priority */
		r->levels &= ~(1 << (r->level & 15));
		r->level = queue_highest(r->levels);
		if (!r->levels)
			return 1;
		bpf_loop(up->children, queue_weigh_step, 0, 0);
		if (!r->weights)
			return 0;
	}
	r->wants = 0;
	r->hungry = 0;
	bpf_loop(up->children, queue_fill_step, 0, 0);
	r->left -= queue_least(r->wants, r->left);
	r->weights = r->wants ? r->hungry : 0; /* less than one for each: the next priority */
	return 0;
}

/* Shares what an inner class gets among its children. */
static __always_inline void queue_share_out(struct queue_class *up, struct queue_run *r)
{
	up->sharers = up->weights;
	up->first = queue_highest(up->levels & 0xffff);
	up->easy = up->asked <= up->grant;
	up->credit = 0;
	if (up->easy) /* each child sees to it */
		return;
	r->levels = up->levels & 0xffff;
	r->level = queue_highest(r->levels);
	r->weights = up->weights;
	r->wants = 0;
	if (up->sure || r->levels & (r->levels - 1)) {
		bpf_loop(up->children, queue_guarantee_step, 0, 0);
		if (r->wants > up->grant) {
			bpf_loop(up->children, queue_scale_step, 0, 0);
			r->wants = up->grant;
		}
		r->weights = 0;
		bpf_loop(up->children, queue_weigh_step, 0, 0);
	}
	r->left = up->grant - r->wants;
	bpf_loop(QUEUE_ROUNDS, queue_round_step, 0, 0);
	up->credit = queue_least(r->left, up->ceiling << QUEUE_FINE); /* too little for all, or too many rounds */
}

/* Gives a leaf's hosts what it has got, and says what one more would get. */
static __always_inline void queue_leaf_serve(struct queue_class *c, const struct queue_run *r)
{
	__u64 given = c->grant + c->credit + c->rest, most;
	__u32 hosts = c->hosts;

	c->granted += c->grant >> QUEUE_FINE;
	c->credit = 0;
	c->rest = 0;
	if (hosts) {
		c->virtual += given / hosts;
		c->rest = given % hosts;
	}
	c->step = given / (hosts ? : 1) * 1000 / (r->us ? : 1);
	c->most = (c->grant + c->spare) * 1000 / (r->us ? : 1);
	c->level = queue_smooth(c->level, c->hungry ? queue_least(c->step, c->most) : c->most, r->us / 1000);
	most = queue_most(c->ceiling * c->window / 2, QUEUE_LEAST);
	c->crowded = c->owed > most;
	c->full = c->owed > 4 * most;
	c->fresh = queue_most(c->ceiling * QUEUE_FRESH_MS, QUEUE_FRESH);
	c->trickle = queue_least((c->trickle > 0 ? c->trickle : 0) + (c->level * r->us / 2000 >> QUEUE_FINE), QUEUE_TRICKLE);
}

/* Returns what a class that is satisfied could claim beyond what it has got: its guarantee, or
 * its part by weight. */
static __always_inline __u64 queue_claim(const struct queue_class *c, const struct queue_class *above, const struct queue_run *r)
{
	__u64 claim = c->min.rate ? queue_amount(&c->min, c, r) : 0;

	if (c->priority >= above->first)
		claim = queue_most(claim, above->grant * c->weight / ((__u64)above->sharers + c->weight));
	return claim > c->grant ? claim - c->grant : 0;
}

/* Serves a class, from the root to the leaves. */
static long queue_serve_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	struct queue_class *c = queue_class_get(r->begin + n);
	const struct queue_class *above;
	__u64 want;

	(void)data;
	if (!c)
		return 1;
	above = c->parent ? queue_class_get(c->parent) : 0;
	want = c->need;
	if (!above) {
		c->saved = 0; /* what a line does not send it never will */
		c->spare = queue_amount(&c->max, c, r) + (c->children ? c->credit : 0);
		c->grant = queue_least(want, c->spare);
		c->hungry = c->hungry || c->grant < want;
		c->spare -= c->grant;
		c->idle = c->lazy ? c->spare / c->lazy : 0;
	} else {
		if (above->easy)
			c->grant = want;
		if (c->children)
			c->grant += c->credit;
		c->hungry = c->hungry || c->grant < want;
		c->spare = c->hungry ? 0 : queue_most(above->spare, queue_claim(c, above, r));
		if (c->max.rate) {
			c->saved = queue_least(c->allowed - queue_least(c->grant, c->allowed), queue_amount(&c->max, c, r) * QUEUE_SAVED);
			c->spare = queue_least(c->spare, c->saved);
		}
	}
	if (c->children) {
		r->class = r->begin + n;
		queue_share_out(c, r);
	} else {
		queue_leaf_serve(c, r);
	}
	c->need = 0; /* children add to these */
	c->weights = 0;
	c->levels = 0;
	c->sure = 0;
	return 0;
}

/* Serves a tree. */
static long queue_tree_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	__u32 number = n + 1;
	const struct queue_shaper *sh = queue_shaper_get(number);
	const struct queue_class *root;

	(void)data;
	if (!sh->classes)
		return 1;
	root = queue_class_get(sh->first);
	if (!root || (!root->tree && !root->lazy && r->ms - root->last > QUEUE_REST))
		return 0; /* nothing has come in for a while */
	r->begin = sh->first;
	r->end = sh->first + sh->classes;
	bpf_loop(sh->classes, queue_need_step, 0, 0);
	bpf_loop(sh->classes, queue_serve_step, 0, 0);
	return 0;
}

/* Serves all queues up to a time, in nanoseconds of the monotonic clock. */
static __always_inline void queue_drain(__u64 now)
{
	struct queue_clock *clock = &queue_data.clock;
	struct queue_run *r = &queue_data.run;
	__u64 passed;

	if (__sync_lock_test_and_set(&clock->lock, 1))
		return; /* during a load two timers run */
	clock->stop = bpf_ktime_get_ns() + QUEUE_WALK_NS;
	passed = now - clock->last;
	if (!clock->last || passed > QUEUE_MOST_NS) {
		if (clock->last)
			clock->lost += passed - QUEUE_MOST_NS;
		passed = clock->last ? QUEUE_MOST_NS : QUEUE_TICK_NS;
		clock->last = now - passed;
	}
	if (passed > QUEUE_TICK_NS + QUEUE_LATE_NS)
		clock->late++;
	r->us = passed / 1000;
	if (r->us) {
		*(volatile __u64 *)&clock->last += r->us * 1000;
		r->ms = clock->ms = clock->last / 1000000;
		r->tick = ++clock->tick;
		bpf_loop(queue_cpus, queue_take_step, 0, 0);
		bpf_loop(clock->busy, queue_busy_step, 0, 0);
		bpf_loop(queue_least(clock->active - clock->busy, QUEUE_SLICE), queue_quiet_step, 0, 0);
		bpf_loop(QUEUE_SHAPERS - 1, queue_tree_step, 0, 0);
	}
	__sync_lock_test_and_set(&clock->lock, 0);
}

#endif
