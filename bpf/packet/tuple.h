/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The key of a connection. */
#ifndef WEIR_PACKET_TUPLE_H
#define WEIR_PACKET_TUPLE_H

#include <linux/in.h>

#include "config.h"
#include "packet/addr.h"

/*
 * What distinguishes connections, as it is in the frame. ICMP queries have their id as
 * the port of the asking side and their request type as the other port. Other ICMP
 * messages have their type as sport. Protocols without ports have 0. zone is 0, or the
 * interface's index if an address is link-local, or ZONE_SOCKET.
 */
struct tuple {
	struct addr src;
	struct addr dst;
	__be16 sport;
	__be16 dport;
	__u8 proto;
	__u8 pad;
	__u16 zone;
};
#define ZONE_SOCKET 0xffff /* no index of an interface; see fast_twin() */
_Static_assert(sizeof(struct tuple) == 40, "a tuple is hashed and compared as five 64-bit words");

static __always_inline int tuple_equal(const struct tuple *a, const struct tuple *b)
{
	const word64 *x = (const word64 *)a, *y = (const word64 *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]));
}

/* Whether the protocol has ports. */
static __always_inline int tuple_has_ports(__u8 proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP;
}

/* Whether translation may change the ports. SCTP's checksum covers the whole packet (RFC
 * 9260, 6.8), but no addresses: its ports stay. */
static __always_inline int tuple_translates_ports(__u8 proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP;
}

/* Sets everything except the addresses. */
static __always_inline void tuple_set_ports(struct tuple *t, __be16 sport, __be16 dport, __u8 proto,
					    __u16 zone)
{
	*(word64 *)&t->sport = (__u64)sport | (__u64)dport << 16 | (__u64)proto << 32 |
			       (__u64)zone << 48;
}

/* Sets r to the tuple that a reply to t arrives with. */
static __always_inline void tuple_reverse(struct tuple *r, const struct tuple *t)
{
	r->src = t->dst;
	r->dst = t->src;
	r->sport = t->dport;
	r->dport = t->sport;
	r->proto = t->proto;
	r->pad = 0;
	r->zone = t->zone;
}

/*
 * NH (RFC 4418, section 5.2.2) and a mixing bijection: two different tuples have the
 * same hash for one in 2^32 keys, whatever they are. So nobody outside can aim at one
 * bucket. The products are independent of each other, so the CPU overlaps them.
 */
static __always_inline __u64 tuple_hash(const struct tuple *t)
{
	const word64 *w = (const word64 *)t;
	__u64 h = 0;
	int i;

	for (i = 0; i < HASH_KEYS / 2; i++)
		h += (__u64)((__u32)w[i] + hash_keys[2 * i]) * ((__u32)(w[i] >> 32) + hash_keys[2 * i + 1]);
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ULL;
	h ^= h >> 29;
	return h;
}
_Static_assert(sizeof(struct tuple) == HASH_KEYS * 4, "a key for each word of a tuple");

#endif
