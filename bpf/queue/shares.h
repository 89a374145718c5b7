/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How a tree shares the time that has passed among its classes. */
#ifndef WEIR_QUEUE_SHARES_H
#define WEIR_QUEUE_SHARES_H

#include "queue/backlog.h"

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

/* Returns a child of the class whose children are served. 0: there is none. */
static __always_inline struct queue_class *queue_child(const struct queue_class *up, __u32 n)
{
	return up ? queue_class_get(up->child + n) : 0;
}

/* Gives a child what is guaranteed to it. Lower priorities have a floor: a part of what is
 * there, by weight. */
static long queue_guarantee_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	const struct queue_class *up = queue_class_get(r->class);
	struct queue_class *c = queue_child(up, n);
	__u64 sure;

	(void)data;
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
	struct queue_class *c = queue_child(up, n);

	(void)data;
	if (!c)
		return 1;
	c->grant = c->grant * ((up->grant << 16) / queue_most(r->wants, 1)) >> 16;
	return 0;
}

/* The weights of those of a priority that want more. */
static long queue_weigh_step(__u32 n, void *data)
{
	struct queue_run *r = &queue_data.run;
	const struct queue_class *up = queue_class_get(r->class), *c = queue_child(up, n);

	(void)data;
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
	struct queue_class *c = queue_child(up, n);
	__u64 part;

	(void)data;
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

#endif
