/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whether a packet has room in its queue. What packets of a known connection do: read the
 * connection's counter, compare, add. queue/drain.h is the other half.
 */
#ifndef WEIR_QUEUE_ADMIT_H
#define WEIR_QUEUE_ADMIT_H

#include "queue/queue.h"

enum queue_verdict {
	QUEUE_PASS,
	QUEUE_MARK, /* it passes, and tells of congestion if it can */
	QUEUE_DROP,
};

/* The parts of a counter's key. */
#define QUEUE_FLOWS	    (1u << 27)
#define QUEUE_KEY_HASHED    (1ULL << 27)
#define QUEUE_KEY_QUEUE(n)  ((__u64)(n) << 28)
#define QUEUE_KEY_SHAPER(n) ((__u64)((n) & 0xff) << 44)
#define QUEUE_KEY_EPOCH(n)  ((__u64)((n) & 0x1ff) << 52)
#define QUEUE_KEY_HOST	    (1ULL << 61) /* the flow is a host's number */
#define QUEUE_KEY_URGENT    (1ULL << 62)
#define QUEUE_KEY_USED	    (1ULL << 63)

/* Returns the key of a packet's counter. */
static __always_inline __u64 queue_key(const struct queue_ask *a, __u32 epoch)
{
	return QUEUE_KEY_USED | QUEUE_KEY_EPOCH(epoch) | QUEUE_KEY_SHAPER(a->shaper) | QUEUE_KEY_QUEUE(a->queue) |
	       (a->hashed ? QUEUE_KEY_HASHED : 0) | (a->flow & (QUEUE_FLOWS - 1));
}

/* Returns the place of a connection's counter, if no other one has taken it: the first to be
 * looked at of QUEUE_WAYS in a row. It depends on the number of the state alone. So it can be
 * read before anything else is known of the packet. States lie close together while there are
 * few (state/home.h), and so do their counters. The two directions of two states share
 * QUEUE_WAYS places, so each may meet two trees, or one with two priorities. */
static __always_inline __u32 queue_place_of(__u32 flow)
{
	return flow << 1 & (queue_slots - 1);
}

/* Returns a number for the host that a packet belongs to. Defined with the hook. packet: what
 * the hook knows of it. */
static __u64 queue_find_host(const struct queue_ask *a, const void *packet);

/* Notes that a packet is dropped. Defined with the hook. */
static void queue_lost(const struct queue_ask *a);

/* Returns a packet's class, with QUEUE_MEMBER_PAIR if it is one of two; 0: it is not shaped. */
static __always_inline __u32 queue_class_of(const struct queue_ask *a, const struct queue_shaper *sh, __u64 urgent)
{
	__u32 key = QUEUE_MEMBER(a->shaper, (__u32)a->queue) | (urgent ? QUEUE_MEMBER_URGENT : 0), *member;

	member = a->queue ? bpf_map_lookup_elem(&queue_members, &key) : 0;
	if (member)
		return *member;
	key = QUEUE_MEMBER(a->shaper, (__u32)a->other);
	member = a->other ? bpf_map_lookup_elem(&queue_members, &key) : 0;
	return member ? *member & QUEUE_MEMBER_CLASS : sh->fallback;
}

/* Looks for a key in its set, and for a free way: *free. first: where it begins, so that most
 * keys are found at once. */
static __always_inline struct queue_counter *queue_search(__u64 key, __u32 first, __u32 *free)
{
	struct queue_counter *q;
	__u32 i, way;

	for (i = 0; i < QUEUE_WAYS; i++) {
		way = (first & ~(QUEUE_WAYS - 1)) | ((first + i) & (QUEUE_WAYS - 1));
		q = queue_counter_get(way);
		if (!q)
			return 0;
		if (q->key == key)
			return q;
		if (!q->key && *free == ~0u)
			*free = way;
	}
	return 0;
}

/* Has the timer look at a counter in its next run. */
static __always_inline void queue_announce(struct queue_counter *q)
{
	struct queue_head *h = &queue_data.heads[bpf_get_smp_processor_id() & (QUEUE_CPUS - 1)];
	__u32 head, i;

	if (q->next || __sync_val_compare_and_swap(&q->next, 0, QUEUE_END))
		return;
	for (i = 0; i < QUEUE_TRIES; i++) { /* only the timer, on another core, comes in between */
		head = *(volatile __u32 *)&h->first;
		q->next = head ? head : QUEUE_END;
		if (__sync_val_compare_and_swap(&h->first, head, q->self + 1) == head)
			return;
	}
	q->next = 0;
}

/* Takes a counter for a key. 0: it is another's. */
static __always_inline struct queue_counter *queue_take(__u64 key, __u32 index, __u32 class, __u64 host)
{
	struct queue_counter *q = queue_counter_get(index);
	__u64 old;

	if (!q)
		return 0;
	old = __sync_val_compare_and_swap(&q->key, 0, key);
	if (old) /* it is there, or another core was faster */
		return old == key ? q : 0;
	q->class = class & QUEUE_MEMBER_CLASS;
	q->host = host;
	q->grace = 0;
	q->kind = class & QUEUE_MEMBER_PAIR && !(key & QUEUE_KEY_HOST) ? QUEUE_IS_PAIR : 0;
	q->tell = QUEUE_NO_NEWS;
	q->rate = 0;
	q->fresh = 1;
	q->why = QUEUE_OF_YOUNG;
	q->self = index;
	queue_announce(q);
	return q;
}

/* Begins the counter of a connection. Without a free one it takes that of its class, which it
 * shares with others. 0: its class is not shaped. */
static __noinline struct queue_counter *queue_begin(const struct queue_ask *a, const struct queue_shaper *sh, __u64 key,
						     __u32 free, const void *packet)
{
	__u32 class = queue_class_of(a, sh, key & QUEUE_KEY_URGENT), index = class & QUEUE_MEMBER_CLASS;
	struct queue_class *c = queue_class_get(index);
	struct queue_counter *q = 0;
	__u64 host;

	if (!index || !c)
		return 0;
	host = c->fair == QUEUE_FLOW ? 0 : queue_find_host(a, packet);
	host = queue_host_key(host, index);
	if (free != ~0u)
		q = queue_take(key, free, class, host);
	if (!q) {
		__sync_fetch_and_add(&c->shared, 1);
		return queue_take(QUEUE_KEY_USED | index, queue_slots + index, index, queue_host_key(0, index));
	}
	if (c->fair == QUEUE_HOST && !(key & QUEUE_KEY_HOST))
		q->kind |= QUEUE_IS_HOST;
	return q;
}

/* Returns the counter of a key, or begins it. */
static __always_inline struct queue_counter *queue_find(const struct queue_ask *a, const struct queue_shaper *sh, __u64 key,
							const void *packet)
{
	__u32 free = ~0u;
	struct queue_counter *q = queue_search(key, queue_place_of(key), &free);

	return q ? q : queue_begin(a, sh, key, free, packet);
}

/* Whether a new connection's packet may pass before the timer has given it any room. */
static __always_inline int queue_borrow(struct queue_counter *q, __u32 bytes)
{
	struct queue_class *c = queue_class_get(q->class);
	__s64 *from;

	if (!c)
		return 0;
	from = c->full || queue_data.full[QUEUE_FULL_AT(q->host)] ? &c->trickle : &c->fresh;
	if (*from < (__s64)bytes)
		return 0;
	__sync_fetch_and_add(from, -(__s64)bytes);
	return 1;
}

/* The timer has room that it has not given yet, if it is late: at most QUEUE_LATE_MS. Only
 * packets that would be dropped look at the clock. */
static __always_inline int queue_is_late(const struct queue_counter *q, __s64 lacks)
{
	__s64 late;

	if (lacks > (__s64)q->rate * QUEUE_LATE_MS)
		return 0;
	late = bpf_ktime_get_ns() - queue_data.clock.last;
	return late > (__s64)QUEUE_LATE_NS && (__s64)((__u64)late / 1000000 * q->rate) >= lacks;
}

/* Notes that a packet is dropped, and why. Returns QUEUE_DROP. */
static __always_inline int queue_drop(struct queue_counter *q, struct queue_ask *a, __u32 why)
{
	a->why = why;
	__sync_fetch_and_add(&q->dropped, QUEUE_PACKED(a->bytes));
	queue_lost(a);
	return QUEUE_DROP;
}

/* Whether a packet that lacks room passes with a mark: its class has ECN. */
static __always_inline int queue_is_marked(const struct queue_counter *q, __s64 lacks)
{
	const struct queue_class *c = queue_class_get(q->class);

	return c && q->grace && lacks <= (__s64)((__u64)q->rate * c->window * q->grace / QUEUE_PART);
}

/* Judges a packet for which its counter has no room. */
static __noinline int queue_squeeze(struct queue_counter *q, struct queue_ask *a)
{
	__s64 lacks = (__s64)a->bytes - queue_room(q, q->sent);

	if (q->fresh ? queue_borrow(q, a->bytes) : queue_is_late(q, lacks))
		return QUEUE_PASS;
	if (!q->fresh && queue_is_marked(q, lacks))
		return QUEUE_MARK;
	if (q->at && !q->fresh && q->place >= queue_data.clock.busy)
		queue_announce(q);
	return queue_drop(q, a, q->why);
}

/* Tells a connection of congestion: by a mark if it knows ECN, else by the loss of a packet. */
static __noinline int queue_warn(struct queue_counter *q, struct queue_ask *a)
{
	const struct queue_class *c = queue_class_get(q->class);

	if (c && c->ecn && a->ecn) {
		q->tell = QUEUE_NO_NEWS;
		return QUEUE_MARK;
	}
	q->tell = QUEUE_COST;
	return queue_drop(q, a, QUEUE_OF_START);
}

/* Counts a packet of a connection whose counter is the first to be looked at, has room and
 * asks for nothing: most packets. Returns 0 if it has not been counted. */
static __always_inline int queue_admit_known(const struct queue_shaper *sh, __u32 shaper, __u32 flow, __u32 queue, __u32 bytes)
{
	struct queue_counter *q = queue_counter_get(queue_place_of(flow));
	__u64 key = QUEUE_KEY_USED | QUEUE_KEY_EPOCH(sh->epoch) | QUEUE_KEY_SHAPER(shaper) | QUEUE_KEY_QUEUE(queue) |
		    (flow & (QUEUE_FLOWS - 1));

	if (!q || q->key != key || q->kind | q->tell || queue_room(q, q->sent) < (__s64)bytes)
		return 0;
	__sync_fetch_and_add(&q->sent, QUEUE_PACKED(bytes));
	return 1;
}

/* Counts a packet in its queue. Returns enum queue_verdict. */
static __always_inline int queue_admit(struct queue_ask *a, const void *packet)
{
	const struct queue_shaper *sh = queue_shaper_get(a->shaper);
	struct queue_counter *q;
	int verdict = QUEUE_PASS;
	__u64 key;

	key = queue_key(a, sh->epoch);
	q = queue_find(a, sh, key, packet);
	if (q && q->kind) { /* it only says which counter counts */
		if (q->kind & QUEUE_IS_PAIR && a->urgent) {
			key |= QUEUE_KEY_URGENT;
			q = queue_find(a, sh, key, packet);
		}
		if (q && q->kind & QUEUE_IS_HOST)
			q = queue_find(a, sh, (key & ~(__u64)(QUEUE_FLOWS - 1)) | QUEUE_KEY_HOST | (q->host & (QUEUE_FLOWS - 1)), packet);
	}
	if (!q)
		return QUEUE_PASS;
	a->class = q->class;
	if (q->tell == QUEUE_SENT && a->cwr)
		q->tell = QUEUE_NO_NEWS;
	if (q->tell == QUEUE_NEWS)
		verdict = queue_warn(q, a);
	else if (queue_room(q, q->sent) < (__s64)a->bytes)
		verdict = queue_squeeze(q, a);
	if (verdict == QUEUE_DROP)
		return verdict;
	if (verdict == QUEUE_MARK && a->ecn)
		q->tell = QUEUE_SENT;
	__sync_fetch_and_add(&q->sent, QUEUE_PACKED(a->bytes));
	return verdict;
}

#endif
