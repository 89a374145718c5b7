/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The packet's descriptor. packet/parse.h fills it. Later steps set qos, scrub, a TTL that
 * scrub raises, the mark that it is routed by, and the tuple of a translated ICMP error. */
#ifndef WEIR_PACKET_PACKET_H
#define WEIR_PACKET_PACKET_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "packet/tuple.h"

enum fragment {
	FRAGMENT_NONE,
	FRAGMENT_FIRST, /* offset 0, more to come			    */
	FRAGMENT_LATER, /* offset > 0, or it meets the rules for itself: no L4 header, ports are 0 */
};

/* Bits of packet.flags. */
#define PACKET_OPTIONS	  0x01 /* IPv4 options or IPv6 hop-by-hop/destination options */
#define PACKET_ICMP_ERROR 0x02 /* quotes another packet, which is at l4_offset + 8	  */
#define PACKET_SCATTERED  0x04 /* XDP: the frame fills several buffers		  */
#define PACKET_EGRESS	  0x08 /* seen at TCX egress					  */
#define PACKET_GROUP	  0x10 /* the frame is for a group MAC address: never forwarded */
#define PACKET_MORE	  0x20 /* more fragments follow				  */
#define PACKET_FRAGMENT_HEADER 0x40 /* IPv6: there was a fragment header in the chain */
#define PACKET_FIN	  0x80 /* a SYN with FIN, which tcp_flags does not show: it is cleared */

struct packet {
	struct tuple tuple;
	__u32 ifindex;	 /* the interface whose hook runs			  */
	__u32 length;	 /* bytes from the first of the IP header to the last of the packet */
	__u32 qos;	 /* QOS_*: what to set in skb->priority; 0: nothing */
	__u32 mark;	 /* skb->mark without weir's own bits; 0 under XDP */
	__u32 fragment_id; /* valid iff fragment != FRAGMENT_NONE		  */
	__u16 fragment_offset; /* bytes; valid iff fragment != FRAGMENT_NONE	  */
	__u16 fragment_length; /* bytes of the packet's payload in this fragment; likewise */
	__u16 l3_offset; /* of the IP header from the frame's start; 0: without an Ethernet header */
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
	__u8 gso;	 /* a super-packet, to be segmented later; TCX only */
	__u8 tos;	 /* type of service; IPv6: the traffic class without the bits of congestion */
	__u32 seq;	 /* host order						  */
	__u32 ack;
	__u32 window;	 /* as in the header, unscaled				  */
	__u32 scrub;	 /* SCRUB_*: how it is to be normalised; 0: not at all */
};

/* The timestamps of a TCP segment (packet/tcp_stamp.h). */
struct stamp {
	__u32 value; /* valid iff count is 1, as are the following; host order	*/
	__u32 echo;
	__u8 at;     /* where value is in the options; echo is behind it	*/
	__u8 count;  /* how many options have timestamps			*/
	__u8 pad[2];
};

/* Whether the packet has no Ethernet header. */
static __always_inline int packet_is_bare(const struct packet *p)
{
	return !p->l3_offset;
}

/* What scrub asks for a packet, in one word (packet/scrub_header.h). max-mss is not in it: it is
 * needed for SYNs alone. */
#define SCRUB_NO_DF	0x01
#define SCRUB_RANDOM_ID 0x02
#define SCRUB_TOS	0x04 /* it gets the type of service SCRUB_TOS_OF() */
#define SCRUB_PIECES	0x08 /* in rules alone: fragments meet the rules each for itself */
#define SCRUB_TCP	0x10 /* likewise: reassemble tcp (state/normal.h) */
/* The least TTLs: one is for where the packet comes in, the other for where it leaves. */
#define SCRUB_TTLS(enters, leaves) ((__u32)(enters) << 8 | (__u32)(leaves) << 16)
#define SCRUB_ENTERS(word)	   ((word) >> 8 & 0xff)
#define SCRUB_LEAVES(word)	   ((word) >> 16 & 0xff)
/* The type of service: its lower bits are below the TTLs, its upper ones above them. */
#define SCRUB_SET_TOS(tos) (SCRUB_TOS | ((__u32)(tos) & 0x1f) << 3 | ((__u32)(tos) & 0xe0) << 19)
#define SCRUB_TOS_OF(word) (((word) >> 3 & 0x1f) | ((word) >> 19 & 0xe0))
#define SCRUB_TOS_ALL	   SCRUB_SET_TOS(0xff)
#define SCRUB_TOS_ECN	   (SCRUB_SET_TOS(IP_ECN) & ~SCRUB_TOS)

#define IP_ECN 3 /* in the type of service: the bits of congestion (RFC 3168) */

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define TCP_CWR 0x80
#define TCP_CONTROL 0x3f /* all but those of congestion (RFC 3168, RFC 9768) */

#endif
