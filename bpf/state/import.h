/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A state that the loader brings into the table. It comes from another table, when the
 * table changes its size and states are copied while packets use both. Or it is made
 * from a TCP connection that the box has at the first start.
 */
#ifndef WEIR_STATE_IMPORT_H
#define WEIR_STATE_IMPORT_H

#include "route/nexthop_index.h"
#include "state/endpoint.h"
#include "state/limit.h"
#include "state/normal.h"
#include "state/pool_count.h"
#include "state/tuples.h"

/* The argument of weir_import. */
struct import {
	struct state state; /* as read, with path and next hops renumbered; or made from a socket */
	__u32 index;	    /* result: its index; 0: it was not entered */
	__u32 owner;	    /* result then: number of a state that has one of its tuples, 0: none has */
	__u32 find;	    /* 1: do not enter it, only find its owner */
	__u32 limiters; /* as in struct limited */
	struct extra extra;
	struct nexthop_key hop[2]; /* what rules have chosen, by direction, for KEPT_ROUTE */
	struct nexthop_key copy[2]; /* likewise of copies, by side */
	struct pool_use use; /* with FLOW_POOLED */
	struct normal normal; /* with FLOW_NORMAL */
};
_Static_assert(sizeof(struct import) == 576, "import, as in copy.go");

/* The list of an imported state: a function cannot get it from the argument. Only one process
 * imports states. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pool_use);
} import_uses SEC(".maps");

/* Counts a state at the addresses where it has counted before. */
static __always_inline void import_pool_count(struct state *st, __u32 index, const struct pool_use *from)
{
	__u32 zero = 0;
	struct pool_use *use = bpf_map_lookup_elem(&import_uses, &zero);

	st->flow_forth.flags &= ~FLOW_POOLED;
	if (!use)
		return;
	*use = *from;
	pool_count_enter(st, index, use);
}

/* Returns the number in this table of what a rule has chosen; 0: there is no room. Its first
 * packet looks it up. */
static __always_inline __u32 import_nexthop(const struct nexthop_key *asked)
{
	struct nexthop_key key = *asked;
	__u32 number = nexthop_number(&key);
	struct nexthop *n = nexthop_get(number);

	if (number < NEXTHOP_FIRST || !(key.how & NEXTHOP_CHOSEN))
		return 0;
	if (!(n->flags & NEXTHOP_CHOSEN)) {
		n->gateway = key.gateway;
		n->ifindex = key.ifindex;
		n->checked = shared.now - NEXTHOP_FRESH;
		n->flags = key.how;
		n->mtu = key.how >> 16;
	}
	n->used = shared.now;
	return number;
}

/* Returns the number of the state that has the reply's tuple. */
static __always_inline __u32 import_owner(struct tuple reply)
{
	__u64 hash = tuple_hash(&reply);
	struct bucket *b = bucket_get(hash);

	return b ? bucket_owner(b, &reply, hash) : 0;
}

/* Enters the state in the order of create_state(): the reply's tuple, then LIVE, then
 * the first tuple. */
static __always_inline enum reason import_state(struct import *a)
{
	struct nexthop_key forth = a->hop[0], back = a->hop[1], copies_in = a->copy[0], copies_out = a->copy[1];
	struct tuple first = a->state.forth.tuple;
	struct limit_entry counted = {};
	__u32 index, owner = 0;
	struct extra *extra;
	struct state *st;
	enum reason r;

	if (a->find) {
		a->owner = import_owner(a->state.back.tuple);
		return UNDECIDED;
	}
	if (!alloc_count())
		return REASON_STATE_LIMIT;
	index = alloc_take(tuple_hash(&first), bpf_get_prandom_u32());
	st = state_get(index);
	if (!index || !st) {
		__sync_fetch_and_add(&shared.states_released, 1);
		return REASON_STATE_LIMIT;
	}
	st->forth = a->state.forth;
	st->path = a->state.path;
	st->rule_in = a->state.rule_in;
	st->rule_out = a->state.rule_out;
	st->tag = a->state.tag;
	st->back = a->state.back;
	st->created = a->state.created;
	st->check_at = a->state.check_at;
	st->phase = a->state.phase;
	st->flags = a->state.flags;
	st->qos = a->state.qos;
	st->queue_forth = a->state.queue_forth;
	st->queue_back = a->state.queue_back;
	st->entered = a->state.entered & (KEPT_WAYS | STATES_BOUND | KEPT_TOS(0) | KEPT_TOS(1) | KEPT_ROUTES);
	extra = extra_get(index);
	if (extra)
		*extra = a->extra;
	if (st->entered & KEPT_ROUTE(0) && !state_is_diverted(st, 0))
		st->forth.nexthop = import_nexthop(&forth);
	if (st->entered & KEPT_ROUTE(1) && !state_is_diverted(st, 1))
		st->back.nexthop = import_nexthop(&back);
	st->flow_forth = a->state.flow_forth;
	st->flow_back = a->state.flow_back;
	if (extra && st->flow_forth.flags & FLOW_COPIED)
		extra->copy[0] = import_nexthop(&copies_in);
	if (extra && st->flow_back.flags & FLOW_COPIED)
		extra->copy[1] = import_nexthop(&copies_out);
	*state_limits(st) = *state_limits(&a->state) ? limit_import(&counted, st, *state_limits(&a->state), a->limiters, index) : 0;
	if (endpoint_is_counted(st))
		endpoint_import(st);
	if (pool_is_counted(st))
		import_pool_count(st, index, &a->use);
	if (st->flow_forth.flags & FLOW_NORMAL && normal_import(index, a->normal))
		r = REASON_STATE_LIMIT;
	else
		r = tuples_enter(STATE_NUMBER(index, 1), tuple_hash(&st->back.tuple), &owner);
	if (r != UNDECIDED) {
		limit_leave(&counted);
		if (endpoint_is_counted(st))
			endpoint_release(st);
		if (pool_is_counted(st))
			pool_count_release(st, index);
		if (normal_is(st))
			bpf_map_delete_elem(&normals, &index);
		alloc_free(st);
		a->owner = owner;
		return r;
	}
	__sync_lock_test_and_set(&st->status, STATUS_LIVE);
	r = tuples_enter(STATE_NUMBER(index, 0), tuple_hash(&st->forth.tuple), &owner);
	if (r != UNDECIDED) {
		st->flow_back.flags &= ~FLOW_EXPORTED;
		state_kill(st, index);
		a->owner = owner;
		return r;
	}
	st->entered |= KEPT_ENTERED;
	a->index = index;
	return UNDECIDED;
}

#endif
