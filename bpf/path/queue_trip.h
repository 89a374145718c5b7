/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Packets whose round-trip time is measured (queue/trip.h). */
#ifndef WEIR_PATH_QUEUE_TRIP_H
#define WEIR_PATH_QUEUE_TRIP_H

#include "path/queue_packet.h"
#include "path/scratch.h"
#include "queue/trip.h"
#include "state/track.h"

/* Returns the class in which a packet has just been counted. One that was counted in line
 * (queue_known()) has left nothing in the scratch, but its counter is where it belongs. */
static __always_inline __u32 queue_trip_class(const struct scratch *s, __u32 number, __u32 tree)
{
	const struct queue_counter *q = queue_counter_get(queue_place_of(number));
	__u64 key = QUEUE_KEY_USED | QUEUE_KEY_SHAPER(tree) | number, parts;

	parts = QUEUE_KEY_USED | QUEUE_KEY_URGENT | QUEUE_KEY_HOST | QUEUE_KEY_HASHED | QUEUE_KEY_SHAPER(0xff) | (QUEUE_FLOWS - 1);
	if (q && (q->key & parts) == key && !q->kind && !queue_shaper_get(tree)->held)
		return q->class;
	return s->ask.shaper == tree && s->ask.flow == number && !s->ask.hashed ? s->ask.class : 0;
}

/* Begins with a segment that has been tracked, and that a queue has let pass. */
static __always_inline void queue_trip_begin(const struct packet *p, struct queue_trip *t, volatile __u8 *on, __u32 number,
					     __u32 tree)
{
	struct state *st = state_get(STATE_INDEX(number));
	const struct scratch *s = scratch_get();

	if (!s || !st || !p->payload || p->tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST) || limits_are_sloppy(st))
		return; /* sloppy states do not know what was sent */
	if (*on == TRIP_DUE) {
		t->number = number;
		t->end = state_flow(st, STATE_DIRECTION(number))->seqlo;
		t->ms = queue_data.clock.ms;
		asm volatile("" ::: "memory"); /* on says that it is complete */
		*on = TRIP_ARMED;
	} else if (*on == TRIP_ARMED && t->number == number && !seq_before(p->seq, t->end)) {
		t->end = p->seq + p->payload;
		t->class = queue_trip_class(s, number, tree);
		t->ms = queue_data.clock.ms;
		asm volatile("" ::: "memory"); /* on says that it is complete */
		*on = TRIP_UNDER_WAY;
	}
}

/* Looks at a segment of a connection whose slot is not idle. tree: that it has just met; 0: none. */
__noinline int queue_trip(const struct packet *p, __u32 number, __u32 tree)
{
	__u32 slot = STATE_INDEX(number) & (QUEUE_TRIPS - 1), now = queue_data.clock.ms, ms, class;
	struct queue_trip *t = &queue_data.trips[slot];
	volatile __u8 *on = &queue_data.on[slot];

	if (!p)
		return 0;
	if (*on != TRIP_UNDER_WAY) {
		if (tree)
			queue_trip_begin(p, t, on, number, tree);
		return 0;
	}
	if (t->number == number) { /* has it, or what is before it, been sent again? */
		if (p->payload && seq_before(p->seq, t->end))
			*on = TRIP_IDLE;
		return 0;
	}
	if (t->number != (number ^ 1) || !(p->tcp_flags & TCP_ACK) || seq_before(p->ack, t->end))
		return 0;
	ms = now - t->ms;
	class = t->class;
	if (__sync_val_compare_and_swap(&t->number, number ^ 1, 0) != (number ^ 1))
		return 0; /* another core counts it */
	*on = TRIP_IDLE;
	if (class && !(p->tcp_flags & TCP_RST))
		queue_rtt_count(class, now, ms);
	return 0;
}

/* A segment that has been tracked where it comes in. tree: that has let it pass there. */
static __always_inline void queue_trip_comes(const struct packet *p, __u32 number, __u32 tree)
{
	if (p->tuple.proto == IPPROTO_TCP && queue_trip_is_on(number))
		queue_trip(p, number, tree);
}

/* The same where it leaves. A segment that has begun to be followed is not looked at again. */
static __always_inline void queue_trip_leaves(const struct packet *p, __u32 number, __u32 tree)
{
	__u8 on;

	if (p->tuple.proto != IPPROTO_TCP)
		return;
	on = queue_trip_is_on(number);
	if (on && on != TRIP_UNDER_WAY)
		queue_trip(p, number, tree);
}

#endif
