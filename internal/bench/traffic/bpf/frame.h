/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Offsets in a frame: Ethernet, IPv4 without options or IPv6 without extension headers,
 * UDP or TCP.
 */
#ifndef WEIR_BENCH_FRAME_H
#define WEIR_BENCH_FRAME_H

#include <linux/types.h>
#include <bpf/bpf_endian.h>

#define ETH_LEN		14
#define IP4_LEN		16
#define IP4_ID		18
#define IP4_SUM		24
#define IP4_SOURCE	26
#define IP4_TARGET	30
#define IP4_L4		34
#define IP6_LEN		18
#define IP6_SOURCE_LOW	34
#define IP6_TARGET_LOW	50
#define IP6_L4		54
#define TCP_SEQ		4 /* from the L4 header on */
#define TCP_SUM		16
#define UDP_LEN		4
#define UDP_SUM		6
#define SESSION_LEN	18 /* of PPPoE, from the frame's beginning */

/* A time stamp and its complement. */
#define STAMP_LEN	16

/* The longest header written: IPv6 and TCP with eight bytes of options. */
#define HEADER_WORDS	11

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

#define IP4_PROTOCOL	23
#define IP6_PROTOCOL	20

/* Reports whether a frame may be ours. The kernel sends frames of its own (neighbours,
 * multicast groups), which are neither wrong nor counted. ethertype: in a PPPoE session, PPP's protocol. */
static __always_inline int is_ours(const void *frame, const void *end, __u16 ethertype, __u8 protocol)
{
	if (frame + IP4_L4 > end || *(const __be16 *)(frame + 12) != bpf_htons(ethertype))
		return 0;
	return *(const __u8 *)(frame + (ethertype == 0x86dd || ethertype == 0x0057 ? IP6_PROTOCOL : IP4_PROTOCOL)) == protocol;
}

static __always_inline void put16(void *at, __u16 value)
{
	*(__be16 *)at = bpf_htons(value);
}

static __always_inline void put32(void *at, __u32 value)
{
	*(__be32 *)at = bpf_htonl(value);
}

/* Two bytes at a time, because a payload may begin at any even offset. */
static __always_inline void put64(void *at, __u64 value)
{
	put16(at, value >> 48);
	put16(at + 2, value >> 32);
	put16(at + 4, value >> 16);
	put16(at + 6, value);
}

static __always_inline __u16 get16(const void *at)
{
	return bpf_ntohs(*(const __be16 *)at);
}

static __always_inline __u32 get32(const void *at)
{
	return bpf_ntohl(*(const __be32 *)at);
}

static __always_inline __u64 get64(const void *at)
{
	return (__u64)get32(at) << 32 | get32(at + 4);
}

#endif
