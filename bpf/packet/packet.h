/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet's descriptor, filled by packet/parse.h and by nothing else, and the key
 * under which a connection is known.
 */
#ifndef WEIR_PACKET_PACKET_H
#define WEIR_PACKET_PACKET_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* An address of either family; IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
struct addr {
	__be32 word[4];
} __attribute__((aligned(8)));

/*
 * What tells connections apart, as it stands in the frame. ICMP queries carry
 * their id as the port of the asking side and their request type as the other
 * port; other ICMP messages carry their type as sport; protocols without ports
 * have 0. zone is 0, or the interface's index if an address is link-local.
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
_Static_assert(sizeof(struct tuple) == 40, "a tuple is hashed and compared as five 64-bit words");

enum fragment {
	FRAGMENT_NONE,
	FRAGMENT_FIRST, /* offset 0, more to come			    */
	FRAGMENT_LATER, /* offset > 0: no L4 header, ports are 0 */
};

/* Bits of packet.flags. */
#define PACKET_OPTIONS	  0x01 /* IPv4 options or IPv6 hop-by-hop/destination options */
#define PACKET_ICMP_ERROR 0x02 /* quotes another packet, which is at l4_offset + 8	  */
#define PACKET_EGRESS	  0x08 /* seen at TCX egress					  */
#define PACKET_GROUP	  0x10 /* the frame is for a group of stations: never forwarded */
#define PACKET_MORE	  0x20 /* more fragments follow				  */
#define PACKET_FRAGMENT_HEADER 0x40 /* IPv6: a fragment header stood in the chain	  */

struct packet {
	struct tuple tuple;
	__u32 ifindex;	 /* the interface whose hook runs			  */
	__u32 length;	 /* bytes from the IP header's first to the packet's last */
	__u32 fragment_id; /* valid iff fragment != FRAGMENT_NONE		  */
	__u16 fragment_offset; /* bytes; valid iff fragment != FRAGMENT_NONE	  */
	__u16 fragment_length; /* bytes of the whole packet's payload in this one; likewise */
	__u16 l3_offset; /* of the IP header from the frame's start; 0 on devices without L2 */
	__u16 l4_offset; /* of the L4 header, or of the fragment's payload	  */
	__u16 payload;	 /* bytes of TCP data; valid iff proto is TCP		  */
	__u8 family;	 /* 4 or 6						  */
	__u8 ttl;	 /* or hop limit					  */
	__u8 fragment;	 /* enum fragment					  */
	__u8 flags;	 /* PACKET_*						  */
	__u8 tcp_flags;	 /* valid iff proto is TCP, as are the following	  */
	__u8 icmp_type;	 /* valid iff proto is ICMP or ICMPv6			  */
	__u8 icmp_code;
	__u8 tcp_header; /* bytes						  */
	__u8 gso;	 /* a super-packet, to be cut later; TCX only		  */
	__u8 pad[1];
	__u32 seq;	 /* host order						  */
	__u32 ack;
	__u32 window;	 /* as in the header, unscaled				  */
};

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

#define ADDR4_PREFIX bpf_htonl(0xffff)

/* Tuples are hashed and compared as 64-bit words, so they are written as such: a
 * load that spans two narrower stores waits for both to reach the cache. */
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

static __always_inline int tuple_equal(const struct tuple *a, const struct tuple *b)
{
	const word64 *x = (const word64 *)a, *y = (const word64 *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]));
}

/* All but the addresses. */
static __always_inline void tuple_set_ports(struct tuple *t, __be16 sport, __be16 dport, __u8 proto,
					    __u16 zone)
{
	*(word64 *)&t->sport = (__u64)sport | (__u64)dport << 16 | (__u64)proto << 32 |
			       (__u64)zone << 48;
}

/* The tuple that an answer to t arrives with. */
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

#endif
