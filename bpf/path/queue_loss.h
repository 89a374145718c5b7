/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the connections have lost in their queues. A connection's counter ends when it rests;
 * this stays as long as its state. Only dropped packets touch it.
 */
#ifndef WEIR_PATH_QUEUE_LOSS_H
#define WEIR_PATH_QUEUE_LOSS_H

#include "queue/admit.h"
#include "state/state.h"

struct queue_loss {
	__u32 number;  /* of the state, with the direction of the packets; 0: none */
	__u32 created; /* of that state */
	__u64 packets;
	__u64 bytes;   /* on the line */
};

/* By number; queue_slots entries. Of two numbers with one entry the one that lost last has it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_loss);
} queue_losses SEC(".maps");

static __always_inline void queue_lost(const struct queue_ask *a)
{
	const struct state *st = a->hashed ? 0 : state_get(STATE_INDEX(a->flow));
	__u32 index = a->flow & (queue_slots - 1);
	struct queue_loss *l = bpf_map_lookup_elem(&queue_losses, &index);

	if (!l || !st)
		return;
	if (l->number != a->flow || l->created != st->created) { /* it was another's */
		l->number = a->flow;
		l->created = st->created;
		l->packets = 0;
		l->bytes = 0;
	}
	__sync_fetch_and_add(&l->packets, 1);
	__sync_fetch_and_add(&l->bytes, a->bytes);
}

#endif
