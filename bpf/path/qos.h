/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What set prio and set queue give a packet. A rule has a byte of two priorities and
 * the number of what set queue names; a state keeps both for each direction. For one
 * packet they become one word, which goes with it to the stack: TCX writes it into
 * skb->priority, XDP leaves it in front of the frame for TCX. docs/packet-path.md,
 * step 15.
 *
 * Cost where no rule gives any: a byte of the state is tested, and of packets that
 * are evaluated two of each crossing.
 */
#ifndef WEIR_PATH_QOS_H
#define WEIR_PATH_QOS_H

#include <bpf/bpf_helpers.h>

#include "path/scratch.h"
#include "rules/ruleset.h"
#include "state/state.h"

/* A byte of priorities: a nibble for packets, above it one for those that carry no
 * data or ask for a low delay. A nibble is one more than the priority; 0: none. */
#define PRIO_ACK_SHIFT 4
#define PRIO_MASK      15

#define IP_LOW_DELAY 0x10 /* of the type of service */

/* The queues of a number, in this generation. A number that it lacks is of rules
 * that are gone: the packet takes its interface's default. Written by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* numbers, by the loader */
	__type(key, __u32);
	__type(value, struct queue_pair);
} queue_pairs SEC(".maps");

/* Whether a packet takes the second priority and queue: a TCP segment with ACK and
 * without data, or one whose sender asks for a low delay, as in pf. */
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

/* The word of a packet that is given something. */
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

/* Gives a packet what two numbers say. */
static __always_inline void qos_give(hook_ctx *ctx, struct packet *p, __u8 prio, __u16 queue)
{
	if (!prio && !queue)
		return;
	p->qos = qos_word(ctx, p, prio, queue);
	hook_prioritize(ctx, p->qos);
}

/* Gives a packet what its state says. */
static __always_inline void qos_give_state(hook_ctx *ctx, struct packet *p, const struct state *st, __u32 d)
{
	if (st->qos & 1 << (d & 1))
		qos_give(ctx, p, state_flow(st, d)->prio, state_queue(st, d));
}

/* Gives the packet in the scratch what its state says, if it has one, and the
 * crossings that it was evaluated at. The way out counts for more than the state,
 * which has what both sides have said, and that for more than the way in. */
static __always_inline void qos_give_evaluated(hook_ctx *ctx, struct scratch *s, const struct state *st, __u32 d)
{
	const struct crossing *in = &s->in, *out = &s->out;
	__u16 queue = 0;
	__u8 prio = 0;

	if (out->asked) {
		prio = out->prio;
		queue = out->queue;
	}
	if (st && st->qos & 1 << (d & 1)) {
		prio = prio ? : state_flow(st, d)->prio;
		queue = queue ? : state_queue(st, d);
	}
	if (in->asked) {
		prio = prio ? : in->prio;
		queue = queue ? : in->queue;
	}
	qos_give(ctx, &s->packet, prio, queue);
}

#endif
