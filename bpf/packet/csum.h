/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One's complement arithmetic (RFC 1071, RFC 1624). A difference is the sum to
 * add to the complement of a checksum when words of the sum's range change:
 * new words plus complemented old ones, folded to 16 bits.
 */
#ifndef WEIR_PACKET_CSUM_H
#define WEIR_PACKET_CSUM_H

#include "packet/addr.h"

static __always_inline __u16 csum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	/* no change: of the two zeros, 0 leaves every checksum as it is, even the 0xffff
	 * of an ICMP message that is all zeros */
	return sum == 0xffff ? 0 : sum;
}

static __always_inline __u64 csum_addr_sum(const struct addr *a)
{
	return (__u64)a->word[0] + a->word[1] + a->word[2] + a->word[3];
}

static __always_inline __u64 csum_addr_complement(const struct addr *a)
{
	return (__u64)(__u32)~a->word[0] + (__u32)~a->word[1] + (__u32)~a->word[2] +
	       (__u32)~a->word[3];
}

/* Returns the difference of replacing one address by another. */
static __always_inline __u64 csum_addr_diff(const struct addr *from, const struct addr *to)
{
	return csum_addr_sum(to) + csum_addr_complement(from);
}

static __always_inline __u64 csum_word_diff(__be16 from, __be16 to)
{
	return (__u64)to + (__u16)~from;
}

/* Applies a folded difference to a checksum field. */
static __always_inline __u16 csum_apply(__u16 check, __u32 diff)
{
	__u32 sum = (__u16)~check + diff;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Applies a difference to the checksum of an L4 header. udp: a checksum of 0 means that
 * there is none (RFC 768). */
static __always_inline void csum_replace(__u16 *check, __u32 diff, int udp)
{
	__u16 sum;

	if (udp && !*check)
		return;
	sum = csum_apply(*check, diff);
	*check = udp && !sum ? 0xffff : sum;
}

/* Returns the checksum for a sum. */
static __always_inline __u16 csum_finish(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return csum_apply(0xffff, (sum & 0xffff) + (sum >> 16));
}

/* Returns the sum of the pseudo header: what the next layer's checksum covers of the IP
 * header. */
static __always_inline __u64 csum_pseudo(const struct addr *src, const struct addr *dst, __u8 proto, __u32 length)
{
	return csum_addr_sum(src) + csum_addr_sum(dst) + bpf_htons(proto) + bpf_htons(length);
}

/* Returns what takes it off again. */
static __always_inline __u64 csum_pseudo_complement(const struct addr *src, const struct addr *dst, __u8 proto,
						    __u32 length)
{
	return csum_addr_complement(src) + csum_addr_complement(dst) + (__u16)~bpf_htons(proto) +
	       (__u16)~bpf_htons(length);
}

#endif
