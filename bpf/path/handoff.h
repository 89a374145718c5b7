/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets that the stack has to forward have their destination translated and
 * their source not. Where both change, what the stack quotes in an error is
 * neither tuple of the state: so it is noted which state that was.
 */
#ifndef WEIR_PATH_HANDOFF_H
#define WEIR_PATH_HANDOFF_H

#include "maps.h"
#include "path/scratch.h"

/* The tuple of such a packet on its way through the stack; kept by no one: a lost
 * entry costs an error. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tuple);
	__type(value, __u32); /* number of the state, with the packet's direction */
} handoffs SEC(".maps");

/* Notes a packet of tuple t that goes up. to: the tuple that reply arrive with. */
static __always_inline void handoff_note(const struct tuple *t, const struct tuple *to, __u32 number)
{
	struct scratch *s = scratch_get();

	if (!s)
		return;
	s->handoff = *t;
	s->handoff.dst = to->src;
	s->handoff.dport = to->sport;
	bpf_map_update_elem(&handoffs, &s->handoff, &number, BPF_ANY);
}

/* The state of a packet that went up, by its tuple in the stack; sets its number. */
static __always_inline struct state *handoff_find(const struct tuple *t, __u32 *number)
{
	const struct tuple *came, *reply;
	struct state *st;
	__u32 *found = bpf_map_lookup_elem(&handoffs, t);

	if (!found)
		return 0;
	*number = *found;
	st = state_get(STATE_INDEX(*number));
	if (!st || st->status != STATUS_LIVE)
		return 0;
	/* its place may be another connection's by now */
	came = &state_course(st, STATE_DIRECTION(*number))->tuple;
	reply = &state_course(st, !STATE_DIRECTION(*number))->tuple;
	if (!addr_equal(&came->src, &t->src) || came->sport != t->sport || !addr_equal(&reply->src, &t->dst) ||
	    reply->sport != t->dport || came->proto != t->proto)
		return 0;
	return st;
}

#endif
