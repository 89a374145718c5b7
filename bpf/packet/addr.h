/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Addresses of either family, and their kinds. */
#ifndef WEIR_PACKET_ADDR_H
#define WEIR_PACKET_ADDR_H

#include <linux/types.h>
#include <bpf/bpf_endian.h>

/* An address of either family; IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
struct addr {
	__be32 word[4];
} __attribute__((aligned(8)));

#define ADDR4_PREFIX bpf_htonl(0xffff)

/* Tuples are hashed and compared as 64-bit words, so they are written as such. A load
 * that spans two narrower stores would wait until both are in the cache. */
typedef __u64 __attribute__((may_alias)) word64;

static __always_inline void addr_set4(struct addr *a, __be32 v4)
{
	((word64 *)a)[0] = 0;
	((word64 *)a)[1] = (__u64)v4 << 32 | ADDR4_PREFIX;
}

static __always_inline void addr_set6(struct addr *a, const void *v6)
{
	((word64 *)a)[0] = ((const word64 *)v6)[0];
	((word64 *)a)[1] = ((const word64 *)v6)[1];
}

static __always_inline int addr_equal(const struct addr *a, const struct addr *b)
{
	const word64 *x = (const word64 *)a, *y = (const word64 *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]));
}

static __always_inline int addr_is4(const struct addr *a)
{
	return !(a->word[0] | a->word[1]) && a->word[2] == ADDR4_PREFIX;
}

static __always_inline __u32 addr_v4(const struct addr *a)
{
	return bpf_ntohl(a->word[3]);
}

static __always_inline int addr_is_multicast(const struct addr *a)
{
	if (addr_is4(a))
		return (addr_v4(a) >> 28) == 0xe;
	return (a->word[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000);
}

static __always_inline int addr_is_limited_broadcast(const struct addr *a)
{
	return addr_is4(a) && a->word[3] == 0xffffffff;
}

static __always_inline int addr_is_link_local(const struct addr *a)
{
	return (a->word[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
}

static __always_inline int addr_is_low6(const struct addr *a, __u32 last)
{
	return !(a->word[0] | a->word[1] | a->word[2]) && a->word[3] == bpf_htonl(last);
}

#endif
