/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How a tree shares the time that has passed among its classes: first what each class needs, from the leaves to the root, then
 * what it gets, from the root to the leaves. A run of the timer works on trees for QUEUE_TREES_NS, a class and a step of
 * enum queue_phase at a time. What remains goes on in the next run, and each tree is given the time that has passed since it was
 * given some before: so many classes are served less often, and get the same.
 */
#ifndef WEIR_QUEUE_SHARES_H
#define WEIR_QUEUE_SHARES_H

#include "queue/active.h"

/* Returns what a rate brings in the time that the tree is given, fine. */
static __always_inline __u64 queue_amount(const struct queue_rate *rate, const struct queue_class *c, const struct queue_run *r)
{
	__u64 now = rate->first && r->began - c->busy < rate->first ? rate->burst : rate->rate;

	return now * r->given >> (24 - QUEUE_FINE);
}

/* Computes what a class can use. */
static __always_inline void queue_need_step(struct queue_class *c, const struct queue_run *r)
{
	struct queue_class *above;
	__u64 need;

	if (!c->children) {
		need = queue_least(c->backlog, 1ULL << 40) << QUEUE_FINE;
		c->need = need > c->credit ? need - c->credit : 0;
	}
	if (c->need) {
		if (r->began - c->last > c->max.first && r->began - c->last > c->min.first)
			c->busy = r->began;
		c->last = r->began;
	}
	need = c->asked = c->need;
	if (c->max.rate) {
		c->allowed = queue_amount(&c->max, c, r) + c->saved;
		need = queue_least(need, c->allowed);
	}
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
}

/* Gives a child what is guaranteed to it. Lower priorities have a floor: a part of what is
 * there, by weight. */
static __always_inline void queue_guarantee_step(struct queue_class *c, const struct queue_class *up, struct queue_run *r)
{
	__u64 sure;

	if (!c->need)
		return;
	sure = c->min.rate ? queue_least(c->need, queue_amount(&c->min, c, r)) : 0;
	if (c->priority < r->level)
		sure = queue_most(sure, queue_least(c->need, (up->grant >> QUEUE_FLOOR) * c->weight / queue_most(up->weights, 1)));
	c->grant = sure;
	r->wants += sure;
}

/* If the guarantees are more than there is, all get the same part of theirs. */
static __always_inline void queue_scale_step(struct queue_class *c, const struct queue_class *up, const struct queue_run *r)
{
	c->grant = c->grant * ((up->grant << 16) / queue_most(r->wants, 1)) >> 16;
}

/* The weights of those of a priority that want more. */
static __always_inline void queue_weigh_step(const struct queue_class *c, struct queue_run *r)
{
	if (c->need > c->grant && c->priority == r->level)
		r->weights += c->weight;
}

/* Gives a child its part of what is left, and weighs those that want still more. */
static __always_inline void queue_fill_step(struct queue_class *c, struct queue_run *r)
{
	__u64 part;

	if (c->need <= c->grant || c->priority != r->level)
		return;
	part = queue_least(r->left * c->weight / queue_most(r->weights, 1), c->need - c->grant);
	part = queue_least(part, r->left - queue_least(r->wants, r->left)); /* weights may have changed meanwhile */
	c->grant += part;
	r->wants += part;
	if (c->need > c->grant)
		r->hungry += c->weight;
}

/* Goes on with a phase, at its first class. */
static __always_inline void queue_go_on(struct queue_run *r, enum queue_phase phase)
{
	r->phase = phase;
	r->at = 0;
}

/* Makes a class ready for its children's next needs. */
static __always_inline void queue_forget_children(struct queue_class *up)
{
	up->weights = 0;
	up->levels = 0;
	up->sure = 0;
}

/* Says that an inner class has shared out what it got. left: too little for all, or too many rounds. */
static __always_inline void queue_shared_out(struct queue_class *up, struct queue_run *r)
{
	queue_forget_children(up);
	up->credit = queue_least(r->left, up->ceiling << QUEUE_FINE);
	r->phase = QUEUE_SERVES;
	r->at = r->next;
}

/* Begins a round of sharing, or with another priority if the last one had nothing left to do. */
static __always_inline void queue_round(struct queue_class *up, struct queue_run *r)
{
	if (!r->left || r->rounds >= QUEUE_ROUNDS)
		return queue_shared_out(up, r);
	r->rounds++;
	r->wants = 0;
	r->hungry = 0;
	if (r->weights)
		return queue_go_on(r, QUEUE_FILLS);
	r->levels &= ~(1 << (r->level & 15));
	r->level = queue_highest(r->levels);
	if (!r->levels)
		return queue_shared_out(up, r);
	queue_go_on(r, QUEUE_WEIGHS);
}

/* Says that all children of a class have had a phase. */
static __always_inline void queue_phase_ends(struct queue_class *up, struct queue_run *r)
{
	switch (r->phase) {
	case QUEUE_GUARANTEES:
		r->left = up->grant - queue_least(r->wants, up->grant);
		r->weights = 0;
		queue_go_on(r, r->wants > up->grant ? QUEUE_SCALES : QUEUE_WEIGHS);
		return;
	case QUEUE_SCALES:
		return queue_shared_out(up, r);
	case QUEUE_FILLS:
		r->left -= queue_least(r->wants, r->left);
		r->weights = r->wants ? r->hungry : 0; /* less than one for each: the next priority */
	}
	queue_round(up, r);
}

/* Begins to share what an inner class gets among its children. next: the class that is served afterwards. */
static __always_inline void queue_share_out(struct queue_class *up, struct queue_run *r, __u32 next)
{
	up->sharers = up->weights;
	up->first = queue_highest(up->levels & 0xffff);
	up->easy = up->asked <= up->grant;
	up->credit = 0;
	if (up->easy) /* each child sees to it */
		return queue_forget_children(up);
	r->next = next;
	r->rounds = 0;
	r->levels = up->levels & 0xffff;
	r->level = queue_highest(r->levels);
	r->weights = up->weights;
	r->wants = 0;
	r->left = up->grant;
	if (up->sure || r->levels & (r->levels - 1))
		queue_go_on(r, QUEUE_GUARANTEES);
	else
		queue_round(up, r);
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
	c->step = given / (hosts ? : 1) * 1000 / (r->given ? : 1);
	c->most = (c->grant + c->spare) * 1000 / (r->given ? : 1);
	c->level = queue_smooth(c->level, c->hungry ? queue_least(c->step, c->most) : c->most, r->given / 1000);
	most = queue_most(c->ceiling * c->window / 2, QUEUE_LEAST);
	c->crowded = c->owed > most;
	c->full = c->owed > 4 * most;
	c->fresh = queue_most(c->ceiling * QUEUE_FRESH_MS, QUEUE_FRESH);
	c->trickle = queue_least((c->trickle > 0 ? c->trickle : 0) + (c->level * r->given / 2000 >> QUEUE_FINE), QUEUE_TRICKLE);
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

/* Serves a class. */
static __always_inline void queue_serve_step(struct queue_class *c, struct queue_run *r)
{
	const struct queue_class *above = c->parent ? queue_class_get(c->parent) : 0;
	__u64 want = c->need;
	__u8 limited = c->need < c->asked;

	if (!above) {
		c->saved = 0; /* what a line does not send it never will */
		c->spare = queue_amount(&c->max, c, r) + (c->children ? c->credit : 0);
		c->grant = queue_least(want, c->spare);
		c->hungry = limited || c->grant < want;
		c->spare -= c->grant;
		c->idle = c->lazy ? c->spare * 1000 / ((__u64)c->lazy * queue_most(r->given, 1)) : 0;
	} else {
		if (above->easy)
			c->grant = want;
		if (c->children)
			c->grant += c->credit;
		c->hungry = limited || c->grant < want;
		c->spare = c->hungry ? 0 : queue_most(above->spare, queue_claim(c, above, r));
		if (c->max.rate) {
			c->saved = queue_least(c->allowed - queue_least(c->grant, c->allowed),
					       queue_most(queue_amount(&c->max, c, r), c->max.rate * QUEUE_SAVED * 1000 >> (24 - QUEUE_FINE)));
			c->spare = queue_least(c->spare, c->saved);
		}
	}
	c->need = 0; /* children add to these */
	if (c->children) {
		r->parent = r->begin + r->at;
		queue_share_out(c, r, r->at + 1);
	} else {
		queue_leaf_serve(c, r);
	}
}

/* Looks for the next tree that has to be served. Returns 1 if this run has seen all of them. */
static __always_inline long queue_next_tree(struct queue_run *r)
{
	__u32 number = r->tree + 1;
	struct queue_shaper *sh = queue_shaper_get(number);
	struct queue_class *root;
	__u64 passed;

	if (number >= QUEUE_SHAPERS || !sh->classes) {
		number = 1;
		sh = queue_shaper_get(number);
	}
	if (!sh->classes || number == r->start)
		return 1;
	r->start = r->start ? : number;
	r->tree = number;
	root = queue_class_get(sh->first);
	if (!root)
		return 0;
	passed = r->total - root->served;
	root->served = r->total;
	if (!passed || (!root->tree && !root->lazy && r->ms - root->last > QUEUE_REST))
		return 0; /* nothing has come in for a while */
	r->given = queue_least(passed, 2 * QUEUE_MOST_NS / 1000);
	queue_data.clock.lost += (passed - r->given) * 1000;
	r->began = r->ms;
	r->begin = sh->first;
	r->end = sh->first + sh->classes;
	queue_go_on(r, QUEUE_NEEDS);
	return 0;
}

/* One step of the work on trees. */
static long queue_tree_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	struct queue_class *c, *up;
	__u32 at;

	(void)data;
	if (queue_is_over(&queue_data.clock, n))
		return 1;
	if (r->phase == QUEUE_NEXT)
		return queue_next_tree(r);
	at = r->at;
	if (r->phase <= QUEUE_SERVES) {
		if (r->begin + at >= r->end) {
			queue_go_on(r, r->phase == QUEUE_NEEDS ? QUEUE_SERVES : QUEUE_NEXT);
			return 0;
		}
		c = queue_class_get(r->phase == QUEUE_NEEDS ? r->end - 1 - at : r->begin + at);
		if (!c)
			return 1;
		if (r->phase == QUEUE_NEEDS) {
			queue_need_step(c, r);
			r->at = at + 1;
			return 0;
		}
		queue_serve_step(c, r);
		if (r->phase == QUEUE_SERVES)
			r->at = at + 1;
		return 0;
	}
	up = queue_class_get(r->parent);
	if (!up)
		return 1;
	if (at >= up->children) {
		queue_phase_ends(up, r);
		return 0;
	}
	c = queue_class_get(up->child + at);
	if (!c)
		return 1;
	r->at = at + 1;
	if (r->phase == QUEUE_GUARANTEES)
		queue_guarantee_step(c, up, r);
	else if (r->phase == QUEUE_SCALES)
		queue_scale_step(c, up, r);
	else if (r->phase == QUEUE_WEIGHS)
		queue_weigh_step(c, r);
	else
		queue_fill_step(c, r);
	return 0;
}

#endif
