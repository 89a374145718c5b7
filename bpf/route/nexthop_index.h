/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Numbers of next hops: look-up by gateway and interface, allocation, and return. */
#ifndef WEIR_ROUTE_NEXTHOP_INDEX_H
#define WEIR_ROUTE_NEXTHOP_INDEX_H

#include "shared.h"

/* kept; (interface, gateway) -> index into shared.nexthops. What rules have chosen has
 * numbers of its own, even if the routes lead there too. So have routes with an MTU of their own:
 * others by the same gateway need not have it. */
struct nexthop_key {
	struct addr gateway;
	__u32 ifindex; /* of a chosen one only if the rule names it, else 0 */
	__u32 how;     /* NEXTHOP_HOW, and with NEXTHOP_NARROW the MTU in the upper half */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_NEXTHOPS);
	__type(key, struct nexthop_key);
	__type(value, __u32);
} nexthop_index SEC(".maps");

/* kept; numbers that next hops have given back. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, MAX_NEXTHOPS);
	__uint(key_size, 0);
	__type(value, __u32);
} nexthops_free SEC(".maps");

/* Numbers of next hops by a hash of their keys; a user compares the key. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} nexthop_cache SEC(".maps");

/* Takes an unused number; 0: there is none. */
static __always_inline __u32 nexthop_take(void)
{
	struct nexthop *n;
	__u32 number;

	if (shared.nexthops_unused && !bpf_map_pop_elem(&nexthops_free, &number)) {
		__sync_fetch_and_add(&shared.nexthops_unused, -1);
		n = &shared.nexthops[number & (MAX_NEXTHOPS - 1)];
		n->used = shared.now;
		n->stage = NEXTHOP_LISTED;
		return number;
	}
	if (shared.nexthops_high >= MAX_NEXTHOPS - NEXTHOP_FIRST)
		return 0;
	number = __sync_fetch_and_add(&shared.nexthops_high, 1) + NEXTHOP_FIRST;
	return number < MAX_NEXTHOPS ? number : 0;
}

static __always_inline __u32 nexthop_how(const struct nexthop *n)
{
	__u32 how = n->flags & NEXTHOP_HOW;

	return how & NEXTHOP_NARROW ? how | (__u32)n->mtu << 16 : how;
}

/* Returns the key of a next hop. */
static __always_inline void nexthop_key_of(struct nexthop_key *key, const struct nexthop *n)
{
	key->gateway = n->gateway;
	key->how = nexthop_how(n);
	key->ifindex = key->how == NEXTHOP_CHOSEN ? 0 : n->ifindex;
}

static __always_inline int nexthop_has_key(const struct nexthop *n, const struct nexthop_key *key)
{
	return n->stage == NEXTHOP_LISTED && nexthop_how(n) == key->how &&
	       (n->ifindex == key->ifindex || key->how == NEXTHOP_CHOSEN) && addr_equal(&n->gateway, &key->gateway);
}

/* Returns the number of (interface, gateway), and makes one if needed; 0: the table is
 * full. */
__noinline __u32 nexthop_number(struct nexthop_key *key)
{
	__u32 *known, number;

	if (!key)
		return 0;
	known = bpf_map_lookup_elem(&nexthop_index, key);
	if (known)
		return *known;
	number = nexthop_take();
	if (!number)
		return 0;
	if (bpf_map_update_elem(&nexthop_index, key, &number, BPF_NOEXIST)) {
		/* another core was first: its number counts */
		shared.nexthops[number & (MAX_NEXTHOPS - 1)].stage = NEXTHOP_FREE;
		if (!bpf_map_push_elem(&nexthops_free, &number, 0))
			__sync_fetch_and_add(&shared.nexthops_unused, 1);
		known = bpf_map_lookup_elem(&nexthop_index, key);
		return known ? *known : 0;
	}
	return number;
}

/* The same, but the table is not read if the hint is right. */
static __always_inline __u32 nexthop_find(struct nexthop_key *key)
{
	__u32 at = (key->gateway.word[3] ^ key->gateway.word[2] ^ key->ifindex) * 0x9e3779b1u >> 24;
	__u32 *hint = bpf_map_lookup_elem(&nexthop_cache, &at), number;
	const struct nexthop *n;

	if (!hint)
		return 0;
	number = *(volatile __u32 *)hint & (MAX_NEXTHOPS - 1); /* other cores write it, for other keys */
	n = &shared.nexthops[number];
	if (nexthop_has_key(n, key))
		return number;
	number = nexthop_number(key);
	*hint = number;
	return number;
}

#endif
