/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the timer does with one connection's counter: it looks at what was sent and given (queue/backlog.h), judges
 * bursts, and says how much may be sent next. queue/drain.h has the method. */
#ifndef WEIR_QUEUE_JUDGE_H
#define WEIR_QUEUE_JUDGE_H

#include "queue/backlog.h"

/* What a connection may send. */
struct queue_share {
	__u64 bytes;  /* its share of a window */
	__u64 ms;     /* the window: longer if the share would be less than some packets */
	__u64 extra;  /* what it may send beyond its share for a while */
	__u64 gift;   /* what it gets when it has slowed down */
};

/* Computes the share of each connection of a host. What they may send beyond it is less the more connections there are in
 * the class, and the less of what the class may have at most the share is: all classes together may not send much. */
static __always_inline void queue_share(struct queue_share *to, const struct queue_counter *q, const struct queue_host *h,
					const struct queue_class *c)
{
	__u64 part;

	to->ms = q->waits ? queue_most(c->window, QUEUE_TIMER_MOST) : c->window;
	to->bytes = h->level * to->ms >> QUEUE_FINE;
	if (to->bytes < QUEUE_LEAST) {
		to->bytes = QUEUE_LEAST;
		to->ms = ((__u64)QUEUE_LEAST << QUEUE_FINE) / queue_most(h->level, 1);
	}
	part = queue_least(h->level / queue_most(c->ceiling, 1), (1 << QUEUE_FINE) / queue_most(c->counters, 1));
	to->extra = to->bytes * part >> QUEUE_FINE;
	to->gift = to->extra * part >> QUEUE_FINE;
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

/* Has a connection with a share of a few packets wait up to half a packet more or less than others. Else all that were filled
 * up together would send together ever after, as when one program sends from many ports in turn. */
static __always_inline void queue_stagger(struct queue_counter *q, const struct queue_class *c, const struct queue_share *share)
{
	__u64 packet = queue_least(c->sent / queue_most(c->packets, 1), QUEUE_PACKET_BYTES);
	__u64 early = queue_least(q->magic, packet / 2), some = (__u32)(q->key * 0x9e3779b97f4a7c15ULL >> 32);
	__u64 wait = some * packet >> 32;

	if (share->bytes > QUEUE_LEAST)
		return;
	q->size += wait - early;
	q->magic += wait - early;
}

/* Whether a connection has sent more than 1.25 shares in this window. */
static __always_inline int queue_is_fast(const struct queue_counter *q, const struct queue_share *share)
{
	return (__u64)q->window * 4 > share->bytes * 5;
}

/* Returns the most that a connection may owe. */
static __always_inline __u64 queue_most_owed(const struct queue_share *share, const struct queue_class *c)
{
	return c->ecn ? (3 * share->bytes + share->extra) / 2 : (share->bytes + 3 * share->extra) / 2;
}

/* Returns what a connection may owe before it is held to its share: less in a burst, and in
 * a start that goes on; all that TCP's timer has cost it, if it waits for that. Marks come before that (queue_unmarked): so with ECN it may owe more, or marks
 * would begin below its share. */
static __always_inline __u64 queue_limit(const struct queue_counter *q, const struct queue_share *share, const struct queue_class *c)
{
	if (q->waits)
		return share->bytes;
	if (c->ecn || !(q->fast || queue_is_fast(q, share)))
		return queue_most_owed(share, c);
	return share->bytes / 2 + share->extra * 3 / 4;
}

/* Has a connection pay back, from what it was given just now, what it has taken while its share was larger: who is held to
 * its share would owe that for ever. It is forgiven if the class has got another rate. */
static __always_inline void queue_pay_back(struct queue_counter *q, const struct queue_share *share, struct queue_host *h,
					   struct queue_class *c, __u64 given, int forgiven)
{
	__u64 owed = q->size - q->magic, over = owed - queue_least(owed, share->bytes);

	if (forgiven && owed > queue_most_owed(share, c)) {
		queue_fill_up(q, c, c->ecn ? share->bytes / 4 : 0);
		q->magic += over;
		if (q->young)
			queue_pay(h, c, over);
	} else if (q->magic && owed > 2 * queue_most_owed(share, c) + QUEUE_TELL) {
		q->size += given / QUEUE_PAID_BACK;
		q->magic += given / QUEUE_PAID_BACK;
	}
}

/* Whoever has slowed down after a burst, so that a window has lost little, gets some room
 * again: what it sends now varies around its share. The more connections there are, the less; who is deaf gets none. */
static __always_inline void queue_settle(struct queue_counter *q, const struct queue_class *c, const struct queue_share *share)
{
	__u64 room = q->size < c->depth ? c->depth - q->size : 0, gift = q->steady ? 0 : share->gift, magic;

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

/* Notes that a connection has sent something after milliseconds of silence. If it lost packets before, and was silent for as
 * long as TCP waits for its retransmission timer where round trips are short, its windows are longer for a while. Any window of
 * TCP is more than its share there. So it loses what is beyond its share, waits for the timer, and lives on what it may send at
 * once afterwards. */
static __always_inline void queue_wait(struct queue_counter *q, __u32 silence)
{
	if (q->hurt && silence >= QUEUE_TIMER && silence < QUEUE_TIMER_MOST)
		q->waits = QUEUE_WAITS;
}

/* Gives a sender that has got a mark some windows to hear of it: no further one would make it slower. Its sending has changed
 * with the window after the one in which it says that it has heard. */
static __always_inline void queue_hear(struct queue_counter *q)
{
	if (q->tell != QUEUE_SENT)
		q->hush = queue_least(q->hush, 1);
	else if (q->hush < 2)
		q->hush = QUEUE_HUSH + 1;
}

/* Begins a window of a connection that goes on. */
static __always_inline void queue_next_window(struct queue_counter *q, const struct queue_share *share, __u32 ms)
{
	q->fast = q->pace < QUEUE_SETTLED && queue_is_fast(q, share);
	q->hurt -= q->hurt && q->window;
	q->waits -= !!q->waits;
	if (q->hush > 1) {
		if (--q->hush == 1)
			q->tell = QUEUE_NO_NEWS; /* it does not say so, as with UDP */
	} else if (q->hush) {
		q->hush = 0;
	} else if (q->window > share->bytes) {
		q->high -= queue_least(q->high, 2 * QUEUE_MARGIN);
	}
	queue_window(q, ms);
}

/* Returns what a connection may send in a window. TCP may send all of a round trip at once, so two of
 * them may lie in one window: the more connections there are, the less each of them matters. Who has
 * just been told of congestion needs a round trip to slow down. Who waits for TCP's timer sends what that has cost it. */
static __always_inline __u64 queue_burst(const struct queue_counter *q, const struct queue_share *share)
{
	__u64 extra = share->extra;

	if (q->waits)
		return 5 * share->bytes / 4;
	return 3 * share->bytes / 2 + (q->pace >= QUEUE_TOLD && q->pace <= QUEUE_HEARD ? extra * 7 / 8 : extra / 2);
}

/* Notes at the end of a window whether the connection pays heed to losses: who loses packets and does not send less
 * afterwards is deaf, and may owe no more. */
static __always_inline void queue_heed(struct queue_counter *q, struct queue_class *c, const struct queue_share *share)
{
	__u64 missed = q->pace == QUEUE_STARTS ? 0 : q->missed, sent = q->window + missed;

	if (share->bytes < QUEUE_TELL || sent * 8 < share->bytes * 7)
		q->deaf -= queue_least(q->deaf, 2);
	else if (sent >= share->bytes && missed * 32 > sent)
		q->deaf = queue_least(q->deaf + 1, QUEUE_DEAF_MOST);
	if (q->deaf < QUEUE_DEAF / 2 || q->waits)
		q->steady = 0;
	if (q->deaf < QUEUE_DEAF || q->steady || q->waits)
		return;
	q->steady = 1;
	queue_fill_up(q, c, 0);
}

/* Judges the burst of the present window. */
static __always_inline void queue_judge(struct queue_counter *q, struct queue_host *h, struct queue_class *c,
					const struct queue_share *share, __u32 ms)
{
	int burst;

	if (ms - q->began + 1 >= share->ms) { /* what comes until the next run is of the next window */
		q->calm = (__u64)q->window * 2 < share->bytes && !q->waits ? q->calm + 1 : 0;
		if (q->calm > 1) { /* one may be between two bursts of a round trip */
			q->calm = 1;
			q->size -= q->magic;
			q->magic = 0;
		}
		queue_heed(q, c, share);
		queue_settle(q, c, share);
		queue_next_window(q, share, ms);
	}
	burst = q->window + QUEUE_PACKET_BYTES > queue_burst(q, share);
	if (burst || queue_owes(q, h, c) || (!q->magic && q->size > queue_limit(q, share, c))) {
		if (q->size + share->bytes < c->depth) { /* else it has only earned that room */
			if (burst && c->ecn)
				q->tell = QUEUE_NEWS;
			queue_fill_up(q, c, burst && c->ecn ? share->bytes / 4 : 0);
			queue_stagger(q, c, share);
		}
		queue_next_window(q, share, ms);
	}
	if (q->young && (__u16)(ms - q->born) > QUEUE_YOUTH && ms - q->last < QUEUE_IDLE) {
		if (h->crowded || (c->crowded && (c->hosts > 1 || c->ecn) && h->owed * c->hosts >= c->owed)) {
			queue_fill_up(q, c, 0);
			queue_stagger(q, c, share);
		}
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
	if (!q->hurt) /* else it knows already, and its next packet may be one that it sends again */
		q->tell = QUEUE_NEWS;
}

/* Returns what one may still owe, if all together may owe limit: what is left, or at least its
 * own part. */
static __always_inline __u64 queue_part(__u64 limit, __u64 all, __u64 own, __u64 part)
{
	return queue_most(limit - queue_least(all, limit), part - queue_least(own, part));
}

/* Returns what a young counter may send at most if there are others: what its host, its class
 * and its tree may still owe, but at least some packets. */
static __always_inline __u64 queue_credit_line(const struct queue_counter *q, const struct queue_host *h,
					       const struct queue_class *c)
{
	__u64 most = ~0ULL, owed = q->size - q->magic, limit;
	const struct queue_class *root = queue_root(c);

	if (h->backlogged > 1) {
		limit = c->level * c->window >> (QUEUE_FINE + 1);
		most = queue_part(limit, h->owed, owed, limit / h->backlogged);
	}
	if (c->hosts > 1) {
		limit = c->ceiling * c->window / 2;
		most = queue_least(most, queue_part(limit, c->owed, h->owed, limit / c->hosts));
	}
	if (root && root->busy_leaves > 1) { /* a class of low priority has but a small part */
		limit = root->ceiling * c->window / 2;
		most = queue_least(most, queue_part(limit, root->owed, c->owed, queue_least(limit / root->busy_leaves, c->most * c->window >> (QUEUE_FINE + 1))));
	}
	return queue_most(most, QUEUE_LEAST - queue_least(owed, QUEUE_LEAST));
}

/* Returns what a connection of a class with ECN may send without a mark, if it may send room. Marks begin in the last quarter
 * share. A further packet is marked if the connection owes more than at the last mark; in the last sixteenth all are. If a
 * round trip is many packets, one mark is enough for it: the next one waits until the sender has heard, and until it owes
 * QUEUE_MARGIN steps more than meanwhile, as its packets come in bursts. */
static __always_inline __u64 queue_unmarked(struct queue_counter *q, const struct queue_class *c, const struct queue_share *share,
					    __u64 room)
{
	__u64 limit = queue_limit(q, share, c), soft = limit - share->bytes / 4, owed, unmarked;
	__u64 step = share->bytes / QUEUE_STEPS;
	int awaited = share->bytes >= QUEUE_AWAITED, waits = awaited && q->tell == QUEUE_SENT;

	if (!q->magic)
		room = queue_least(room, limit - queue_least(q->size, limit));
	owed = limit - queue_least(room, limit);
	if (awaited ? waits : owed > soft)
		q->high = queue_most(q->high, queue_least(owed / step + (awaited ? QUEUE_MARGIN : 1), 255));
	else if (owed + (awaited ? 2 * QUEUE_MARGIN * step : 0) <= soft)
		q->high = 0;
	if (q->high)
		soft = queue_least(waits ? limit : queue_most(soft, step * q->high), limit - share->bytes / 16);
	unmarked = room - queue_least(room, limit - soft);
	q->grace = (room - unmarked) * QUEUE_PART / share->bytes;
	return unmarked;
}

/* Returns what a connection may send until the next run that goes on sending more than its share whatever it
 * loses, as BBR does: its share and a little of what it has saved. Else it would take all that it has saved at once, and
 * for ten round trips send as fast as that got through. */
static __always_inline __u64 queue_steady(const struct queue_counter *q, const struct queue_share *share, __u64 given)
{
	__s64 left = queue_room(q, q->seen) + (__s64)(given + given / QUEUE_STEADY);

	return left < 0 ? 0 : queue_least(left, queue_most(given, share->bytes / QUEUE_STEADY) + QUEUE_LEAST);
}

/* Says how much the connection may send until the next run. A young one whose host or class
 * owes much has to share what new ones get. */
static __always_inline void queue_give_room(struct queue_counter *q, const struct queue_host *h, const struct queue_class *c,
					    const struct queue_share *share, __u64 given, __u32 ms)
{
	__u64 most = queue_burst(q, share), room = 0, bound = most - queue_least(q->window, most), line;
	__u8 fresh = q->young && (h->full || c->full) && !q->magic, why = fresh ? QUEUE_OF_YOUNG : QUEUE_FULL_COUNT;

	q->rate = h->level >> QUEUE_FINE;
	if (q->size < c->depth && !fresh)
		room = c->depth - q->size;
	if (c->ecn)
		room = queue_unmarked(q, c, share, room);
	if (q->young && !q->magic) {
		line = queue_credit_line(q, h, c);
		if (line < bound && line < room)
			why = QUEUE_OF_YOUNG;
		bound = queue_least(bound, line);
	}
	if (bound < room && c->ecn)
		q->grace = QUEUE_PART / 2;
	if (q->steady) {
		bound = queue_least(bound, queue_steady(q, share, given));
		q->grace = 0;
		why = QUEUE_OF_DEAF;
	}
	if (!q->young)
		q->looked = ms;
	*(volatile __u64 *)&q->until = q->seen + queue_least(room, bound);
	q->fresh = fresh;
	q->why = why;
}

/* What a visit found. */
enum queue_found {
	QUEUE_BUSY,  /* it has backlog, or had it just now */
	QUEUE_QUIET,
	QUEUE_ENDED,
};

/* Counts what the connection has lost since the last visit. What it was told by a loss is one of these packets. */
static __always_inline void queue_count_drops(struct queue_counter *q, struct queue_class *c)
{
	__u64 dropped = __sync_lock_test_and_set(&q->dropped, 0), told = q->tell == QUEUE_COST;

	q->hurt = 2;
	c->drops += dropped >> 44;
	c->lost += QUEUE_BYTES(dropped);
	c->why[q->why & (QUEUE_REASONS - 1)] += (dropped >> 44) - told;
	if (told) {
		c->why[QUEUE_OF_START]++;
		q->tell = QUEUE_NO_NEWS;
	}
	if (q->pace != QUEUE_STARTS)
		q->missed = queue_least(q->missed + QUEUE_BYTES(dropped), ~0u);
}

/* Looks at a counter. */
static __always_inline enum queue_found queue_visit(struct queue_counter *q, const struct queue_run *r)
{
	struct queue_class *c = queue_class_get(q->class);
	struct queue_share share;
	struct queue_host *h;
	__u64 most, given;
	__u32 silence;
	int changed;

	if (!c || (!q->at && !q->key)) /* it has ended before the timer took it over */
		return QUEUE_ENDED;
	if (!q->at) {
		q->at = queue_host_of(q, c, r->ms) + 1;
		q->began = q->last = r->ms;
		q->born = r->ms;
		q->young = 1;
		q->changes = c->changes;
		q->size = q->magic = q->need = q->lazy = q->pace = q->high = q->hush = q->grace = q->before = 0;
		h = queue_host_get(q->at - 1);
		if (h)
			h->counters++;
	}
	h = queue_host_get(q->at - 1);
	if (!h)
		return QUEUE_ENDED;
	if (q->dropped)
		queue_count_drops(q, c);
	queue_host_serve(h, c, r);
	given = queue_counter_serve(q, h, c, r);
	silence = r->ms - q->last;
	if (queue_counter_count(q, h, c, r->ms)) {
		queue_wait(q, silence);
	} else if (!q->size && silence >= (q->kind ? QUEUE_KEPT : q->hurt ? QUEUE_HURT : QUEUE_IDLE)) {
		queue_counter_end(q, h, c, r->ms);
		return QUEUE_ENDED;
	}
	queue_hear(q);
	changed = queue_refit(q, h, c);
	queue_share(&share, q, h, c);
	queue_pay_back(q, &share, h, c, given, changed);
	queue_judge(q, h, c, &share, r->ms);
	queue_counter_need(q, h, c, share.bytes);
	queue_congestion(q, c, &share, r->ms);
	queue_give_room(q, h, c, &share, given, r->ms);
	most = queue_most(c->level * c->window >> (QUEUE_FINE + 1), QUEUE_LEAST);
	/* One that is alone is held to its own share. With ECN it is not enough: marks slow a start down too late. */
	h->crowded = (h->backlogged > 1 || c->hosts > 1 || c->ecn) && h->owed > most;
	h->full = queue_data.full[QUEUE_FULL_AT(q->host)] = h->crowded && h->owed > most + most / 4;
	return q->size || r->ms - q->last < QUEUE_CALM ? QUEUE_BUSY : QUEUE_QUIET;
}

#endif
