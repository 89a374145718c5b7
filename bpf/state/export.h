/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * pflow: what is told of a state that has ended, if a rule with pflow made it. The garbage
 * collection writes one record into a ring when it releases the state, so packets pay
 * nothing. The daemon reads the ring and tells the collectors (internal/fw/daemon/flow.go).
 * Without a daemon records wait in the ring. When it is full, further ones are lost and
 * counted.
 */
#ifndef WEIR_STATE_EXPORT_H
#define WEIR_STATE_EXPORT_H

#include "shared.h"

#define FLOW_RECORD_FORMAT 1 /* changes with struct flow_record: a ring outlives a reload */

struct flow_record {
	__u32 format;	   /* FLOW_RECORD_FORMAT					*/
	__u32 now;	   /* tick at which it was written				*/
	__u32 created;	   /* tick						*/
	__u32 last[2];	   /* by direction: tick of its last packet			*/
	__u32 ifindex[2];  /* by direction: of the interface that its packets left by; 0: the box, or not known */
	__u32 rule[2];	   /* global id + 1 of the rules that decided, in and out; 0: none */
	__u32 pad0;
	__u64 packets[2];
	__u64 bytes[2];
	struct tuple tuple[2]; /* of arriving packets, by direction */
};
_Static_assert(sizeof(struct flow_record) == 152, "no padding between the fields");

/* Of the generation, but taken over from the one before (internal/fw/dataplane/flow.go). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* FLOW_RING_BYTES with collectors, by the loader */
} flow_ring SEC(".maps");

/* Likewise: the records that found no room. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} flows_lost SEC(".maps");

static __always_inline __u32 export_leaves_by(const struct course *c)
{
	return c->nexthop >= NEXTHOP_FIRST ? nexthop_get(c->nexthop)->ifindex : 0;
}

static __always_inline void export_lost(void)
{
	__u32 zero = 0;
	__u64 *lost = bpf_map_lookup_elem(&flows_lost, &zero);

	if (lost)
		__sync_fetch_and_add(lost, 1);
}

/* Writes the record of a state that is about to be released. */
static __always_inline void export_state(const struct state *st)
{
	struct flow_record *r;

	if (!flows_exported || !(st->flow_back.flags & FLOW_EXPORTED))
		return;
	r = bpf_ringbuf_reserve(&flow_ring, sizeof(*r), 0);
	if (!r) {
		export_lost();
		return;
	}
	r->format = FLOW_RECORD_FORMAT;
	r->now = shared.now;
	r->created = st->created;
	r->last[0] = st->flow_forth.last;
	r->last[1] = st->flow_back.last;
	r->ifindex[0] = export_leaves_by(&st->forth);
	r->ifindex[1] = export_leaves_by(&st->back);
	r->rule[0] = st->rule_in;
	r->rule[1] = st->rule_out;
	r->pad0 = 0;
	r->packets[0] = st->flow_forth.packets;
	r->packets[1] = st->flow_back.packets;
	r->bytes[0] = st->flow_forth.bytes;
	r->bytes[1] = st->flow_back.bytes;
	r->tuple[0] = st->forth.tuple;
	r->tuple[1] = st->back.tuple;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

#endif
