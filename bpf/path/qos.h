/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What set prio and set queue do to a packet. A rule has a byte of two priorities and
 * the number of what set queue names. A state keeps both for each direction. For one
 * packet they become one word, which goes with it to the stack: TCX writes it into
 * skb->priority, XDP leaves it in front of the frame for TCX. docs/packet-path.md, step
 * 15.
 *
 * Cost when no rule sets any: one byte of the state is tested, and two bytes of each
 * crossing that is evaluated.
 */
#ifndef WEIR_PATH_QOS_H
#define WEIR_PATH_QOS_H

#include <bpf/bpf_helpers.h>

#include "path/scratch.h"
#include "rules/ruleset.h"
#include "state/state.h"

/* A byte of two priorities, a nibble each. The lower one is for most packets; the upper
 * one is for those that carry no data or ask for a low delay. A nibble is one more than
 * the priority; 0: none. */
#define PRIO_ACK_SHIFT 4
#define PRIO_MASK      15

#define IP_LOW_DELAY 0x10 /* in the type of service */

/* The queues of a number, in this generation. A number missing from the map belongs to
 * rules that are gone: the packet takes its interface's default. Written by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* numbers, by the loader */
	__type(key, __u32);
	__type(value, struct queue_pair);
} queue_pairs SEC(".maps");

/* Whether a packet takes the second priority and queue. TCP segments with ACK and
 * without data do, and packets whose sender asks for a low delay, as in pf. */
static __always_inline int qos_is_urgent(hook_ctx *ctx, const struct packet *p)
{
	__u8 head[2];

	if (p->tuple.proto == IPPROTO_TCP && p->fragment != FRAGMENT_LATER && p->tcp_flags & TCP_ACK &&
	    !p->payload)
		return 1;
	if (hook_load(ctx, p->l3_offset, head, sizeof(head)))
		return 0;
	return p->family == 4 ? head[1] & IP_LOW_DELAY : head[0] & IP_LOW_DELAY >> 4;
}

/* Returns the word of a packet for a priority and a queue. */
__noinline __u32 qos_word(hook_ctx *ctx, const struct packet *p, __u32 prio, __u32 queue)
{
	const struct queue_pair *pair = 0;
	__u32 word = 0;
	int urgent;

	if (!p)
		return 0;
	urgent = qos_is_urgent(ctx, p);
	prio = (urgent ? prio >> PRIO_ACK_SHIFT : prio) & PRIO_MASK;
	if (prio)
		word = QOS_PRIO | ((prio - 1) & QOS_PRIO_MASK);
	if (queue)
		pair = bpf_map_lookup_elem(&queue_pairs, &queue);
	if (pair)
		word |= (__u32)(urgent ? pair->ack : pair->queue) << QOS_QUEUE_SHIFT;
	return word;
}

/* Sets a packet's word from a priority and a queue number. */
static __always_inline void qos_set(hook_ctx *ctx, struct packet *p, __u8 prio, __u16 queue)
{
	if (!prio && !queue)
		return;
	p->qos = qos_word(ctx, p, prio, queue);
	hook_prioritize(ctx, p->qos);
}

/* Sets a packet's word from its state. */
static __always_inline void qos_set_state(hook_ctx *ctx, struct packet *p, const struct state *st, __u32 d)
{
	if (st->qos & 1 << (d & 1))
		qos_set(ctx, p, state_flow(st, d)->prio, state_queue(st, d));
}

/* Sets the word of the packet in the scratch from its state, if it has one, and from the
 * crossings that were evaluated for it. The out crossing overrides the state, which has
 * the values of both sides. The state overrides the in crossing. */
static __always_inline void qos_set_evaluated(hook_ctx *ctx, struct scratch *s, const struct state *st, __u32 d)
{
	const struct crossing *in = &s->in, *out = &s->out;
	__u16 queue = 0;
	__u8 prio = 0;

	if (out->evaluated) {
		prio = out->prio;
		queue = out->queue;
	}
	if (st && st->qos & 1 << (d & 1)) {
		prio = prio ? : state_flow(st, d)->prio;
		queue = queue ? : state_queue(st, d);
	}
	if (in->evaluated) {
		prio = prio ? : in->prio;
		queue = queue ? : in->queue;
	}
	qos_set(ctx, &s->packet, prio, queue);
}

#endif
