/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Endpoint-independent mapping (RFC 4787, 4.1) for UDP: what a source's address and port
 * become by a nat-to rule with endpoint-independent. The source's first state chooses them,
 * those to other destinations take them over. The mapping ends with the last of the states.
 *
 * A mapping has two entries. That of the source counts the states. With af-to a source may have
 * one for each address family outside. That of the address and
 * port outside keeps other sources from choosing the same. The entry of the source comes
 * first and has no port until one is reserved: so of two cores with packets of a new source
 * only one chooses. docs/packet-path.md, 6.
 */
#ifndef WEIR_STATE_ENDPOINT_H
#define WEIR_STATE_ENDPOINT_H

#include <bpf/bpf_helpers.h>

#include "observe/reason.h"
#include "state/endpoint_key.h"
#include "state/state.h"

/* Most mappings. An entry takes memory only while it is there. */
#define MAX_ENDPOINTS 131072

/* How often a core looks whether another one has chosen the port: together for some
 * microseconds, as it takes to make a state. */
#define ENDPOINT_TRIES 512

/* kept; both entries of each mapping */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * MAX_ENDPOINTS);
	__type(key, struct endpoint_key);
	__type(value, struct endpoint);
} endpoints SEC(".maps");

/* Removes what a source had. The entry of the source is already out of use. */
static __always_inline void endpoint_remove(struct endpoint_key *source, const struct endpoint *e)
{
	struct endpoint_key outside = *source;

	outside.addr = e->addr;
	outside.port = e->port;
	outside.outside = ENDPOINT_OUTSIDE;
	if (outside.port)
		bpf_map_delete_elem(&endpoints, &outside);
	bpf_map_delete_elem(&endpoints, source);
}

/* Takes one state from a source's count. The last one ends the mapping. */
static __always_inline void endpoint_leave(struct endpoint_key *source, struct endpoint *e)
{
	if (__sync_fetch_and_add(&e->states, -1) == 1 &&
	    !__sync_val_compare_and_swap(&e->states, 0, ENDPOINT_GONE))
		endpoint_remove(source, e);
}

/* Counts one more state; < 0: the mapping has just ended. */
static __always_inline int endpoint_join(struct endpoint *e)
{
	if (!(__sync_fetch_and_add(&e->states, 1) & ENDPOINT_GONE))
		return 0;
	__sync_fetch_and_add(&e->states, -1);
	return -1;
}

/* Fills in the key of the source of a packet that leaves with an address. */
static __always_inline void endpoint_source(struct endpoint_key *key, const struct tuple *t, const struct addr *outside)
{
	*key = (struct endpoint_key){.addr = t->src, .port = t->sport, .zone = t->zone};
	if (addr_is4(&t->src) != addr_is4(outside))
		key->outside = ENDPOINT_OTHER;
}

/* Whether a state counts under a mapping. */
static __always_inline int endpoint_is_counted(const struct state *st)
{
	return st->flow_forth.flags & FLOW_MAPPED && st->forth.tuple.proto == IPPROTO_UDP;
}

/* Whether a mapping is that of a state: its source may have got another one meanwhile. */
static __always_inline int endpoint_is_of(const struct endpoint *e, const struct state *st)
{
	return addr_equal(&e->addr, &st->back.tuple.dst) && e->port == st->back.tuple.dport;
}

/* Takes a state that ends from the count. */
__noinline int endpoint_release(const struct state *st)
{
	struct endpoint_key key;
	struct endpoint *e;

	if (!st)
		return 0;
	endpoint_source(&key, &st->forth.tuple, &st->back.tuple.dst);
	e = bpf_map_lookup_elem(&endpoints, &key);
	if (e && endpoint_is_of(e, st))
		endpoint_leave(&key, e);
	return 0;
}

/* Counts a state that comes from another table. What cannot be entered is not counted. */
__noinline int endpoint_import(struct state *st)
{
	struct endpoint new = {};
	struct endpoint_key key;
	struct endpoint *e;

	if (!st)
		return 0;
	endpoint_source(&key, &st->forth.tuple, &st->back.tuple.dst);
	new.addr = st->back.tuple.dst;
	new.port = st->back.tuple.dport;
	new.states = 1;
	if (!bpf_map_update_elem(&endpoints, &key, &new, BPF_NOEXIST)) {
		key.addr = new.addr;
		key.port = new.port;
		key.outside = ENDPOINT_OUTSIDE;
		bpf_map_update_elem(&endpoints, &key, &new, BPF_NOEXIST);
		return 0;
	}
	e = bpf_map_lookup_elem(&endpoints, &key);
	if (!e || !endpoint_is_of(e, st) || endpoint_join(e))
		st->flow_forth.flags &= ~FLOW_MAPPED;
	return 0;
}

#endif
